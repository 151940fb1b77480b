package rules

import (
	"fmt"
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// warnCutOff warns about nodes that the endpoint of the API server does not let in: without the
// private endpoint, they call the public one from the addresses of NAT gateways ("Cluster API
// server endpoint", EKS user guide).
func (c *checks) warnCutOff(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	access := plane.EndpointAccess
	private := access.Private != nil && *access.Private
	hasNodes := len(c.cluster.Pools)+len(c.cluster.Deployments)+len(c.cluster.Machines)+len(c.cluster.EKS.Fargate) > 0
	switch {
	case private || !isRestricted(access) || !hasNodes:
		return
	case c.cluster.EKS.NATAddresses:
		c.warnPublicNodes()
		return
	}
	c.warn(c.infra.Problem("spec.endpointAccess.publicCIDRs",
		"nodes and pods on Fargate call the API server from the addresses of the NAT gateways, and are locked out if these are not in the list",
		fmt.Sprintf(`set private: true, or the annotation %s%s: "true", which adds the addresses`, manifest.OwnAnnotations, manifest.AnnotationNATAddresses)))
}

// warnNoNetwork warns about node groups without a pod network: their nodes do not become ready, and EKS ends the creation
// of the groups with NodeCreationFailure ("Managed node group error codes", EKS user guide).
func (c *checks) warnNoNetwork() {
	at := slices.IndexFunc(c.cluster.Pools, func(p manifest.Pool) bool { return p.Managed != nil && p.Replicas() > 0 })
	if at < 0 || c.cluster.HasPodNetwork() {
		return
	}
	path, what := "spec.bootstrapSelfManagedAddons", "the cluster gets no pod network"
	if c.cluster.EKS.ControlPlane.Spec.VpcCni.Disable {
		path, what = "spec.vpcCni.disable", "the VPC CNI is disabled, and nothing else installs a pod network"
	}
	c.warn(
		c.infra.Problem(path, what+": the nodes do not become ready, and EKS ends the creation of the node group "+c.cluster.Pools[at].Managed.Name+" with an error",
			"add the add-on vpc-cni, or install another pod network with --cni FILE or a ClusterResourceSet"),
	)
}

// warnCoreDNS warns about an add-on CoreDNS whose pods no node takes. EKS waits for them, and the
// add-on stays DEGRADED.
func (c *checks) warnCoreDNS(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	if plane.Addons == nil {
		return
	}
	i := slices.IndexFunc(*plane.Addons, func(a ekscontrolplanev1.Addon) bool { return a.Name == "coredns" })
	if i < 0 {
		return
	}
	var given struct {
		ComputeType string `json:"computeType"`
		Tolerations []any  `json:"tolerations"`
	}
	if err := yaml.Unmarshal([]byte((*plane.Addons)[i].Configuration), &given); err != nil {
		return
	}
	path := fmt.Sprintf("spec.addons[%d]", i)
	onFargate, nodes := strings.EqualFold(given.ComputeType, "Fargate"), len(c.cluster.Deployments)+len(c.cluster.Machines)
	for _, p := range c.cluster.Pools {
		if p.Managed == nil || !repels(p.Managed.Spec.Taints) {
			nodes++
		}
	}
	switch {
	case onFargate || nodes > 0:
	case len(c.cluster.Pools) == 0 && len(c.cluster.EKS.Fargate) > 0:
		c.warn(
			c.infra.Problem(
				path,
				"the pods of CoreDNS run on EC2 instances, and the cluster has Fargate profiles only",
				`set configuration: '{"computeType":"Fargate"}'`,
			),
		)
	case len(c.cluster.Pools) > 0 && len(given.Tolerations) == 0:
		c.warn(c.infra.Problem(path, "no node takes the pods of CoreDNS: all node groups have taints",
			`set tolerations in configuration, such as '{"tolerations":[{"key":"KEY","operator":"Exists"}]}', or add a node group without taints`))
	}
}

// repels reports whether pods that tolerate no taint are not scheduled on a node.
func repels(taints expinfrav1.Taints) bool {
	return slices.ContainsFunc(taints, func(t expinfrav1.Taint) bool {
		return t.Effect != expinfrav1.TaintEffectPreferNoSchedule && t.Key != "CriticalAddonsOnly"
	})
}
