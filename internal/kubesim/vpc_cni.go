package kubesim

import (
	"fmt"
	"strconv"
	"strings"
)

// vpcCNIExits returns why the containers of the DaemonSet aws-node end again and again; "" if they run. It reads the environment as the entry
// point does (validateEnvVars in cmd/aws-vpc-cni/main.go of aws/amazon-vpc-cni-k8s), and then the daemon (isConfigValid and
// getNetworkPolicyMode in pkg/ipamd/ipamd.go). EKS sets the family of addresses, and prefixes in IPv6 clusters.
func (c *Cluster) vpcCNIExits() string {
	env := map[string]string{
		"ENABLE_IPv4": strconv.FormatBool(!c.IPv6), "ENABLE_IPv6": strconv.FormatBool(c.IPv6), "ENABLE_PREFIX_DELEGATION": strconv.FormatBool(c.IPv6),
		"WARM_PREFIX_TARGET": "1", "WARM_IP_TARGET": "0", "MINIMUM_IP_TARGET": "0", "AWS_VPC_K8S_CNI_VETHPREFIX": "eni",
		"POD_SECURITY_GROUP_ENFORCING_MODE": "strict", "NETWORK_POLICY_ENFORCING_MODE": "standard", "IP_COOLDOWN_PERIOD": "30",
		"AWS_VPC_ENI_MTU": "9001", "POD_MTU": "9001",
	}
	containers, _ := value(c.Objects["/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"], "spec", "template", "spec", "containers").([]any)
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(Object)
	list, _ := first["env"].([]any)
	for _, x := range list {
		if e, is := x.(Object); is && e["valueFrom"] == nil {
			env[text(e, "name")] = text(e, "value")
		}
	}
	is := func(name string) bool { on, err := strconv.ParseBool(env[name]); return err == nil && on }
	if why := badCNIValue(env, is); why != "" {
		return why
	}
	switch {
	case is("ENABLE_IPv4") == is("ENABLE_IPv6"):
		return "IPv4 and IPv6 are both enabled, or both disabled"
	case is("ENABLE_IPv6") && (is("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG") || !is("ENABLE_PREFIX_DELEGATION")):
		return "IPv6 is supported only in Prefix Delegation mode. Custom Networking is not supported in IPv6 mode"
	case is("ENABLE_IPv6") != c.IPv6:
		return "the machines and the Services have addresses of the other family"
	}
	return ""
}

// badCNIValue returns why the entry point of the VPC CNI ends because of a value.
func badCNIValue(env map[string]string, is func(string) bool) string {
	one := func(of string, words ...string) bool {
		return strings.Contains(" "+strings.Join(words, " ")+" ", " "+of+" ")
	}
	least := map[bool]int{true: 1280, false: 576}[is("ENABLE_IPv6")]
	if env["AWS_VPC_K8S_PLUGIN_LOG_FILE"] == "stdout" {
		return "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"
	}
	if prefix := env["AWS_VPC_K8S_CNI_VETHPREFIX"]; len(prefix) > 4 || one(prefix, "eth", "lo", "vlan") {
		return "AWS_VPC_K8S_CNI_VETHPREFIX cannot be longer than 4 characters, or set to reserved values 'eth', 'vlan', or 'lo'"
	}
	if why := badNumber(env, least); why != "" {
		return why
	}
	if is("ENABLE_POD_ENI") && !one(env["POD_SECURITY_GROUP_ENFORCING_MODE"], "strict", "standard") {
		return "POD_SECURITY_GROUP_ENFORCING_MODE must be set to either 'strict' or 'standard'"
	}
	if is("ENABLE_PREFIX_DELEGATION") && max(env["WARM_PREFIX_TARGET"], env["WARM_IP_TARGET"], env["MINIMUM_IP_TARGET"]) <= "0" {
		return "Setting WARM_PREFIX_TARGET = 0 is not supported while WARM_IP_TARGET/MINIMUM_IP_TARGET is not set"
	}
	if !one(strings.ToLower(env["NETWORK_POLICY_ENFORCING_MODE"]), "none", "strict", "standard") {
		return "invalid Network policy mode, supported modes: none, strict, standard"
	}
	return notCopied(env)
}

// badNumber returns which value is no number, or is out of its range.
func badNumber(env map[string]string, least int) string {
	if n, err := strconv.Atoi(env["IP_COOLDOWN_PERIOD"]); err != nil || n < 0 {
		return "IP_COOLDOWN_PERIOD MUST be a valid positive integer"
	}
	for _, name := range []string{"AWS_VPC_ENI_MTU", "POD_MTU"} {
		if n, err := strconv.Atoi(env[name]); err != nil || n < least || n > 9001 {
			return fmt.Sprintf("%s cannot be less than %d or greater than 9001. %s is invalid", name, least, env[name])
		}
	}
	return ""
}

// notCopied returns why the entry point cannot copy its files to the machine.
func notCopied(env map[string]string) string {
	for name, mounted := range map[string]string{"HOST_CNI_BIN_PATH": "/host/opt/cni/bin", "HOST_CNI_CONFDIR_PATH": "/host/etc/cni/net.d"} {
		if given, set := env[name]; set && strings.TrimSuffix(given, "/") != mounted {
			return "Failed to copy: " + given + " is in the container only"
		}
	}
	return ""
}
