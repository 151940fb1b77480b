package eks

import (
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Owners of EKS's images.
const (
	amazonImages        = "602401143452"
	bottlerocketImages  = "092701018921"
	imagesPublished     = 1_790_000_000 // all images have the same build
	imageRelease        = "20260921"
	earlierRelease      = "20260603"
	bottlerocketRelease = "1.50.0"
)

// image is an image of EKS: its AMI type, and its public parameter below the folder of a
// Kubernetes version.
type image struct {
	kind, architecture, parameter string
	size, snapshot                int32 // GiB of the root device, and of its snapshot: no root volume can be smaller
}

// imageKinds returns the images. Those of Amazon Linux 2 were built on a volume of 4 GiB, and declare a root device of 20
// (https://github.com/awslabs/amazon-eks-ami/issues/1142, and templates/al2 there until 2026). Those with drivers of an accelerator need 10 or
// more, according to its doc/usage/al2.md. Which size they have is not known; here, they have the least.
func imageKinds() []image {
	return []image{
		{"AL2023_x86_64_STANDARD", "x86_64", "amazon-linux-2023/x86_64/standard", 20, 20},
		{"AL2023_ARM_64_STANDARD", "arm64", "amazon-linux-2023/arm64/standard", 20, 20},
		{"AL2023_x86_64_NVIDIA", "x86_64", "amazon-linux-2023/x86_64/nvidia", 20, 20},
		{"AL2023_ARM_64_NVIDIA", "arm64", "amazon-linux-2023/arm64/nvidia", 20, 20},
		{"AL2023_x86_64_NEURON", "x86_64", "amazon-linux-2023/x86_64/neuron", 20, 20},
		{"BOTTLEROCKET_x86_64", "x86_64", "", 2, 2},
		{"BOTTLEROCKET_ARM_64", "arm64", "", 2, 2},
		{"BOTTLEROCKET_x86_64_FIPS", "x86_64", "", 2, 2},
		{"BOTTLEROCKET_ARM_64_FIPS", "arm64", "", 2, 2},
		{"BOTTLEROCKET_x86_64_NVIDIA", "x86_64", "", 2, 2},
		{"BOTTLEROCKET_ARM_64_NVIDIA", "arm64", "", 2, 2},
		{"AL2_x86_64", "x86_64", "amazon-linux-2", 20, 4},
		{"AL2_x86_64_GPU", "x86_64", "amazon-linux-2-gpu", 20, 10},
		{"AL2_ARM_64", "arm64", "amazon-linux-2-arm64", 20, 4},
	}
}

// imageKind returns an AMI type, if it has an image for a Kubernetes version: Amazon
// Linux 2 ended with 1.32.
func imageKind(name, version string) (image, bool) {
	for _, k := range imageKinds() {
		if k.kind == name {
			return k, !strings.HasPrefix(name, "AL2_") || minor(version) <= 32
		}
	}
	return image{}, false
}

// name returns the name of the image for a version.
func (k image) name(version string) string {
	if strings.HasPrefix(k.kind, "BOTTLEROCKET") {
		return "bottlerocket-aws-k8s-" + version + "-" + strings.ToLower(strings.TrimPrefix(k.kind, "BOTTLEROCKET_")) + "-v" + bottlerocketRelease
	}
	return "amazon-eks-node-" + strings.ToLower(k.kind) + "-" + version + "-v" + imageRelease
}

// releases returns the release versions of the image, the newest last.
func (k image) releases(version string) []string {
	if strings.HasPrefix(k.kind, "BOTTLEROCKET") {
		return []string{bottlerocketRelease + "-0123abcd"}
	}
	return []string{version + ".0-" + earlierRelease, version + ".0-" + imageRelease}
}

// release returns the release version that a node group has: the one that is asked for, or
// the newest. A group does not go back to an earlier one ("You can't roll back a node group to
// an earlier Kubernetes version or AMI version", EKS user guide).
func (k image) release(version, had string, asked *string) (string, error) {
	all := k.releases(version)
	if asked == nil {
		return all[len(all)-1], nil
	}
	at := slices.Index(all, *asked)
	if at < 0 || at < slices.Index(all, had) {
		return "", invalid("Requested release version %s is not valid for kubernetes version %s.", *asked, version)
	}
	return *asked, nil
}

// ImagesIn returns the images of EKS in a region.
func ImagesIn(region string) (images []*ec2.Image) {
	for _, version := range SupportedVersions() {
		for _, k := range imageKinds() {
			if _, ok := imageKind(k.kind, version); !ok {
				continue
			}
			owner, device := amazonImages, "/dev/xvda"
			if strings.HasPrefix(k.kind, "BOTTLEROCKET") {
				owner = bottlerocketImages
			}
			at := time.Unix(imagesPublished, 0).UTC()
			images = append(images, &ec2.Image{
				Thing: ec2.Thing{ID: ec2.GivenID("ami", region, k.name(version)), Tags: map[string]string{}, Born: at, Given: true}, Name: k.name(version), Owner: owner,
				Description: "EKS node " + k.kind + " for Kubernetes " + version, Architecture: k.architecture, RootDevice: device, Created: at,
				RootSize: k.size, SnapshotSize: k.snapshot,
			})
		}
	}
	return images
}

// PublicParameter returns the value of a public parameter, which contains the ID of the
// recommended image.
func (svc *Service) PublicParameter(name string) (value string, ok bool) {
	if m := regex.Of(`^/aws/service/eks/optimized-ami/([\d.]+)/(.+)/recommended/image_id$`).FindStringSubmatch(name); m != nil {
		for _, k := range imageKinds() {
			if _, ok := imageKind(k.kind, m[1]); ok && k.parameter == m[2] {
				return svc.ec2.ImageNamed(k.name(m[1]))
			}
		}
	}
	if m := regex.Of(`^/aws/service/bottlerocket/aws-k8s-([\d.]+)(-nvidia)?/(x86_64|arm64)/latest/image_id$`).FindStringSubmatch(name); m != nil {
		kind := "BOTTLEROCKET_" + strings.Replace(m[3], "arm64", "ARM_64", 1) + strings.ToUpper(strings.Replace(m[2], "-", "_", 1))
		if k, ok := imageKind(kind, m[1]); ok {
			return svc.ec2.ImageNamed(k.name(m[1]))
		}
	}
	return "", false
}

// NodeImage returns the ID of the image of AL2023 for nodes of a cluster.
func (svc *Service) NodeImage(c *Cluster) (id string, known bool) {
	k, _ := imageKind("AL2023_x86_64_STANDARD", c.Version)
	return svc.ec2.ImageNamed(k.name(c.Version))
}
