package topology

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
)

// ImageLookups says how the images of a cluster's machines are found.
type ImageLookups struct {
	// ByName are the queries of images by their name, without those for images of EKS.
	ByName []ec2.ImageQuery
	// Given are the fields with the ID of an image: "demo.yaml:70 AWSMachineTemplate/demo-md-0
	// spec.template.spec.ami.id".
	Given []string
}

// ImagesOf returns how the images of the machines of a manifest are found. types are the
// instance types of the machines.
func ImagesOf(m *manifest.Cluster, types map[string]ec2.InstanceType) (found ImageLookups, err error) {
	in := inputs{m: m, spec: &m.Infra.Spec, inv: Inventory{Types: types}}
	groups := in.groupsAndPools(nil)
	for _, p := range m.Pools {
		if p.Managed != nil && rules.OwnImage(p.Managed) {
			groups = append(groups, in.poolGroup(p, nil))
		}
	}
	for _, x := range groups {
		if id := x.spec.AMI.ID; id != nil && *id != "" {
			found.Given = append(found.Given, m.Origin(x.specAt, x.specPath+".ami.id"))
			continue
		}
		q, _, err := in.imageQuery(x)
		if err != nil {
			return found, err
		}
		if m.EKS == nil && !slices.Contains(found.ByName, q) {
			found.ByName = append(found.ByName, q)
		}
	}
	slices.Sort(found.Given)
	found.Given = slices.Compact(found.Given)
	return found, nil
}
