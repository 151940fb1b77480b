package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checkExternal checks an AWSCluster whose infrastructure somebody else manages, and warns
// about fields that would change it.
func (c *checks) checkExternal(o *manifest.Entry, vpc string) {
	if vpc == "" {
		c.fail(
			o.Problem(
				"spec.network.vpc.id",
				"externally managed infrastructure needs the ID of its VPC",
				"set it, and list the subnets for the machines in spec.network.subnets",
			),
		)
	}
	if c.cluster.Infra.Spec.S3Bucket != nil {
		c.fail(o.Problem("spec.s3Bucket", "a bucket is not supported in externally managed infrastructure", "remove it"))
	}
	told := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(o.Lines)) {
		field := changesInfrastructure(path)
		if field == "" || told[field] {
			continue
		}
		told[field] = true
		c.warn(o.Problem(field, "has no effect: the infrastructure is externally managed (annotation cluster.x-k8s.io/managed-by)", "remove it, or the annotation"))
	}
}

// changesInfrastructure returns the field of an AWSCluster that contains a path, if the field
// can only change infrastructure; otherwise "".
func changesInfrastructure(path string) string {
	for _, field := range []string{
		"spec.bastion", "spec.network.cni", "spec.network.securityGroupOverrides", "spec.network.nodePortIngressRuleCidrBlocks",
		"spec.network.additionalControlPlaneIngressRules", "spec.network.additionalNodeIngressRules",
	} {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			return field
		}
	}
	for prefix, used := range map[string][]string{
		"spec.network.vpc.":                       {"id"},
		"spec.controlPlaneLoadBalancer.":          {"name", "loadBalancerType", "additionalListeners"},
		"spec.secondaryControlPlaneLoadBalancer.": {"name", "loadBalancerType", "additionalListeners"},
	} {
		rest, ok := strings.CutPrefix(path, prefix)
		name, _, _ := strings.Cut(strings.ReplaceAll(rest, "[", "."), ".")
		if ok && !slices.Contains(used, name) {
			return prefix + name
		}
	}
	return ""
}
