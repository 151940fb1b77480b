package rules

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Environment variables of the VPC CNI. With an invalid value, its pods exit, and no node becomes ready (validateEnvVars and validateMTU in
// cmd/aws-vpc-cni/main.go, isConfigValid and getNetworkPolicyMode in pkg/ipamd/ipamd.go of https://github.com/aws/amazon-vpc-cni-k8s).
const (
	cniIPv4     = "ENABLE_IPv4"
	cniIPv6     = "ENABLE_IPv6"
	cniPrefixes = "ENABLE_PREFIX_DELEGATION"
	cniCustom   = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
)

// cniVariable is the value of an environment variable of the VPC CNI, and the field of the manifest that sets it.
type cniVariable struct{ value, at string }

// cniEnvironment are the variables of the VPC CNI that a manifest sets.
type cniEnvironment map[string]cniVariable

// cniVariables returns the variables that a manifest sets in the configuration of the add-on, and in vpcCni.env, which is applied later.
func (c *checks) cniVariables() cniEnvironment {
	all := cniEnvironment{}
	plane := &c.cluster.EKS.ControlPlane.Spec
	if plane.Addons != nil {
		for i, addon := range *plane.Addons {
			var given struct{ Env map[string]any }
			if addon.Name != "vpc-cni" || yaml.Unmarshal([]byte(addon.Configuration), &given) != nil {
				continue
			}
			for name, value := range given.Env {
				all[name] = cniVariable{fmt.Sprint(value), fmt.Sprintf("spec.addons[%d].configuration", i)}
			}
		}
	}
	for i, e := range plane.VpcCni.Env {
		delete(all, e.Name)
		if e.ValueFrom == nil {
			all[e.Name] = cniVariable{e.Value, fmt.Sprintf("spec.vpcCni.env[%d]", i)}
		}
	}
	return all
}

// text returns the value of a variable, or its usual value if the manifest does not set it.
func (e cniEnvironment) text(name, usual string) string {
	if v, set := e[name]; set {
		return v.value
	}
	return usual
}

// on reports whether a variable is true. A value that is neither true nor false counts as false (GetBoolAsStringEnvVar in utils/utils.go).
func (e cniEnvironment) on(name string, usual bool) bool {
	on, err := strconv.ParseBool(e.text(name, strconv.FormatBool(usual)))
	return err == nil && on
}

// checkVPCCNI checks the variables of the VPC CNI.
func (c *checks) checkVPCCNI() {
	if !c.cluster.HasVPCCNI() {
		return
	}
	env, later := c.cniVariables(), c.warn
	if c.hasRecentCNI() {
		later = c.fail
	}
	report := func(to func(manifest.Problem), name, what, fix string) {
		if v, set := env[name]; set {
			to(c.infra.Problem(v.at, fmt.Sprintf("%s is %q: %s", name, v.value, what), fix))
		}
	}
	c.checkFamilyOfCNI(env, func(name, what, fix string) { report(c.fail, name, what, fix) })
	c.checkNamesOfCNI(env, func(name, what, fix string) { report(c.fail, name, what, fix) })
	c.checkNumbersOfCNI(env, func(name, what, fix string) { report(later, name, what, fix) })
	if env.on(cniCustom, false) && !c.hasENIConfigs() {
		report(c.warn, cniCustom, "without an ENIConfig for each zone, pods get no addresses, and nothing in the manifest makes one",
			"set spec.secondaryCidrBlock, add ENIConfigs to a ClusterResourceSet, or remove it")
	}
}

// hasRecentCNI reports whether the version of the VPC CNI is certain to enforce the rules of checkNumbersOfCNI. The version is that of the add-on,
// or the one that EKS installs for the Kubernetes version.
func (c *checks) hasRecentCNI() bool {
	const recent, kubernetes = 18, 31
	if addon := c.cluster.VPCCNI(); addon != nil && addon.Version != "" {
		v, err := semver.Parse(strings.TrimPrefix(addon.Version, "v"))
		return err == nil && (v.Major > 1 || v.Minor >= recent)
	}
	v, err := semver.ParseTolerant(c.cluster.Version)
	return err == nil && v.Minor >= kubernetes
}

// checkFamilyOfCNI checks that the VPC CNI uses the IP family of the cluster.
func (c *checks) checkFamilyOfCNI(env cniEnvironment, fail func(name, what, fix string)) {
	const exits, fix = "the VPC CNI does not start", "remove it: EKS sets it"
	six := c.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 != nil
	family := map[bool]string{true: "6", false: "4"}[six]
	if env.on(cniIPv6, six) != six {
		fail(cniIPv6, fmt.Sprintf("pods of the cluster have IPv%s addresses, and %s", family, exits), fix)
	}
	if env.on(cniIPv4, !six) == six {
		fail(cniIPv4, fmt.Sprintf("pods of the cluster have IPv%s addresses, and %s", family, exits), fix)
	}
	if six && !env.on(cniPrefixes, true) {
		fail(cniPrefixes, "pods have IPv6 addresses from prefixes only, and "+exits, fix)
	}
	if six && env.on(cniCustom, false) {
		fail(cniCustom, "custom networking is for IPv4 clusters, and "+exits, "remove it")
	}
	if six && env.on("DISABLE_POD_V6", false) {
		fail("DISABLE_POD_V6", "pods of the cluster have IPv6 addresses only, and would have none", "remove it")
	}
}

// checkNamesOfCNI checks variables whose value is a name, a path or one of a few words.
func (c *checks) checkNamesOfCNI(env cniEnvironment, fail func(name, what, fix string)) {
	const veth, mode, exits = "AWS_VPC_K8S_CNI_VETHPREFIX", "POD_SECURITY_GROUP_ENFORCING_MODE", "the VPC CNI does not start"
	if prefix := env.text(veth, "eni"); len(prefix) > 4 || slices.Contains([]string{"eth", "lo", "vlan"}, prefix) {
		fail(veth, exits+": it has at most 4 characters, and is none of eth, lo and vlan", "remove it")
	}
	if env.on("ENABLE_POD_ENI", false) && !slices.Contains([]string{"strict", "standard"}, env.text(mode, "strict")) {
		fail(mode, exits, "use strict or standard")
	}
	if env.text("AWS_VPC_K8S_PLUGIN_LOG_FILE", "") == "stdout" {
		fail("AWS_VPC_K8S_PLUGIN_LOG_FILE", exits, "use stderr, or the name of a file")
	}
	for name, folder := range map[string]string{"HOST_CNI_BIN_PATH": "/host/opt/cni/bin", "HOST_CNI_CONFDIR_PATH": "/host/etc/cni/net.d"} {
		if given := env.text(name, folder); path.Clean(given) != folder {
			fail(name, "the machine would not have the pod network's files: the DaemonSet aws-node mounts "+folder, "remove it")
		}
	}
}

// checkNumbersOfCNI checks numbers, and other values that only later versions of the VPC CNI validate.
func (c *checks) checkNumbersOfCNI(env cniEnvironment, fail func(name, what, fix string)) {
	const policies, cooldown, exits = "NETWORK_POLICY_ENFORCING_MODE", "IP_COOLDOWN_PERIOD", "the VPC CNI does not start"
	const most, least, leastOfIPv6 = 9001, 576, 1280
	if !slices.Contains([]string{"none", "strict", "standard"}, strings.ToLower(env.text(policies, "standard"))) {
		fail(policies, exits, "use standard, strict or none")
	}
	if n, err := strconv.Atoi(env.text(cooldown, "30")); err != nil || n < 0 {
		fail(cooldown, exits+": it is a number of seconds", "use a number such as 30")
	}
	low := least
	if env.on(cniIPv6, c.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 != nil) {
		low = leastOfIPv6
	}
	for _, name := range []string{"AWS_VPC_ENI_MTU", "POD_MTU"} {
		if n, err := strconv.Atoi(env.text(name, strconv.Itoa(most))); err != nil || n < low || n > most {
			fail(name, exits, fmt.Sprintf("use a number from %d to %d", low, most))
		}
	}
	const prefixes = "WARM_PREFIX_TARGET" // compared as texts, as in validateEnvVars
	if env.on(cniPrefixes, c.cluster.Infra.Spec.NetworkSpec.VPC.IPv6 != nil) && env.text(prefixes, "1") <= "0" &&
		env.text("WARM_IP_TARGET", "0") <= "0" && env.text("MINIMUM_IP_TARGET", "0") <= "0" {
		fail(prefixes, exits+" with prefixes, and without WARM_IP_TARGET and MINIMUM_IP_TARGET", "use 1 or more, or set one of the others")
	}
}

// hasENIConfigs reports whether something in the manifest may make ENIConfigs: subnets for pods, the add-on, or objects of resource sets.
func (c *checks) hasENIConfigs() bool {
	spec := &c.cluster.EKS.ControlPlane.Spec
	if addon := c.cluster.VPCCNI(); addon != nil && strings.Contains(addon.Configuration, "eniConfig") {
		return true
	}
	for _, s := range c.cluster.Infra.Spec.NetworkSpec.Subnets {
		if s.Tags[infrav1.NameAWSSubnetAssociation] == infrav1.SecondarySubnetTagValue {
			return true
		}
	}
	return spec.SecondaryCidrBlock != nil || len(c.cluster.Charts) > 0 ||
		c.hasObject(func(d *manifest.Document) bool { return d.Kind() == "ENIConfig" })
}
