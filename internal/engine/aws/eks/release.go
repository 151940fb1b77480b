package eks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkRelease checks that an AMI of the release version exists, and that the release is not older than that of the nodes. EKS refuses both
// ("Requested release version … is not valid for kubernetes version …", https://github.com/eksctl-io/eksctl/issues/7976; "You can't roll back
// a node group to an earlier Kubernetes version or AMI version", "Update a managed node group", EKS user guide). If the node group already has
// the release, nothing is checked, because AWS deletes old AMIs. If the caller may not list AMIs, their existence is not checked.
func (g *NodeGroup) checkRelease(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if g.Release == "" {
		return "", nil
	}
	if cluster, ok := g.Cluster.Found(); ok {
		have, err := NodeGroupByName(ctx, c, cluster.Name, g.Name)
		switch {
		case err != nil || have != nil && have.Release == g.Release:
			return "", err
		case have != nil && g.goesBack(have):
			return fmt.Sprintf("amiVersion: the nodes have the release %s, and EKS does not go back to %s: set a later one, or remove it", have.Release, g.Release), nil
		}
	}
	name, kubelet := g.imageName()
	if name == "" {
		return "", nil
	}
	found, err := ec2.Published(ctx, c, name)
	switch {
	case cloud.Denied(err):
		return "", nil
	case err != nil:
		return "", err
	case len(found) == 0:
		return fmt.Sprintf("amiVersion: there is no release %s of amiType %s in %s (no AMI has the name %s): set one that exists, or remove it",
			g.Release, g.ImageType, c.Region, name), nil
	}
	return g.refuseImages(found, kubelet), nil
}

// refuseImages refuses a release if all images of its date are for another version of Kubernetes.
func (g *NodeGroup) refuseImages(found []ec2.PublishedImage, kubelet string) (refusal string) {
	for _, image := range found {
		if has := kubeletOf(image.Description); kubelet == "" || has == "" || has == kubelet {
			return ""
		}
	}
	has := kubeletOf(found[0].Description)
	return fmt.Sprintf("amiVersion: there is no release %s: the AMI of this date (%s) is for Kubernetes %s: set %s, or remove it",
		g.Release, found[0].Name, has, strings.Replace(g.Release, kubelet, has, 1))
}

// kubeletOf returns the version of Kubernetes in the description of an AMI of EKS: "…, (k8s: 1.34.1, containerd: …)" (ami_description of the
// templates in https://github.com/awslabs/amazon-eks-ami); "" if it has none.
func kubeletOf(description string) string {
	if m := regex.Of(`\(k8s: (\d+\.\d+\.\d+)[,)]`).FindStringSubmatch(description); m != nil {
		return m[1]
	}
	return ""
}

// imageName returns a pattern for the name of the AMI with the release version, and the version of Kubernetes that its description must have.
// Both are "" for AMI types whose names are not known. The names are from the releases of https://github.com/awslabs/amazon-eks-ami (the first
// AMIs for NVIDIA also have the version of the driver in their names: amazon-eks-node-al2023-x86_64-nvidia-560-1.31-v20241016), from
// Bottlerocket ("bottlerocket-aws-k8s-1.33-nvidia-aarch64-v1.54.0-5043decc"), and from "Retrieve Windows AMI version information" in the EKS
// user guide.
func (g *NodeGroup) imageName() (pattern, kubelet string) {
	release, date, _ := strings.Cut(g.Release, "-")
	version := cmp.Or(g.Version, minorOf(release))
	if variant, ok := strings.CutPrefix(g.ImageType, "BOTTLEROCKET_"); ok {
		if g.Version == "" {
			return "", ""
		}
		return "bottlerocket-aws-k8s-" + version + bottlerocketVariant(variant) + "-v" + g.Release, ""
	}
	if m := regex.Of(`^WINDOWS_(CORE|FULL)_(\d{4})_x86_64$`).FindStringSubmatch(g.ImageType); m != nil {
		edition := map[string]string{"CORE": "Core", "FULL": "Full"}[m[1]]
		return fmt.Sprintf("Windows_Server-%s-English-%s-EKS_Optimized-%s-%s", m[2], edition, version, date), ""
	}
	name := map[string]string{
		"AL2_x86_64": "amazon-eks-node", "AL2_x86_64_GPU": "amazon-eks-gpu-node", "AL2_ARM_64": "amazon-eks-arm64-node",
		"AL2023_x86_64_STANDARD": "amazon-eks-node-al2023-x86_64-standard", "AL2023_ARM_64_STANDARD": "amazon-eks-node-al2023-arm64-standard",
		"AL2023_x86_64_NEURON": "amazon-eks-node-al2023-x86_64-neuron",
		"AL2023_x86_64_NVIDIA": "amazon-eks-node-al2023-x86_64-nvidia*", "AL2023_ARM_64_NVIDIA": "amazon-eks-node-al2023-arm64-nvidia*",
	}[g.ImageType]
	if name == "" {
		return "", ""
	}
	return name + "-" + minorOf(release) + "-v" + date, release
}

// bottlerocketVariant is the part of the name of an image for "ARM_64_NVIDIA": "-nvidia-aarch64".
func bottlerocketVariant(variant string) (name string) {
	for _, flavour := range []string{"NVIDIA", "FIPS"} {
		if strings.HasSuffix(variant, "_"+flavour) {
			name += "-" + strings.ToLower(flavour)
		}
	}
	if strings.HasPrefix(variant, "ARM_64") {
		return name + "-aarch64"
	}
	return name + "-x86_64"
}

func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// goesBack reports whether the release of the manifest is older than that of the nodes, for the same version of Kubernetes and the same AMI
// type.
func (g *NodeGroup) goesBack(have *NodeGroupState) bool {
	if have.ImageType != g.ImageType || have.Release == "" || g.Version != "" && g.Version != have.Version {
		return false
	}
	return slices.Compare(releaseNumbers(g.Release), releaseNumbers(have.Release)) < 0
}

// releaseNumbers returns the numbers by which releases are ordered: the date or, for Bottlerocket, the version.
func releaseNumbers(release string) (numbers []int) {
	version, rest, _ := strings.Cut(release, "-")
	if date, err := strconv.Atoi(strings.ReplaceAll(rest, ".", "")); err == nil && len(rest) >= len("20060102") && strings.Trim(rest, "0123456789.") == "" &&
		strings.HasPrefix(rest, "20") {
		return []int{date}
	}
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		numbers = append(numbers, n)
	}
	return numbers
}
