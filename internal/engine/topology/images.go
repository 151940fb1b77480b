package topology

import (
	"cmp"
	"fmt"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// CAPA's defaults for image lookups.
const (
	imageOwner    = "819546954734"
	DefaultBaseOS = "ubuntu-24.04"
	imageFormat   = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*"
)

// addImage adds the lookup of a group's image: the one the manifest names, or the
// newest whose name matches the lookup format. of is the launch template of a pool; nil for a machine.
func addImage(g *graph.Graph, in inputs, x group, of *ec2.LaunchTemplate) (*graph.Ref[ec2.ImageState], error) {
	if id := x.spec.AMI.ID; id != nil && *id != "" {
		return addGivenImage(g, in, x, *id, of), nil
	}
	lookUp := x.spec.ImageLookupFormat + x.spec.ImageLookupOrg + x.spec.ImageLookupBaseOS +
		in.spec.ImageLookupFormat + in.spec.ImageLookupOrg + in.spec.ImageLookupBaseOS
	if in.m.EKS != nil && lookUp == "" {
		return addEKSImage(g, in, x)
	}
	q, id, err := in.imageQuery(x)
	if err != nil {
		return nil, err
	}
	return lookup(g, in, id, ec2.ImageByName(q), x.specAt, "spec"), nil
}

// imageQuery returns the query for the image of a group by its name, and the ID of its lookup.
func (in inputs) imageQuery(x group) (q ec2.ImageQuery, id plan.ID, err error) {
	q = ec2.ImageQuery{
		Owner: cmp.Or(x.spec.ImageLookupOrg, in.spec.ImageLookupOrg, imageOwner), Version: x.version,
		Architecture: in.architecture(x),
	}
	base := cmp.Or(x.spec.ImageLookupBaseOS, in.spec.ImageLookupBaseOS, DefaultBaseOS)
	format := cmp.Or(x.spec.ImageLookupFormat, in.spec.ImageLookupFormat, imageFormat)
	version := strings.TrimPrefix(x.version, "v")
	if q.Name, err = imageName(format, base, version); err != nil {
		at, path := x.specAt, x.specPath+".imageLookupFormat"
		if x.spec.ImageLookupFormat == "" {
			at, path = in.m.InfraObject(), "spec.imageLookupFormat"
		}
		return q, "", fmt.Errorf("%s: %w", in.m.Origin(at, path), err)
	}
	id = plan.ID(fmt.Sprintf("image/%s/%s/%s", base, version, q.Architecture))
	if format != imageFormat || q.Owner != imageOwner {
		id += plan.ID("/" + suffix(format, q.Owner))
	}
	return q, id, nil
}

// architecture returns the architecture of the group's instance type.
func (in inputs) architecture(x group) string {
	return cmp.Or(in.inv.Types[x.spec.InstanceType].Architecture, "x86_64")
}

// addGivenImage adds the lookup of an image that the manifest names. It checks the
// architecture, so each architecture has its own lookup.
func addGivenImage(g *graph.Graph, in inputs, x group, image string, of *ec2.LaunchTemplate) *graph.Ref[ec2.ImageState] {
	id, kind := plan.ID("image/"+image), in.inv.Types[x.spec.InstanceType]
	arch := kind.Architecture
	if kind.VCPUs == 0 {
		arch = "" // the type is not in the inventory
	}
	if arch == "arm64" {
		id += "/arm64"
	}
	find := ec2.Kept(of, ec2.ImageFor(image, x.spec.InstanceType, arch), of.KeptImage(image))
	return lookup(g, in, id, find, x.specAt, x.specPath+".ami.id")
}

// addEKSImage adds the lookup of the image that EKS recommends.
func addEKSImage(g *graph.Graph, in inputs, x group) (*graph.Ref[ec2.ImageState], error) {
	version := minorVersion(cmp.Or(x.version, in.m.Version))
	if version == "" {
		return nil, fmt.Errorf(
			"%s: EKS has an image for each version, and neither the machines nor the AWSManagedControlPlane have one: set spec.version",
			in.m.Origin(x.specAt, x.specPath+".ami"),
		)
	}
	arch := in.architecture(x)
	kind := infrav1.AmazonLinux
	if given := x.spec.AMI.EKSOptimizedLookupType; given != nil {
		kind = *given
	}
	path := eksImagePath(kind, arch)
	parameter := EKSImageParameter(version, kind, arch)
	return lookup(g, in, plan.ID("image/eks/"+version+"/"+path), ec2.ImageByParameter(parameter), x.specAt, "spec"), nil
}

// eksImagePath is the part of the name of a parameter with an image of EKS that says which one
// it is.
func eksImagePath(kind infrav1.EKSAMILookupType, arch string) string {
	path := map[infrav1.EKSAMILookupType]string{
		infrav1.AmazonLinux: "amazon-linux-2", infrav1.AmazonLinuxGPU: "amazon-linux-2-gpu",
		infrav1.AmazonLinux2023: "amazon-linux-2023/" + arch + "/standard", infrav1.AmazonLinux2023GPU: "amazon-linux-2023/" + arch + "/nvidia",
	}[kind]
	if kind == infrav1.AmazonLinux && arch == "arm64" {
		path += "-arm64"
	}
	return path
}

// EKSImageParameter is the public parameter with the ID of the image that EKS recommends for a
// version of Kubernetes, such as "1.34".
func EKSImageParameter(version string, kind infrav1.EKSAMILookupType, arch string) string {
	return "/aws/service/eks/optimized-ami/" + version + "/" + eksImagePath(kind, arch) + "/recommended/image_id"
}

// imageName expands an image lookup format, a Go template with the two values of CAPA. No
// other action is supported: a template engine looks up methods by name, which prevents
// the linker from removing dead code.
func imageName(format, base, version string) (string, error) {
	var out strings.Builder
	for rest := format; ; {
		text, after, found := strings.Cut(rest, "{{")
		out.WriteString(text)
		if !found {
			return out.String(), nil
		}
		action, tail, closed := strings.Cut(after, "}}")
		switch strings.TrimSpace(strings.Trim(strings.TrimSpace(action), "-")) {
		case ".BaseOS":
			out.WriteString(base)
		case ".K8sVersion":
			out.WriteString(version)
		default:
			closed = false
		}
		if !closed {
			return "", fmt.Errorf("%q is not understood: only {{.BaseOS}} and {{.K8sVersion}} are", format)
		}
		rest = tail
	}
}
