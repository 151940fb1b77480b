package topology

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// AssumedImages lists the images that machines find by name, as their manifest describes them. The name has
// the shortest text for each wildcard.
func AssumedImages(m *manifest.Cluster) (all []cluster.Assumed) {
	in := inputs{m: m, spec: &m.Infra.Spec}
	for _, x := range m.ImageLookups() {
		lookUp := x.Spec.ImageLookupFormat + x.Spec.ImageLookupOrg + x.Spec.ImageLookupBaseOS +
			in.spec.ImageLookupFormat + in.spec.ImageLookupOrg + in.spec.ImageLookupBaseOS
		if m.EKS != nil && lookUp == "" {
			continue // AWS has the images of EKS
		}
		q, _, err := in.imageQuery(group{version: x.Version, spec: *x.Spec, specAt: x.Object, specPath: x.Path})
		if err != nil || x.Version == "" {
			continue // the plan says why
		}
		all = append(all, cluster.Assumed{
			Kind: cluster.AssumedImage, ID: strings.NewReplacer("?", "v", "*", "0").Replace(q.Name), Pattern: q.Name, Owner: q.Owner,
			Detail: manifest.ArchitectureOf(x.Spec.InstanceType), Version: x.Version, Origin: m.Origin(x.Object, x.Path),
		})
	}
	return all
}
