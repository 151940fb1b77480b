package rules

import (
	"fmt"
	"maps"
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

// warnNoServices warns about nodes with the VPC CNI, on which nothing sets up the addresses of Services. The nodes become ready, but their pods find
// neither the API server nor a name (https://github.com/aws-samples/eks-workshop-v2/issues/1782). It does not warn if the VPC CNI is disabled, too:
// what comes in its place usually replaces kube-proxy.
func (c *checks) warnNoServices() {
	if c.cluster.HasServices() || !c.hasNodes() && c.cluster.EKS.Karpenter == nil {
		return
	}
	path, what, fix := "spec.bootstrapSelfManagedAddons", "nothing installs kube-proxy", "add the add-on kube-proxy"
	if c.cluster.EKS.ControlPlane.Spec.KubeProxy.Disable {
		path, what, fix = "spec.kubeProxy.disable", "kube-proxy is disabled, and nothing takes its place", "remove it"
	}
	c.warn(c.infra.Problem(path, what+": pods on the nodes reach no Service, so neither the API server nor CoreDNS",
		fix+", or install a pod network that replaces kube-proxy with --cni FILE or a ClusterResourceSet"))
}

// deploymentAddons are the add-ons of EKS with a Deployment, for whose pods EKS waits ("Amazon EKS add-ons available from Amazon EKS", EKS
// user guide), each with the section of its configuration that has the tolerations of the Deployment.
func deploymentAddons() map[string]string {
	return map[string]string{
		"coredns": "", "metrics-server": "", "snapshot-controller": "", "kube-state-metrics": "", "external-dns": "", "cert-manager": "",
		"aws-ebs-csi-driver": "controller", "aws-efs-csi-driver": "controller", "aws-fsx-csi-driver": "controller",
		"amazon-cloudwatch-observability": "",
	}
}

// toleration is a toleration in the configuration of an add-on.
type toleration struct {
	Key, Operator, Value, Effect string
}

// tolerates reports whether a pod with the toleration runs on nodes with a taint ("Taints and Tolerations" in the documentation of
// Kubernetes).
func (x toleration) tolerates(t expinfrav1.Taint) bool {
	effects := map[string]expinfrav1.TaintEffect{"NoSchedule": expinfrav1.TaintEffectNoSchedule, "NoExecute": expinfrav1.TaintEffectNoExecute}
	of := x.Key == t.Key && (x.Operator == "Exists" || x.Value == t.Value) || x.Key == "" && x.Operator == "Exists"
	return of && (x.Effect == "" || effects[x.Effect] == t.Effect)
}

// warnUnscheduled warns about add-ons whose pods run on no node of the cluster. EKS waits for the pods, and the add-on stays DEGRADED.
func (c *checks) warnUnscheduled(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	if plane.Addons == nil || c.cluster.EKS.HasAutoMode() || c.cluster.EKS.Karpenter != nil { // which launch nodes for pods
		return
	}
	for i, addon := range *plane.Addons {
		section, has := deploymentAddons()[addon.Name]
		var given map[string]any
		if !has || yaml.Unmarshal([]byte(addon.Configuration), &given) != nil {
			continue
		}
		onFargate := strings.EqualFold(fmt.Sprint(given["computeType"]), "Fargate")
		if section != "" {
			given, _ = given[section].(map[string]any)
		}
		if at, selects := c.unselected(given, section); !onFargate && selects != "" && (len(c.cluster.EKS.Fargate) == 0 || addon.Name == "coredns") {
			c.warn(c.infra.Problem(
				fmt.Sprintf("spec.addons[%d].configuration", i),
				fmt.Sprintf("no node group has the label that %s asks for: %s; the pods of %s have no node to run on, and EKS waits for them", at, selects, addon.Name),
				"add the label to a node group, or change "+at,
			))
			continue
		}
		if onFargate || c.takesPods(tolerationsOf(given)) {
			continue
		}
		if what, fix := c.unscheduled(addon.Name, section); what != "" {
			c.warn(c.infra.Problem(fmt.Sprintf("spec.addons[%d]", i), what, fix))
		}
	}
}

// unselected returns a label that the nodeSelector of an add-on requires and no node group has, with the path of the nodeSelector. It does not
// check labels that Kubernetes or AWS sets. It returns nothing if the cluster has nodes outside of managed node groups, whose labels are not known.
func (c *checks) unselected(given map[string]any, section string) (at, label string) {
	selector, _ := given["nodeSelector"].(map[string]any)
	others := func(p manifest.Pool) bool { return p.Managed == nil || p.Bootstrap != (manifest.Bootstrap{}) }
	if c.hasMachines() || len(c.cluster.Pools) == 0 || slices.ContainsFunc(c.cluster.Pools, others) {
		return "", ""
	}
	at = strings.TrimPrefix(section+".nodeSelector", ".")
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		domain, _, prefixed := strings.Cut(key, "/")
		known := prefixed && (strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") || strings.HasSuffix(domain, "amazonaws.com"))
		has := func(p manifest.Pool) bool {
			value, set := p.Managed.Spec.Labels[key]
			return set && value == fmt.Sprint(selector[key])
		}
		if !known && !slices.ContainsFunc(c.cluster.Pools, has) {
			return at, fmt.Sprintf("%s=%v", key, selector[key])
		}
	}
	return "", ""
}

// unscheduled says why no node runs the pods of an add-on, and what to do. section is the part of the add-on's configuration in which
// tolerations are set; "" is the top level.
func (c *checks) unscheduled(addon, section string) (what, fix string) {
	onFargate := len(c.cluster.EKS.Fargate) > 0
	switch {
	case onFargate && addon != "coredns": // its pods may run there
		return "", ""
	case onFargate && len(c.cluster.Pools) == 0:
		return "the pods of coredns run on EC2 instances, and the cluster has Fargate profiles only", `set configuration: '{"computeType":"Fargate"}'`
	case !c.hasNodes():
		return fmt.Sprintf("the pods of %s have no node to run on, and EKS waits for them", addon), "add a node group, or remove the add-on until there is one"
	}
	example := `{"tolerations":[{"key":"KEY","operator":"Exists"}]}`
	if section != "" {
		example = fmt.Sprintf(`{"%s":%s}`, section, example)
	}
	return fmt.Sprintf("no node takes the pods of %s: all node groups have taints", addon),
		fmt.Sprintf("set tolerations in configuration, such as '%s', or add a node group without taints", example)
}

// tolerationsOf returns the tolerations of the pods of an add-on: those in a section of its configuration, and the one that all add-ons have.
func tolerationsOf(section map[string]any) (all []toleration) {
	raw, err := yaml.Marshal(section["tolerations"])
	if err == nil {
		err = yaml.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil // EKS refuses the configuration
	}
	return append(all, toleration{Key: "CriticalAddonsOnly", Operator: "Exists"})
}

// takesPods reports whether at least one node of the cluster accepts pods with these tolerations.
func (c *checks) takesPods(tolerations []toleration) bool {
	tolerated := func(t expinfrav1.Taint) bool {
		return t.Effect == expinfrav1.TaintEffectPreferNoSchedule || slices.ContainsFunc(tolerations, func(x toleration) bool { return x.tolerates(t) })
	}
	return c.hasMachines() || slices.ContainsFunc(c.cluster.Pools, func(p manifest.Pool) bool {
		return p.Replicas() > 0 && (p.Managed == nil || !slices.ContainsFunc(p.Managed.Spec.Taints, func(t expinfrav1.Taint) bool { return !tolerated(t) }))
	})
}

// hasNodes reports whether the manifest has at least one node: a machine, or a pool with replicas.
func (c *checks) hasNodes() bool {
	return c.hasMachines() || slices.ContainsFunc(c.cluster.Pools, func(p manifest.Pool) bool { return p.Replicas() > 0 })
}

// hasMachines reports whether the manifest has machines that are in no pool.
func (c *checks) hasMachines() bool {
	return len(c.cluster.Machines) > 0 || slices.ContainsFunc(c.cluster.Deployments, func(d manifest.Deployment) bool { return d.Replicas() > 0 })
}
