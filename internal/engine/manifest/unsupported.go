package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// unsupportedField is a field that exists in the API but has no effect here.
type unsupportedField struct {
	kinds  []string
	path   string // as in the manifest, of either API version; [] stands for any index
	value  string // only this value; empty means any
	refuse bool   // an error: without the field, the cluster would not be as described
	remark string
}

// controllersSet is the remark about fields that controllers write.
const controllersSet = "controllers set it"

// annotation is the prefix of paths of annotations.
const annotation = "metadata.annotations."

// unsupportedFields lists all unsupported fields. Remove a field when it is implemented.
func unsupportedFields() []unsupportedField {
	const written = "Cluster API Provider AWS writes what it has found"
	var (
		cluster    = []string{kindCluster}
		aws        = []string{kindAWSCluster}
		network    = []string{kindAWSCluster, kindManagedPlane}
		plane      = []string{kindControlPlane}
		deployment = []string{kindDeployment}
		template   = []string{kindAWSMachineTemplate}
		instance   = []string{kindAWSMachine}
	)
	rows := []unsupportedField{
		{cluster, "spec.paused", "true", false, "it pauses Cluster API's controllers, which this program does not run"},
		{cluster, "spec.availabilityGates", "", false, ""},
		{[]string{kindClusterClass}, "spec.availabilityGates", "", false, ""},
		{cluster, annotation + "cluster.x-k8s.io/paused", "", false, "it pauses Cluster API's controllers, which this program does not run"},

		{[]string{kindManagedCluster}, annotation + "cluster.x-k8s.io/managed-by", "", false, "the AWSManagedControlPlane describes the infrastructure"},
		{network, "spec.network.vpc.ipamPool", "", true, "set cidrBlock of the VPC"},
		{network, "spec.network.vpc.ipv6.ipamPool", "", true, "only IPv6 ranges from Amazon are supported: write ipv6: {}"},
		{network, "spec.network.vpc.ipv6.poolId", "", true, "only IPv6 ranges from Amazon are supported: write ipv6: {}"},
		{network, "spec.network.vpc.carrierGatewayId", "", true, "the carrier gateway is created with the first public subnet in a Wavelength Zone"},
		{network, "spec.network.vpc.elasticIpPool", "", true, "addresses come from the pool of Amazon"},
		{network, "spec.network.vpc.tags", "", false, written + "; set additionalTags"},
		{network, "spec.network.vpc.internetGatewayId", "", false, written},
		{network, "spec.network.subnets[].routeTableId", "", false, written},
		{network, "spec.network.subnets[].natGatewayId", "", false, written},
		{aws, "spec.controlPlaneLoadBalancer.disableHostsRewrite", "true", false, "Cluster API Provider AWS ignores it too"},
		{aws, "spec.secondaryControlPlaneLoadBalancer.disableHostsRewrite", "true", false, "Cluster API Provider AWS ignores it too"},

		{plane, "spec.remediation", "", false, "each run replaces at most one unhealthy machine of the control plane, and does not count"},
		{plane, "spec.remediationStrategy", "", false, "each run replaces at most one unhealthy machine of the control plane, and does not count"},
		{[]string{kindHealthCheck}, "spec.checks.unhealthyMachineConditions", "", false, "Machines have conditions only in a management cluster; Nodes are checked"},
		{[]string{kindHealthCheck}, "spec.unhealthyMachineConditions", "", false, "Machines have conditions only in a management cluster; Nodes are checked"},

		{deployment, "spec.paused", "true", false, "it pauses Cluster API's controllers, which this program does not run"},
		{deployment, "spec.minReadySeconds", "", false, ""},
		{deployment, "spec.progressDeadlineSeconds", "", false, "Cluster API has removed it"},
		{deployment, "spec.revisionHistoryLimit", "", false, "Cluster API has removed it"},

		{template, "spec.template.spec.instanceID", "", false, controllersSet},
		{instance, "spec.instanceID", "", false, controllersSet},
		{instance, "spec.providerID", "", false, controllersSet},
		{[]string{kindMachine}, "spec.providerID", "", false, controllersSet},
		{deployment, "spec.template.spec.providerID", "", false, controllersSet},
		{
			[]string{kindManagedPlane},
			"spec.network.additionalControlPlaneIngressRules",
			"",
			false,
			"they are for the security group of self-managed control planes; EKS has another one",
		},
		{template, "spec.template.spec.elasticIpPool", "", true, "addresses come from the pool of Amazon"},
		{instance, "spec.elasticIpPool", "", true, "addresses come from the pool of Amazon"},
		{template, "spec.template.spec.dynamicHostAllocation", "", true, "set hostID to the dedicated host"},
		{instance, "spec.dynamicHostAllocation", "", true, "set hostID to the dedicated host"},
	}
	return append(append(rows, ofPools()...), repeated()...)
}

// ofPools lists the unsupported fields of pools and of EKS.
func ofPools() []unsupportedField {
	var (
		endpoint = []string{kindManagedCluster, kindManagedPlane}
		group    = []string{kindScalingPool, kindManagedPool}
		pool     = []string{kindPool}
	)
	return []unsupportedField{
		{endpoint, "spec.controlPlaneEndpoint", "", false, "EKS sets the endpoint of the API server"},
		{endpoint, annotation + "cluster.x-k8s.io/paused", "", false, "it pauses the controllers, which this program does not run"},
		{pool, annotation + "cluster.x-k8s.io/paused", "", false, "it pauses the controllers, which this program does not run"},
		{pool, "spec.providerIDList", "", false, controllersSet},
		{pool, "spec.minReadySeconds", "", false, ""},
		{pool, "spec.template.spec.failureDomain", "", false, "use failureDomains of the pool"},
		{pool, "spec.template.spec.providerID", "", false, controllersSet},
		{group, annotation + "cluster.x-k8s.io/paused", "", false, "it pauses the controllers, which this program does not run"},
		{group, "spec.providerID", "", false, controllersSet},
		{group, "spec.providerIDList", "", false, controllersSet},
		{group, "spec.awsLaunchTemplate.name", "", false, "a launch template has the name of its pool"},
		{group, "spec.awsLaunchTemplate.versionNumber", "", false, "the newest version is used"},
	}
}

// repeated lists the unsupported fields that several kinds have in common.
func repeated() []unsupportedField {
	var rows []unsupportedField
	for _, where := range []struct{ kind, prefix string }{
		{kindControlPlane, "spec.machineTemplate.spec."},
		{kindControlPlane, "spec.machineTemplate."},
		{kindDeployment, "spec.template.spec."},
		{kindMachine, "spec."},
		{kindPool, "spec.template.spec."},
	} {
		names, remark := []string{"deletion.nodeDeletionTimeoutSeconds", "nodeDeletionTimeout"}, "the Node is deleted after its machine, without a timeout"
		if where.kind == kindPool {
			names, remark = []string{"deletion", "nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"}, ""
		}
		for _, name := range names {
			rows = append(rows, unsupportedField{[]string{where.kind}, where.prefix + name, "", false, remark})
		}
		for _, name := range []string{"readinessGates", "minReadySeconds"} {
			rows = append(rows, unsupportedField{[]string{where.kind}, where.prefix + name, "", false, ""})
		}
		rows = append(
			rows,
			unsupportedField{
				[]string{where.kind},
				where.prefix + "taints",
				"",
				false,
				"Cluster API rejects it too, unless its feature gate MachineTaintPropagation is enabled; use nodeRegistration.taints of the kubeadm configuration",
			},
		)
	}
	for kind, prefix := range map[string]string{
		kindControlPlane:   "spec.kubeadmConfigSpec.",
		kindConfig:         "spec.",
		kindConfigTemplate: "spec.template.spec.",
	} {
		rows = append(rows, unsupportedField{[]string{kind}, prefix + "files[].contentFormat", "Template", true, "write the content without placeholders"})
		for _, name := range []string{"networking", "kubernetesVersion", "clusterName"} {
			rows = append(
				rows,
				unsupportedField{
					[]string{kind},
					prefix + "clusterConfiguration." + name,
					"",
					false,
					"Cluster API ignores it too: it uses the values of the Cluster and the Machine",
				},
			)
		}
		rows = append(rows, unsupportedField{[]string{kind}, prefix + "useExperimentalRetryJoin", "true", false, "Cluster API has removed it"})
	}
	return rows
}

// checkUnsupported reports fields of an object that have no effect. It runs before
// defaults are set, so that only fields in the manifest are reported.
func (l *loader) checkUnsupported(o *object) {
	index := regexp.MustCompile(`\[\d+\]`)
	for _, row := range unsupportedFields() {
		if !slices.Contains(row.kinds, o.kind) {
			continue
		}
		for _, path := range sortedPaths(o, row.path, index) {
			value := o.valueAt(path)
			if value == nil || row.value != "" && fmt.Sprint(value) != row.value {
				continue
			}
			p := o.problem("", "is ignored: not supported yet", row.remark)
			p.Path, p.Position = path, o.position(path)
			if row.value != "" && row.value != "true" {
				p.What = fmt.Sprintf("%q is not supported yet", row.value)
			} else if row.refuse {
				p.What = "is not supported yet"
			}
			if row.refuse {
				l.fail(p)
			} else {
				l.warn(p)
			}
		}
	}
}

// sortedPaths returns the paths in the manifest that match a pattern.
func sortedPaths(o *object, pattern string, index *regexp.Regexp) []string {
	if !strings.Contains(pattern, "[]") {
		if _, set := o.set[pattern]; set {
			return []string{pattern}
		}
		return nil
	}
	var paths []string
	for path := range o.set {
		if index.ReplaceAllString(path, "[]") == pattern {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// remove deletes a field of an object and reports whether it existed. List items are not
// removed, because the others would move.
func remove(object map[string]any, path string) bool {
	holder, _ := valueAt(object, parent(path)).(map[string]any)
	if parent(path) == "" {
		holder = object
	}
	name := path[strings.LastIndexAny(path, ".[")+1:]
	_, found := holder[name]
	delete(holder, name)
	return found
}
