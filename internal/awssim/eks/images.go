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
	published                     string // its name, without the date; of Bottlerocket, it follows from the kind
	size, snapshot                int32  // GiB of the root device, and of its snapshot: no root volume can be smaller
}

// imageKinds returns the images. Those of Amazon Linux 2 were built on a volume of 4 GiB, and declare a root device of 20
// (https://github.com/awslabs/amazon-eks-ami/issues/1142, and templates/al2 there until 2026). Those with drivers of an accelerator need 10 or
// more, according to its doc/usage/al2.md. Which size they have is not known; here, they have the least.
func imageKinds() []image {
	return []image{
		{"AL2023_x86_64_STANDARD", "x86_64", "amazon-linux-2023/x86_64/standard", "amazon-eks-node-al2023-x86_64-standard-VERSION", 20, 20},
		{"AL2023_ARM_64_STANDARD", "arm64", "amazon-linux-2023/arm64/standard", "amazon-eks-node-al2023-arm64-standard-VERSION", 20, 20},
		{"AL2023_x86_64_NVIDIA", "x86_64", "amazon-linux-2023/x86_64/nvidia", "amazon-eks-node-al2023-x86_64-nvidia-VERSION", 20, 20},
		{"AL2023_ARM_64_NVIDIA", "arm64", "amazon-linux-2023/arm64/nvidia", "amazon-eks-node-al2023-arm64-nvidia-VERSION", 20, 20},
		{"AL2023_x86_64_NEURON", "x86_64", "amazon-linux-2023/x86_64/neuron", "amazon-eks-node-al2023-x86_64-neuron-VERSION", 20, 20},
		{"BOTTLEROCKET_x86_64", "x86_64", "", "", 2, 2},
		{"BOTTLEROCKET_ARM_64", "arm64", "", "", 2, 2},
		{"BOTTLEROCKET_x86_64_FIPS", "x86_64", "", "", 2, 2},
		{"BOTTLEROCKET_ARM_64_FIPS", "arm64", "", "", 2, 2},
		{"BOTTLEROCKET_x86_64_NVIDIA", "x86_64", "", "", 2, 2},
		{"BOTTLEROCKET_ARM_64_NVIDIA", "arm64", "", "", 2, 2},
		{"AL2_x86_64", "x86_64", "amazon-linux-2", "amazon-eks-node-VERSION", 20, 4},
		{"AL2_x86_64_GPU", "x86_64", "amazon-linux-2-gpu", "amazon-eks-gpu-node-VERSION", 20, 10},
		{"AL2_ARM_64", "arm64", "amazon-linux-2-arm64", "amazon-eks-arm64-node-VERSION", 20, 4},
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

// name returns the name of the newest image for a version.
func (k image) name(version string) string {
	all := k.releases(version)
	return k.named(version, all[len(all)-1])
}

// named returns the name of the image with a release version, in the form of EKS (https://github.com/awslabs/amazon-eks-ami/releases) or of
// Bottlerocket (tools/pubsys in its repository).
func (k image) named(version, release string) string {
	if variant, ok := strings.CutPrefix(k.kind, "BOTTLEROCKET_"); ok {
		name, flavour := "bottlerocket-aws-k8s-"+version, ""
		for _, f := range []string{"NVIDIA", "FIPS"} {
			if strings.HasSuffix(variant, f) {
				flavour = "-" + strings.ToLower(f)
			}
		}
		return name + flavour + "-" + strings.Replace(k.architecture, "arm64", "aarch64", 1) + "-v" + release
	}
	_, date, _ := strings.Cut(release, "-")
	return strings.Replace(k.published, "VERSION", version, 1) + "-v" + date
}

// description returns the description of an image, which contains the version of its kubelet (templates/shared and the
// variable ami_description in https://github.com/awslabs/amazon-eks-ami).
func (k image) description(version, release string) string {
	kubelet, _, _ := strings.Cut(release, "-")
	switch {
	case strings.HasPrefix(k.kind, "BOTTLEROCKET"):
		return k.named(version, release)
	case strings.HasPrefix(k.kind, "AL2_"):
		return "EKS Kubernetes Worker AMI with AmazonLinux2 image, (k8s: " + kubelet + ", containerd: 1.7.*)"
	}
	return "EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: " + kubelet + ", containerd: 2.1.*)"
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
			for _, release := range k.releases(version) {
				name := k.named(version, release)
				images = append(images, &ec2.Image{
					Thing: ec2.Thing{ID: ec2.GivenID("ami", region, name), Tags: map[string]string{}, Born: at, Given: true}, Name: name, Owner: owner,
					Description: k.description(version, release), Architecture: k.architecture, RootDevice: device, Created: at,
					RootSize: k.size, SnapshotSize: k.snapshot,
				})
			}
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
