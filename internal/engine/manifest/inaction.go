package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inaction is a field that exists and is not acted on.
type inaction struct {
	kinds  []string
	path   string // as in the manifest, of either version; [] stands for any index
	value  string // only this value; empty means any
	refuse bool   // ignoring it would make another cluster than the one described
	remark string
}

// annotation is the path of an annotation, before its name.
const annotation = "metadata.annotations."

// inactions is the list to shorten as features are added.
func inactions() []inaction {
	var (
		cluster    = []string{kindCluster}
		aws        = []string{kindAWSCluster}
		network    = []string{kindAWSCluster, kindManagedPlane}
		plane      = []string{kindControlPlane}
		deployment = []string{kindDeployment}
		template   = []string{kindAWSMachineTemplate}
		instance   = []string{kindAWSMachine}
	)
	rows := []inaction{
		{cluster, "spec.paused", "true", false, "it stops Cluster API's controllers, and there are none"},
		{cluster, "spec.availabilityGates", "", false, ""},
		{cluster, annotation + "cluster.x-k8s.io/paused", "", false, "it stops Cluster API's controllers, and there are none"},

		{[]string{kindAWSCluster, kindManagedCluster}, annotation + "cluster.x-k8s.io/managed-by", "", true, "the infrastructure cannot be left to someone else"},
		{network, "spec.network.vpc.ipamPool", "", true, "give the VPC a cidrBlock"},
		{network, "spec.network.vpc.ipv6.ipamPool", "", true, "only IPv6 ranges from Amazon are supported: write ipv6: {}"},
		{network, "spec.network.vpc.ipv6.poolId", "", true, "only IPv6 ranges from Amazon are supported: write ipv6: {}"},
		{network, "spec.network.vpc.carrierGatewayId", "", true, "Wavelength zones are not supported"},
		{network, "spec.network.subnets[].zoneType", "local-zone", true, "use subnets in availability zones"},
		{network, "spec.network.subnets[].zoneType", "wavelength-zone", true, "use subnets in availability zones"},
		{network, "spec.network.vpc.elasticIpPool", "", true, "addresses come from Amazon's pool"},
		{aws, "spec.controlPlaneLoadBalancer.disableHostsRewrite", "true", false, "no version of Cluster API Provider AWS reads it any more"},
		{aws, "spec.secondaryControlPlaneLoadBalancer.disableHostsRewrite", "true", false, "no version of Cluster API Provider AWS reads it any more"},

		{plane, "spec.remediation", "", false, "it acts only under a management cluster"},
		{plane, "spec.remediationStrategy", "", false, "it acts only under a management cluster"},

		{deployment, "spec.strategy.remediation", "", false, "it acts only under a management cluster"},
		{deployment, "spec.remediation", "", false, "it acts only under a management cluster"},
		{deployment, "spec.paused", "true", false, "it stops Cluster API's controllers, and there are none"},
		{deployment, "spec.minReadySeconds", "", false, ""},
		{deployment, "spec.progressDeadlineSeconds", "", false, "Cluster API dropped it"},
		{deployment, "spec.revisionHistoryLimit", "", false, "Cluster API dropped it"},

		{template, "spec.template.spec.elasticIpPool", "", true, "addresses come from Amazon's pool"},
		{instance, "spec.elasticIpPool", "", true, "addresses come from Amazon's pool"},
		{template, "spec.template.spec.dynamicHostAllocation", "", true, "name the dedicated host with hostID"},
		{instance, "spec.dynamicHostAllocation", "", true, "name the dedicated host with hostID"},
	}
	return append(append(rows, ofPools()...), repeated()...)
}

// ofPools lists the fields of pools and of EKS.
func ofPools() []inaction {
	const record = "it is a record that the controllers keep for themselves"
	var (
		endpoint = []string{kindManagedCluster, kindManagedPlane}
		group    = []string{kindScalingPool, kindManagedPool}
		pool     = []string{kindPool}
	)
	return []inaction{
		{endpoint, "spec.controlPlaneEndpoint", "", false, "EKS says where the API server is"},
		{endpoint, annotation + "cluster.x-k8s.io/paused", "", false, "it stops the controllers, and there are none"},
		{pool, annotation + "cluster.x-k8s.io/paused", "", false, "it stops the controllers, and there are none"},
		{pool, "spec.providerIDList", "", false, record},
		{pool, "spec.minReadySeconds", "", false, ""},
		{pool, "spec.template.spec.failureDomain", "", false, "a pool has failureDomains"},
		{pool, "spec.template.spec.providerID", "", false, record},
		{group, annotation + "cluster.x-k8s.io/paused", "", false, "it stops the controllers, and there are none"},
		{group, "spec.providerID", "", false, record},
		{group, "spec.providerIDList", "", false, record},
		{group, "spec.awsLaunchTemplate.name", "", false, "a launch template has the name of its pool"},
		{group, "spec.awsLaunchTemplate.versionNumber", "", false, "the newest version is used"},
	}
}

// repeated lists the fields that several kinds have in common.
func repeated() []inaction {
	var rows []inaction
	for _, where := range []struct{ kind, prefix string }{
		{kindControlPlane, "spec.machineTemplate.spec."},
		{kindControlPlane, "spec.machineTemplate."},
		{kindDeployment, "spec.template.spec."},
		{kindMachine, "spec."},
		{kindPool, "spec.template.spec."},
	} {
		names, remark := []string{"deletion.nodeDeletionTimeoutSeconds", "nodeDeletionTimeout"}, "a node is deleted when its machine is gone, however long the API server takes"
		if where.kind == kindPool {
			names, remark = []string{"deletion", "nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"}, ""
		}
		for _, name := range names {
			rows = append(rows, inaction{[]string{where.kind}, where.prefix + name, "", false, remark})
		}
		for _, name := range []string{"readinessGates", "minReadySeconds"} {
			rows = append(rows, inaction{[]string{where.kind}, where.prefix + name, "", false, ""})
		}
		rows = append(rows, inaction{[]string{where.kind}, where.prefix + "taints", "", false, "Cluster API refuses it too, unless its feature gate MachineTaintPropagation is on: have kubeadm set them, by nodeRegistration.taints"})
	}
	for kind, prefix := range map[string]string{
		kindControlPlane:   "spec.kubeadmConfigSpec.",
		kindConfig:         "spec.",
		kindConfigTemplate: "spec.template.spec.",
	} {
		rows = append(rows, inaction{[]string{kind}, prefix + "files[].contentFormat", "Template", true, "write the content without placeholders"})
		for _, name := range []string{"networking", "kubernetesVersion", "clusterName"} {
			rows = append(rows, inaction{[]string{kind}, prefix + "clusterConfiguration." + name, "", false, "Cluster API ignores it too: it comes from the Cluster and the Machine"})
		}
		rows = append(rows, inaction{[]string{kind}, prefix + "useExperimentalRetryJoin", "true", false, "Cluster API dropped it"})
	}
	return rows
}

// notActedOn tells which fields of an object have no effect. Only what the
// manifest sets counts, not defaults, so it runs before them.
func (l *loader) notActedOn(o *object) {
	index := regexp.MustCompile(`\[\d+\]`)
	for _, row := range inactions() {
		if !slices.Contains(row.kinds, o.kind) {
			continue
		}
		for _, path := range sortedPaths(o, row.path, index) {
			value := o.valueAt(path)
			if value == nil || row.value != "" && fmt.Sprint(value) != row.value {
				continue
			}
			p := o.problem("", "is not acted on yet", row.remark)
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

// valueAt is the value the manifest sets at a path; names of annotations hold
// dots.
func (o *object) valueAt(path string) any {
	if name, ok := strings.CutPrefix(path, annotation); ok {
		annotations, _ := at(o.value, "metadata.annotations").(map[string]any)
		return annotations[name]
	}
	return at(o.value, path)
}

// sortedPaths lists the paths an object sets that match a pattern.
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

// remove deletes a field from an object and tells whether it was there. List
// items stay, or the others would change their places.
func remove(object map[string]any, path string) bool {
	holder, _ := at(object, parent(path)).(map[string]any)
	if parent(path) == "" {
		holder = object
	}
	name := path[strings.LastIndexAny(path, ".[")+1:]
	_, found := holder[name]
	delete(holder, name)
	return found
}

// at is the value at a path of an object, or nil.
func at(value any, path string) any {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' }) {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(strings.TrimSuffix(step, "]"))
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
