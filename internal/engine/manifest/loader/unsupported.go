package loader

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
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

// writtenByCAPA is the remark about fields that CAPA's controllers write.
const writtenByCAPA = "Cluster API Provider AWS writes what it has found"

// setByEKS is the remark about the endpoint of EKS, which CAPA's controllers write too.
const setByEKS = "EKS sets the endpoint of the API server"

// pauses is the remark about fields that pause controllers.
const pauses = "it pauses Cluster API's controllers, which this program does not run"

// unsupportedFields lists all unsupported fields. Remove a field when it is implemented.
func unsupportedFields() []unsupportedField {
	var (
		cluster    = []string{manifest.KindCluster}
		aws        = []string{manifest.KindAWSCluster}
		network    = []string{manifest.KindAWSCluster, manifest.KindManagedPlane}
		plane      = []string{manifest.KindControlPlane}
		deployment = []string{manifest.KindDeployment}
		template   = []string{manifest.KindAWSMachineTemplate}
		instance   = []string{manifest.KindAWSMachine}
	)
	rows := []unsupportedField{
		{[]string{manifest.KindCluster, manifest.KindDeployment}, "spec.paused", "true", false, pauses},
		{cluster, "spec.availabilityGates", "", false, ""},
		{[]string{manifest.KindClusterClass}, "spec.availabilityGates", "", false, ""},
		{
			[]string{
				manifest.KindCluster, manifest.KindAWSCluster, manifest.KindManagedCluster, manifest.KindControlPlane, manifest.KindManagedPlane,
				manifest.KindDeployment, manifest.KindMachine, manifest.KindAWSMachine, manifest.KindPool, manifest.KindScalingPool, manifest.KindManagedPool,
				manifest.KindResourceSet, manifest.KindHelmChart,
			},
			manifest.InAnnotations + clusterv1.PausedAnnotation, "", false, pauses,
		},

		{
			[]string{manifest.KindManagedCluster},
			manifest.InAnnotations + "cluster.x-k8s.io/managed-by",
			"",
			false,
			"the AWSManagedControlPlane describes the infrastructure",
		},
		{network, "spec.network.vpc.ipamPool", "", true, "set cidrBlock of the VPC"},
		{network, "spec.network.vpc.ipv6.ipamPool", "", true, "only IPv6 ranges from Amazon are supported: write ipv6: {}"},
		{network, "spec.network.vpc.ipv6.poolId", "", true, "only IPv6 ranges from Amazon are supported: write ipv6: {}"},
		{network, "spec.network.vpc.carrierGatewayId", "", true, "the carrier gateway is created with the first public subnet in a Wavelength Zone"},
		{network, "spec.network.vpc.elasticIpPool", "", true, "addresses come from the pool of Amazon"},
		{network, "spec.network.vpc.tags", "", false, writtenByCAPA + "; set additionalTags"},
		{network, "spec.network.vpc.internetGatewayId", "", false, writtenByCAPA},
		{network, "spec.network.vpc.ipv6.egressOnlyInternetGatewayId", "", false, writtenByCAPA},
		{network, "spec.network.subnets[].routeTableId", "", false, writtenByCAPA},
		{network, "spec.network.subnets[].natGatewayId", "", false, writtenByCAPA},
		{aws, "spec.controlPlaneLoadBalancer.disableHostsRewrite", "true", false, "Cluster API Provider AWS ignores it too"},
		{aws, "spec.secondaryControlPlaneLoadBalancer.disableHostsRewrite", "true", false, "Cluster API Provider AWS ignores it too"},

		{plane, "spec.remediation", "", false, "each run replaces at most one unhealthy machine of the control plane, and does not count"},
		{plane, "spec.remediationStrategy", "", false, "each run replaces at most one unhealthy machine of the control plane, and does not count"},
		{
			[]string{manifest.KindHealthCheck},
			"spec.checks.unhealthyMachineConditions",
			"",
			false,
			"Machines have conditions only in a management cluster; Nodes are checked",
		},
		{
			[]string{manifest.KindHealthCheck},
			"spec.unhealthyMachineConditions",
			"",
			false,
			"Machines have conditions only in a management cluster; Nodes are checked",
		},

		{deployment, "spec.minReadySeconds", "", false, ""},
		{deployment, "spec.progressDeadlineSeconds", "", false, "Cluster API has removed it"},
		{deployment, "spec.revisionHistoryLimit", "", false, "Cluster API has removed it"},

		{template, "spec.template.spec.instanceID", "", false, controllersSet},
		{instance, "spec.instanceID", "", false, controllersSet},
		{instance, "spec.providerID", "", false, controllersSet},
		{[]string{manifest.KindMachine}, "spec.providerID", "", false, controllersSet},
		{deployment, "spec.template.spec.providerID", "", false, controllersSet},
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
		endpoint = []string{manifest.KindManagedCluster, manifest.KindManagedPlane}
		group    = []string{manifest.KindScalingPool, manifest.KindManagedPool}
		pool     = []string{manifest.KindPool}
	)
	return []unsupportedField{
		{endpoint, "spec.controlPlaneEndpoint", "", false, setByEKS},
		{pool, "spec.providerIDList", "", false, controllersSet},
		{pool, "spec.minReadySeconds", "", false, ""},
		{pool, "spec.template.spec.failureDomain", "", false, "use failureDomains of the pool"},
		{pool, "spec.template.spec.providerID", "", false, controllersSet},
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
		{manifest.KindControlPlane, "spec.machineTemplate.spec."},
		{manifest.KindControlPlane, "spec.machineTemplate."},
		{manifest.KindDeployment, "spec.template.spec."},
		{manifest.KindMachine, "spec."},
		{manifest.KindPool, "spec.template.spec."},
	} {
		names, remark := []string{"deletion.nodeDeletionTimeoutSeconds", "nodeDeletionTimeout"}, "the Node is deleted after its machine, without a timeout"
		if where.kind == manifest.KindPool {
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
		manifest.KindControlPlane:   "spec.kubeadmConfigSpec.",
		manifest.KindConfig:         "spec.",
		manifest.KindConfigTemplate: "spec.template.spec.",
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
func (l *loader) checkUnsupported(o *manifest.Entry) {
	index := regex.Of(`\[\d+\]`)
	for _, row := range unsupportedFields() {
		if !slices.Contains(row.kinds, o.Kind) {
			continue
		}
		for _, path := range sortedPaths(o, row.path, index) {
			value, row := o.ValueAt(path), row.found(o)
			if isUnset(path, value, row.refuse) || row.value != "" && fmt.Sprint(value) != row.value {
				continue
			}
			p := o.Problem("", "is ignored: not supported yet", row.remark)
			if !row.refuse && isReason(row.remark) { // nothing is missing here
				reason, fix, _ := strings.Cut(row.remark, "; ")
				p = o.Problem("", "has no effect: "+reason, fix)
			}
			p.Path, p.Position = path, o.Position(path)
			if row.value != "" && row.value != "true" {
				p.What = fmt.Sprintf("%q is not supported yet", row.value)
			} else if row.refuse {
				p.What = "is not supported yet"
			}
			if row.refuse {
				l.fail(p)
				l.invalid[o] = append(l.invalid[o], path) // a webhook's rule about it follows
			} else {
				l.warn(p)
			}
		}
	}
}

// found returns the row for a VPC that exists: CAPA writes its carrier gateway and its pool of IPv6 addresses into the manifest, with the ID
// of the VPC (pkg/cloud/services/network/carriergateways.go and vpc.go of v2.13.0). Even those of Amazon have a pool.
func (row unsupportedField) found(o *manifest.Entry) unsupportedField {
	written := row.path == "spec.network.vpc.carrierGatewayId" || row.path == "spec.network.vpc.ipv6.poolId"
	if written && !manifest.IsZero(o.ValueAt("spec.network.vpc.id")) {
		row.refuse, row.remark = false, writtenByCAPA
	}
	return row
}

// isReason reports whether the remark about a field says why it has no effect, here and with Cluster API.
func isReason(remark string) bool {
	return slices.ContainsFunc([]string{
		controllersSet, writtenByCAPA, setByEKS, pauses, "Cluster API has removed it", "Cluster API ignores it too", "Cluster API Provider AWS ignores it too",
	}, func(reason string) bool { return strings.HasPrefix(remark, reason) })
}

// isUnset reports whether a field has the value of one that is not set. An annotation counts by its name, and {} may be
// a setting that is refused.
func isUnset(path string, value any, refused bool) bool {
	if _, isMap := value.(map[string]any); isMap && refused || strings.HasPrefix(path, "metadata.") {
		return value == nil
	}
	return manifest.IsZero(value)
}

// sortedPaths returns the paths in the manifest that match a pattern.
func sortedPaths(o *manifest.Entry, pattern string, index *regexp.Regexp) []string {
	if !strings.Contains(pattern, "[]") {
		if _, set := o.Lines[pattern]; set {
			return []string{pattern}
		}
		return nil
	}
	var paths []string
	for path := range o.Lines {
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
	holder, _ := manifest.ValueAt(object, manifest.Parent(path)).(map[string]any)
	if manifest.Parent(path) == "" {
		holder = object
	}
	name := path[strings.LastIndexAny(path, ".[")+1:]
	_, found := holder[name]
	delete(holder, name)
	return found
}
