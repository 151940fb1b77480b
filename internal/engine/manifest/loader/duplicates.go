package loader

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// keyed is a list in a manifest of which AWS, or Kubernetes, stores the items by a key.
type keyed struct {
	kinds []string
	path  string // of an item: "spec.addons[]"
	// keys returns the keys of an item; nil: the values of fields, joined.
	keys   func(item any) []string
	fields []string
	// what names the key, as in "the same … as line 12".
	what, fix string
	strict    bool   // equal items are refused, too
	apart     string // items are only refused if this field differs; "" for any
	old       bool   // only objects of v1beta1: the schema of v1beta2 has the key
}

// keyedLists lists the lists with a key, except for those whose schema has it.
func keyedLists() (all []keyed) {
	const one = "remove one of them"
	planes := []string{manifest.KindManagedPlane}
	networks := []string{manifest.KindAWSCluster, manifest.KindManagedPlane}
	all = []keyed{
		{
			kinds: planes, path: "spec.accessEntries[].accessPolicies[]", fields: []string{"policyARN"},
			what: "policyARN: EKS associates a policy with a principal once, with one scope", fix: "name it once, and list all namespaces in its accessScope.namespaces",
		},
		{
			kinds:  planes,
			path:   "spec.accessEntries[]",
			fields: []string{"principalARN"},
			what:   "principalARN: EKS has one access entry for a principal",
			fix:    one,
			strict: true,
		},
		{kinds: planes, path: "spec.addons[]", fields: []string{"name"}, what: "name", fix: one, strict: true},
		{kinds: planes, path: "spec.vpcCni.env[]", fields: []string{"name"}, what: "name", fix: one, strict: true},
		{
			kinds:  planes,
			path:   "spec.iamAuthenticatorConfig.mapRoles[]",
			fields: []string{"rolearn"},
			what:   "rolearn: the ConfigMap aws-auth has one entry for a role",
			fix:    "name it once, with all groups",
		},
		{
			kinds:  planes,
			path:   "spec.iamAuthenticatorConfig.mapUsers[]",
			fields: []string{"userarn"},
			what:   "userarn: the ConfigMap aws-auth has one entry for a user",
			fix:    "name it once, with all groups",
		},
		{kinds: networks, path: "spec.network.vpc.secondaryCidrBlocks[]", keys: blockIn("ipv4CidrBlock"), what: "block", fix: one, strict: true},
		{kinds: networks, path: "spec.network.subnets[]", keys: idOf, what: "id", fix: "give each subnet an id of its own", strict: true, old: true},
		{kinds: networks, path: "spec.network.subnets[]", keys: blockIn("cidrBlock"), what: "cidrBlock", fix: "give each subnet a block of its own", strict: true},
		{
			kinds:  networks,
			path:   "spec.network.subnets[]",
			keys:   blockIn("ipv6CidrBlock"),
			what:   "ipv6CidrBlock",
			fix:    "give each subnet a block of its own",
			strict: true,
		},
		{kinds: []string{manifest.KindManagedPool}, path: "spec.taints[]", fields: []string{"key", "effect"}, what: "key and effect", fix: one, strict: true},
		{
			kinds:  []string{manifest.KindScalingPool, manifest.KindManagedPool},
			path:   "spec.lifecycleHooks[]",
			fields: []string{"name"},
			what:   "name",
			fix:    one,
			strict: true,
		},
		{
			kinds:  []string{manifest.KindScalingPool},
			path:   "spec.mixedInstancesPolicy.overrides[]",
			fields: []string{"instanceType"},
			what:   "instanceType",
			fix:    one,
			strict: true,
		},
	}
	for _, list := range []string{"network.cni.cniIngressRules", "network.additionalControlPlaneIngressRules", "network.additionalNodeIngressRules", "controlPlaneLoadBalancer.ingressRules", "secondaryControlPlaneLoadBalancer.ingressRules"} {
		all = append(all, keyed{
			kinds: networks,
			path:  "spec." + list + "[]",
			keys:  ruleKeys,
			what:  "protocol, ports and source: EC2 stores one rule for them, with one description",
			fix:   one,
			apart: "description",
		})
	}
	all = append(all, sets()...)
	for _, at := range []struct{ kind, path string }{
		{manifest.KindAWSMachineTemplate, "spec.template.spec."}, {manifest.KindAWSMachine, "spec."}, {manifest.KindScalingPool, "spec.awsLaunchTemplate."}, {manifest.KindManagedPool, "spec.awsLaunchTemplate."},
	} {
		all = append(
			all,
			keyed{
				kinds:  []string{at.kind},
				path:   at.path + "nonRootVolumes[]",
				fields: []string{"deviceName"},
				what:   "deviceName: a machine has one volume for it",
				fix:    "give each volume a device of its own",
				strict: true,
			},
		)
	}
	for _, at := range []struct{ kind, path string }{
		{manifest.KindControlPlane, "spec.kubeadmConfigSpec."}, {manifest.KindConfig, "spec."}, {manifest.KindConfigTemplate, "spec.template.spec."},
	} {
		for _, phase := range []string{"initConfiguration", "joinConfiguration"} {
			all = append(all, keyed{
				kinds: []string{at.kind}, path: at.path + phase + ".nodeRegistration.taints[]", fields: []string{"key", "effect"},
				what: "key and effect: Kubernetes refuses the Node", fix: one, strict: true,
			})
		}
	}
	return all
}

// sets lists the lists of values of which AWS, or Kubernetes, stores each once, in whatever order.
func sets() (all []keyed) {
	planes, networks, groups := []string{
		manifest.KindManagedPlane,
	}, []string{
		manifest.KindAWSCluster,
		manifest.KindManagedPlane,
	}, []string{
		manifest.KindManagedPool,
	}
	for _, list := range []struct {
		kinds  []string
		path   string
		blocks bool // of addresses
	}{
		{planes, "spec.accessEntries[].kubernetesGroups", false},
		{planes, "spec.accessEntries[].accessPolicies[].accessScope.namespaces", false},
		{planes, "spec.endpointAccess.publicCIDRs", true},
		{planes, "spec.encryptionConfig.resources", false},
		{planes, "spec.iamAuthenticatorConfig.mapRoles[].groups", false},
		{planes, "spec.iamAuthenticatorConfig.mapUsers[].groups", false},
		{planes, "spec.roleAdditionalPolicies", false},
		{networks, "spec.bastion.allowedCIDRBlocks", true},
		{networks, "spec.network.nodePortIngressRuleCidrBlocks", true},
		{networks, "spec.controlPlaneLoadBalancer.subnets", false},
		{networks, "spec.controlPlaneLoadBalancer.additionalSecurityGroups", false},
		{networks, "spec.secondaryControlPlaneLoadBalancer.subnets", false},
		{networks, "spec.secondaryControlPlaneLoadBalancer.additionalSecurityGroups", false},
		{groups, "spec.roleAdditionalPolicies", false},
		{groups, "spec.remoteAccess.sourceSecurityGroups", false},
		{append([]string{manifest.KindScalingPool}, groups...), "spec.availabilityZones", false},
		{append([]string{manifest.KindFargateProfile}, groups...), "spec.subnetIDs", false},
	} {
		k := keyed{kinds: list.kinds, path: list.path + "[]", keys: itself, what: "value", fix: "remove one of them", strict: true}
		if list.blocks {
			k.keys, k.what = itselfMasked, "block"
		}
		all = append(all, k)
	}
	return append(
		all,
		keyed{kinds: []string{manifest.KindScalingPool}, path: "spec.subnets[]", fields: []string{"id"}, what: "id", fix: "remove one of them", strict: true},
		keyed{
			kinds:  []string{manifest.KindFargateProfile},
			path:   "spec.selectors[]",
			keys:   selectorKey,
			what:   "namespace and labels",
			fix:    "remove one of them",
			strict: true,
		},
	)
}

// idOf returns the id of an item, if it has one.
func idOf(item any) []string {
	if id, _ := manifest.ValueAt(item, "id").(string); id != "" {
		return []string{id}
	}
	return nil
}

func itself(item any) []string { return []string{fmt.Sprint(item)} }

func itselfMasked(item any) []string { return []string{masked(fmt.Sprint(item))} }

// selectorKey returns the key of a selector of a Fargate profile.
func selectorKey(item any) []string {
	return []string{fmt.Sprint(manifest.ValueAt(item, "namespace"), " ", manifest.ValueAt(item, "labels"))} // fmt sorts the keys of maps
}

// checkKeyed rejects two lines of an object that are stored as one: the second replaces the
// first, or AWS refuses it.
func (l *loader) checkKeyed(o *manifest.Entry) {
	index := regex.Of(`\[\d+\]`)
	for _, list := range keyedLists() {
		if !slices.Contains(list.kinds, o.Kind) || list.old && o.Version != manifest.VersionOld {
			continue
		}
		first := map[string]string{} // the path of the first item, by the list and the key
		for _, path := range itemPaths(o, list.path, index) {
			item := o.ValueAt(path)
			for _, key := range list.keysOf(item) {
				key = manifest.Parent(path) + " " + key
				other, twice := first[key]
				switch {
				case !twice:
					first[key] = path
				case list.strict || list.differ(item, o.ValueAt(other)):
					l.fail(storedAsOne(o, path, other, list))
				}
			}
		}
	}
	l.checkRootDevice(o)
}

// differ reports whether two items with the same key cannot both be stored.
func (k keyed) differ(a, b any) bool {
	if k.apart != "" {
		return manifest.ValueAt(a, k.apart) != manifest.ValueAt(b, k.apart)
	}
	return !reflect.DeepEqual(a, b)
}

func storedAsOne(o *manifest.Entry, path, other string, list keyed) manifest.Problem {
	what, why, _ := strings.Cut(list.what, ": ")
	if why != "" {
		why = ": " + why
	}
	p := o.Problem(
		"",
		fmt.Sprintf("the same %s as %s (line %d)%s", what, strings.TrimPrefix(other, manifest.Parent(manifest.Parent(path))+"."), o.Position(other).Line, why),
		list.fix,
	)
	p.Path, p.Position = path, o.Position(path)
	return p
}

// itemPaths returns the paths of the items that match a pattern, in the order of the list.
func itemPaths(o *manifest.Entry, pattern string, index *regexp.Regexp) []string {
	paths := sortedPaths(o, pattern, index)
	slices.SortStableFunc(paths, func(a, b string) int { return len(a) - len(b) }) // item 10 after item 9
	return paths
}

// keysOf returns the keys of an item; none if it has none.
func (k keyed) keysOf(item any) []string {
	if k.keys != nil {
		return k.keys(item)
	}
	var parts []string
	for _, f := range k.fields {
		parts = append(parts, fmt.Sprint(manifest.ValueAt(item, f)))
	}
	if manifest.ValueAt(item, k.fields[0]) == nil {
		return nil
	}
	return []string{strings.Join(parts, " ")}
}

// blockIn returns the CIDR block in a field, as AWS stores it.
func blockIn(name string) func(item any) []string {
	return func(item any) []string {
		text, _ := manifest.ValueAt(item, name).(string)
		if text == "" {
			return nil
		}
		return []string{masked(text)}
	}
}

// masked returns a CIDR block without the bits of a host.
func masked(block string) string {
	if p, err := netip.ParsePrefix(block); err == nil {
		return p.Masked().String()
	}
	return block
}

// ruleKeys returns the keys of a rule of a security group: one for each source.
func ruleKeys(item any) (keys []string) {
	protocol := fmt.Sprint(manifest.ValueAt(item, "protocol"))
	ports := fmt.Sprint(manifest.ValueAt(item, "fromPort"), "-", manifest.ValueAt(item, "toPort"))
	if protocol == "-1" || protocol == "4" || protocol == "50" { // they have no ports
		ports = ""
	}
	add := func(source string) { keys = append(keys, strings.Join([]string{protocol, ports, source}, " ")) }
	for _, list := range []string{"cidrBlocks", "ipv6CidrBlocks", "sourceSecurityGroupIds", "sourceSecurityGroupRoles"} {
		sources, _ := manifest.ValueAt(item, list).([]any)
		for _, source := range sources {
			add(masked(fmt.Sprint(source)))
		}
	}
	switch nat := manifest.ValueAt(item, "natGatewaysIPsSource"); {
	case nat == true:
		add("NAT gateways")
	case len(keys) == 0:
		add("") // its default
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// checkRootDevice rejects a volume with the device of the root volume.
func (l *loader) checkRootDevice(o *manifest.Entry) {
	for _, prefix := range []string{"spec.template.spec.", "spec.", "spec.awsLaunchTemplate."} {
		root, _ := o.ValueAt(prefix + "rootVolume.deviceName").(string)
		volumes, _ := o.ValueAt(prefix + "nonRootVolumes").([]any)
		for i, v := range volumes {
			if root != "" && manifest.ValueAt(v, "deviceName") == root {
				l.fail(storedAsOne(o, fmt.Sprintf("%snonRootVolumes[%d]", prefix, i), prefix+"rootVolume", keyed{
					what: "deviceName: a machine has one volume for it", fix: "give each volume a device of its own",
				}))
			}
		}
	}
}
