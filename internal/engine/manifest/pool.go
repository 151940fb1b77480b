package manifest

import (
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
)

// Template returns the launch template of a pool, or nil if EKS creates it.
func (p Pool) Template() *expinfrav1.AWSLaunchTemplate {
	if p.Managed != nil {
		return p.Managed.Spec.AWSLaunchTemplate
	}
	return &p.Scaling.Spec.AWSLaunchTemplate
}

// NodeTags returns the tags of the nodes of a managed pool. EKS does not pass the tags of a node
// group on to its nodes, so that CAPA sets them on its Auto Scaling group.
func (c *Cluster) NodeTags(p Pool) infrav1.Tags {
	tags := infrav1.Tags{}
	if p.Managed != nil {
		tags.Merge(c.Infra.Spec.AdditionalTags)
		tags.Merge(p.Managed.Spec.AdditionalTags)
	}
	return tags
}

// Hooks returns the lifecycle hooks of a pool.
func (p Pool) Hooks() []expinfrav1.AWSLifecycleHook {
	if p.Managed != nil {
		return p.Managed.Spec.AWSLifecycleHooks
	}
	return p.Scaling.Spec.AWSLifecycleHooks
}
