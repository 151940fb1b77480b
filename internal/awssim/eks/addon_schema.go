package eks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// setting describes what the configuration of an add-on may contain. It is shown as a JSON schema, and checked by its own
// reading here.
type setting struct {
	kinds  []string           // of JSON: "object", "string", …; empty: anything
	fields map[string]setting // of an object; nil: any
	open   bool               // an object may have other fields
	items  *setting           // of an array; nil: anything
	words  []string           // the values of a string; empty: any
	least  int                // the least value of an integer
}

func text(words ...string) setting { return setting{kinds: []string{"string"}, words: words} }

func whole(least int) setting { return setting{kinds: []string{"integer"}, least: least} }

func group(fields map[string]setting) setting {
	return setting{kinds: []string{"object"}, fields: fields}
}

// free is a setting whose fields EKS does not check, such as an affinity or labels. It may be null.
func free() setting { return setting{kinds: []string{"object", "null"}, open: true} }

func list(of setting) setting { return setting{kinds: []string{"array", "null"}, items: &of} }

func flag() setting { return setting{kinds: []string{"boolean"}} }

// pods returns the settings that most add-ons have for their pods, and more.
func pods(more map[string]setting) map[string]setting {
	quantities := setting{kinds: []string{"object", "null"}, fields: map[string]setting{"limits": free(), "requests": free()}}
	all := map[string]setting{
		"affinity": free(), "nodeSelector": free(), "podAnnotations": free(), "podLabels": free(), "resources": quantities,
		"tolerations": list(setting{kinds: []string{"object"}, open: true}),
	}
	for name, s := range more {
		all[name] = s
	}
	return all
}

// cniVariables are the environment variables of the VPC CNI (README.md of github.com/aws/amazon-vpc-cni-k8s).
func cniVariables() []string {
	return strings.Fields(`
		ADDITIONAL_ENI_TAGS ANNOTATE_POD_IP AWS_EC2_ENDPOINT AWS_EXTERNAL_SERVICE_CIDRS AWS_MANAGE_ENIS_NON_SCHEDULABLE AWS_VPC_CNI_NODE_PORT_SUPPORT
		AWS_VPC_ENI_MTU AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG AWS_VPC_K8S_CNI_EXTERNALSNAT AWS_VPC_K8S_CNI_LOGLEVEL
		AWS_VPC_K8S_CNI_LOG_FILE AWS_VPC_K8S_CNI_RANDOMIZESNAT AWS_VPC_K8S_CNI_VETHPREFIX AWS_VPC_K8S_PLUGIN_LOG_FILE AWS_VPC_K8S_PLUGIN_LOG_LEVEL
		CLUSTER_ENDPOINT CLUSTER_NAME DISABLE_INTROSPECTION DISABLE_LEAKED_ENI_CLEANUP DISABLE_METRICS DISABLE_NETWORK_RESOURCE_PROVISIONING
		DISABLE_POD_V6 DISABLE_TCP_EARLY_DEMUX ENABLE_BANDWIDTH_PLUGIN ENABLE_IPv4 ENABLE_IPv6 ENABLE_NFTABLES ENABLE_POD_ENI
		ENABLE_PREFIX_DELEGATION ENABLE_SUBNET_DISCOVERY ENABLE_V4_EGRESS ENABLE_V6_EGRESS ENI_CONFIG_ANNOTATION_DEF ENI_CONFIG_LABEL_DEF
		INTROSPECTION_BIND_ADDRESS IP_COOLDOWN_PERIOD MAX_ENI MINIMUM_IP_TARGET NETWORK_POLICY_ENFORCING_MODE POD_SECURITY_GROUP_ENFORCING_MODE
		WARM_ENI_TARGET WARM_IP_TARGET WARM_PREFIX_TARGET`)
}

// settingsOf returns what the configuration of an add-on may contain. The names are those of the add-ons' Helm charts and of
// the EKS user guide; EKS has more of them, and a schema for each version.
func settingsOf(addon string) setting {
	word := text("true", "false")
	switch addon {
	case "vpc-cni":
		env := map[string]setting{}
		for _, name := range cniVariables() {
			env[name] = text()
		}
		subnets := setting{kinds: []string{"object"}, open: true}
		return group(pods(map[string]setting{
			"env": group(env), "enableNetworkPolicy": word, "enableWindowsIpam": word, "enableWindowsPrefixDelegation": word,
			"eniConfig": group(map[string]setting{"create": flag(), "region": text(), "subnets": subnets}),
			"init":      group(map[string]setting{"env": {kinds: []string{"object"}, open: true}}),
			"nodeAgent": group(map[string]setting{
				"enableCloudWatchLogs":        word,
				"enablePolicyEventLogs":       word,
				"healthProbeBindAddr":         text(),
				"metricsBindAddr":             text(),
				"conntrackCacheCleanupPeriod": text(),
			}),
			"livenessProbeTimeoutSeconds": whole(0), "readinessProbeTimeoutSeconds": whole(0), "branchENICooldown": text(),
			"minimumWindowsIPTarget": text(), "warmWindowsIPTarget": text(), "warmWindowsPrefixTarget": text(),
		}))
	case "coredns":
		return group(pods(map[string]setting{
			"autoScaling":  group(map[string]setting{"enabled": flag(), "minReplicas": whole(2), "maxReplicas": whole(2)}),
			"computeType":  text(),
			"corefile":     text(),
			"replicaCount": whole(0), "podDisruptionBudget": free(), "topologySpreadConstraints": list(setting{kinds: []string{"object"}, open: true}),
		}))
	case "kube-proxy":
		return group(map[string]setting{
			"ipvs": group(map[string]setting{"scheduler": text()}), "mode": text("iptables", "ipvs", "nftables"), "podAnnotations": free(), "podLabels": free(),
			"resources": pods(nil)["resources"],
		})
	case "eks-pod-identity-agent", "eks-node-monitoring-agent", "metrics-server", "snapshot-controller":
		more := map[string]setting{
			"agent": free(), "init": free(), "dcgmAgent": free(), "monitoringAgent": free(), "priorityClassName": text(), "replicaCount": whole(0), "replicas": whole(0),
		}
		return group(pods(more))
	}
	return group(pods(map[string]setting{
		"additionalDaemonSets": free(),
		"admissionWebhooks":    free(),
		"agent":                free(),
		"agents":               list(setting{}),
		"containerLogs":        free(),
		"controller":           free(),
		"dcgmExporter":         free(),
		"defaultStorageClass":  free(),
		"manager":              free(),
		"neuronMonitor":        free(),
		"node":                 free(),
		"sidecars":             free(),
		"useOldCSIDriver":      flag(),
	}))
}

// schema returns the settings as a JSON schema.
func (s setting) schema() map[string]any {
	out := map[string]any{}
	if len(s.kinds) == 1 {
		out["type"] = s.kinds[0]
	} else if len(s.kinds) > 1 {
		out["type"] = s.kinds
	}
	if slices.Contains(s.kinds, "object") && !s.open {
		fields := map[string]any{}
		for name, f := range s.fields {
			fields[name] = f.schema()
		}
		out["properties"], out["additionalProperties"] = fields, false
	}
	if s.items != nil {
		out["items"] = s.items.schema()
	}
	if len(s.words) > 0 {
		out["enum"] = s.words
	}
	if s.least > 0 {
		out["minimum"] = s.least
	}
	return out
}

// refuse says what is wrong with a value; "" if it is right.
func (s setting) refuse(at string, value any) string {
	kind := map[bool]string{true: "integer", false: "number"}[value == asInt(value)]
	switch value.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = "boolean"
	case string:
		kind = "string"
	case map[string]any:
		kind = "object"
	case []any:
		kind = "array"
	}
	if len(s.kinds) > 0 && !slices.Contains(s.kinds, kind) {
		return fmt.Sprintf("%s: %s found, %s expected", at, kind, s.kinds[0])
	}
	switch x := value.(type) {
	case string:
		if len(s.words) > 0 && !slices.Contains(s.words, x) {
			return fmt.Sprintf("%s: does not have a value in the enumeration [%s]", at, strings.Join(s.words, ", "))
		}
	case float64:
		if x < float64(s.least) {
			return fmt.Sprintf("%s: must have a minimum value of %d", at, s.least)
		}
	case map[string]any:
		for _, name := range core.SortedKeys(x) {
			f, known := s.fields[name]
			if !known && !s.open {
				return fmt.Sprintf("%s.%s: is not defined in the schema and the schema does not allow additional properties", at, name)
			}
			if why := f.refuse(at+"."+name, x[name]); known && why != "" {
				return why
			}
		}
	case []any:
		for i, v := range x {
			if s.items == nil {
				break
			}
			if why := s.items.refuse(fmt.Sprintf("%s[%d]", at, i), v); why != "" {
				return why
			}
		}
	}
	return ""
}

// asInt returns a number of JSON if it is an integer.
func asInt(value any) any {
	if f, ok := value.(float64); ok && f == float64(int64(f)) {
		return f
	}
	return nil
}

// checkConfiguration refuses a configuration that does not fit the schema of its add-on
// (https://github.com/cookpad/terraform-aws-eks/pull/331 has the text of EKS).
func checkConfiguration(addon string, configuration *string) error {
	if aws.ToString(configuration) == "" {
		return nil
	}
	var content any
	err := yaml.Unmarshal([]byte(*configuration), &content)
	why := "$: the text is neither JSON nor YAML"
	if err == nil {
		why = settingsOf(addon).refuse("$", content)
	}
	if why == "" {
		return nil
	}
	return invalid("ConfigurationValue provided in request is not supported: Json schema validation failed with error: [%s]", why)
}

// describeAddonConfiguration returns the schema of an add-on's configuration.
func (svc *Service) describeAddonConfiguration(in *eks.DescribeAddonConfigurationInput) (*eks.DescribeAddonConfigurationOutput, error) {
	e := catalogued(aws.ToString(in.AddonName))
	if e == nil {
		return nil, invalid("Addon specified is not supported")
	}
	known := slices.ContainsFunc(SupportedVersions(), func(kubernetes string) bool {
		return slices.ContainsFunc(
			slices.Concat(e.versions, e.plausible(kubernetes)),
			func(v addonVersion) bool { return v.version == aws.ToString(in.AddonVersion) },
		)
	})
	if !known {
		return nil, invalid("Addon version specified is not supported")
	}
	schema := settingsOf(e.name).schema()
	schema["$schema"] = "http://json-schema.org/draft-06/schema#"
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	out := &eks.DescribeAddonConfigurationOutput{AddonName: in.AddonName, AddonVersion: in.AddonVersion, ConfigurationSchema: aws.String(string(raw))}
	accounts, _ := accountsOf(e.name)
	for _, account := range accounts {
		out.PodIdentityConfiguration = append(out.PodIdentityConfiguration, types.AddonPodIdentityConfiguration{ServiceAccount: aws.String(account)})
	}
	return out, nil
}
