package cluster

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// addonOfEKS is an add-on of EKS that generate adds to a flavor without it.
type addonOfEKS struct{ name, version string }

// The add-ons that volumes need: the driver, and the agent that gives it its role.
const (
	ebsDriver        = "aws-ebs-csi-driver"
	podIdentityAgent = "eks-pod-identity-agent"
)

// withStorage returns a manifest of EKS that also installs what pods need to have volumes: the EBS CSI driver, with a role
// that is made for the cluster, and a default StorageClass. A flavor that has the driver keeps its own.
func withStorage(text, name string, s skeleton) (string, error) {
	inserted, provisioner := labelled(s.cluster, name), "ebs.csi.aws.com"
	spec := field(s.plane, "spec")
	var known []string
	for _, n := range walk(spec, "addons", "[]", "name") {
		known = append(known, n.Value)
	}
	if s.autoMode() {
		provisioner = "ebs.csi.eks.amazonaws.com"
	} else if !slices.Contains(known, ebsDriver) {
		regions, err := parameterValues(text, region)
		if err != nil {
			return "", err
		}
		inserted = append(inserted, driverRole(s.plane, regions[0].Value), addonsOfEKS(spec, known))
	}
	namespace := ""
	if n := field(s.cluster, "metadata", "namespace"); n != nil {
		namespace = "\n  namespace: " + n.Value
	}
	values := strings.NewReplacer("<cluster>", name, "<in-namespace>", namespace, "<provisioner>", provisioner)
	return addonsOf(insert(text, inserted), []string{"eks-storage"}, values)
}

// autoMode reports whether the manifest turns EKS Auto Mode on, which has a driver for volumes of its own.
func (s skeleton) autoMode() bool {
	return field(s.plane, "metadata", "annotations", "clusterawsadm/auto-mode") != nil
}

// driverRole returns the annotation that gives the EBS CSI driver a role.
func driverRole(plane *yaml.Node, region string) insertion {
	text := "    # The role of the EBS CSI driver is made with the cluster. To use an existing one, write roleARN instead.\n" +
		"    clusterawsadm/addon-pod-identities: |\n" +
		"      - addon: " + ebsDriver + "\n" +
		"        serviceAccount: ebs-csi-controller-sa\n" +
		"        policyARNs: [arn:" + reconcile.PartitionOf(region) + ":iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy]\n"
	metadata := field(plane, "metadata")
	if i := keyOf(metadata, "annotations"); i >= 0 {
		return insertion{metadata.Content[i].Line + 1, text}
	}
	return insertion{plane.Content[keyOf(plane, "spec")].Line, "  annotations:\n" + text}
}

// addonsOfEKS returns the add-ons that a control plane lacks.
func addonsOfEKS(spec *yaml.Node, known []string) insertion {
	var b strings.Builder
	for _, a := range []addonOfEKS{
		{podIdentityAgent, "${POD_IDENTITY_VERSION:=v1.3.9-eksbuild.3}"},
		{ebsDriver, "${EBS_CSI_VERSION:=v1.51.0-eksbuild.1}"},
	} {
		if !slices.Contains(known, a.name) {
			fmt.Fprintf(&b, "  - name: %s\n    version: %s\n", a.name, a.version)
		}
	}
	if i := keyOf(spec, "addons"); i >= 0 {
		return insertion{spec.Content[i].Line + 1, b.String()}
	}
	return insertion{spec.Content[keyOf(spec, "version")].Line + 1, "  addons: # beside those that EKS installs itself\n" + b.String()}
}
