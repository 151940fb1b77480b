package kubernetes

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// fileContentRefused returns the error with which a component ends because of a file that one of its arguments names; "" if the component starts.
// It accepts files with unknown contents: those that the boot data does not write, and those that a command mentions.
//
// Sources: audit/policy, admission, server/options and apis/apiserver/validation in k8s.io/apiserver/pkg; cmd/kube-scheduler/app/options,
// pkg/scheduler and pkg/credentialprovider/plugin in k8s.io/kubernetes.
func fileContentRefused(component, version string, args any, volumes []hostVolume, files map[string]string) string {
	commands := commandsIn(files)
	read := func(inContainer string) (string, bool) {
		file := path.Clean(onHost(inContainer, volumes))
		text, is := files[file]
		return text, is && !strings.Contains(commands, path.Base(file)) // commands, which may change it, are not simulated
	}
	r := fileReader{minor: minorOf(version), gates: argument(args, "feature-gates"), read: read}
	for _, arg := range pairs(args) {
		text, is := read(arg[1])
		if !is || arg[0] == "audit-webhook-config-file" && argument(args, "audit-policy-file") == "" {
			continue
		}
		if why := r.refuses(component, arg[0], text); why != "" {
			return fmt.Sprintf("%s: %s: %s", component, arg[1], why)
		}
	}
	return ""
}

// commandsIn returns the commands in the boot data: those of cloud-init, or the script that Ignition runs.
func commandsIn(files map[string]string) string {
	if strings.HasPrefix(strings.TrimSpace(files[bootText]), "{") {
		return files["/etc/kubeadm.sh"]
	}
	var doc struct{ BootCmd, RunCmd []any }
	if err := yaml.Unmarshal([]byte(files[bootText]), &doc); err != nil {
		return files[bootText]
	}
	return fmt.Sprint(doc.BootCmd, doc.RunCmd)
}

// onHost converts a path in a container to the path on the machine.
func onHost(file string, volumes []hostVolume) string {
	for _, v := range volumes {
		if rest, is := below(file, v.MountPath); is {
			return v.HostPath + rest
		}
	}
	return file
}

// fileReader reads the files of one component.
type fileReader struct {
	minor int
	gates string
	read  func(path string) (text string, known bool)
}

// configKind is a kind of configuration file, and the versions of Kubernetes that read it.
type configKind struct {
	argument, kind, apiVersion string
	first, last                int
	law                        func(fileReader, map[string]any) string
}

// configKinds lists the kinds of configuration files by argument, or by admission plugin. The source is the release notes of Kubernetes.
func configKinds() []configKind {
	const always, newest, server = 0, 99, "apiserver.config.k8s.io/"
	return []configKind{
		{"audit-policy-file", "Policy", "audit.k8s.io/v1", always, newest, fileReader.policy},
		{"encryption-provider-config", "EncryptionConfiguration", server + "v1", always, newest, fileReader.encryption},
		{"encryption-provider-config", "EncryptionConfig", "v1", always, newest, fileReader.encryption},
		{"admission-control-config-file", "AdmissionConfiguration", server + "v1", always, newest, fileReader.admission},
		{"admission-control-config-file", "AdmissionConfiguration", "apiserver.k8s.io/v1alpha1", always, newest, fileReader.admission},
		{"PodSecurity", "PodSecurityConfiguration", "pod-security.admission.config.k8s.io/v1", 25, newest, fileReader.podSecurity},
		{"PodSecurity", "PodSecurityConfiguration", "pod-security.admission.config.k8s.io/v1beta1", 23, newest, fileReader.podSecurity},
		{"PodSecurity", "PodSecurityConfiguration", "pod-security.admission.config.k8s.io/v1alpha1", 22, newest, fileReader.podSecurity},
		{"EventRateLimit", "Configuration", "eventratelimit.admission.k8s.io/v1alpha1", always, newest, fileReader.eventLimits},
		{"authentication-config", "AuthenticationConfiguration", server + "v1alpha1", 29, newest, fileReader.authentication},
		{"authentication-config", "AuthenticationConfiguration", server + "v1beta1", 30, newest, fileReader.authentication},
		{"authentication-config", "AuthenticationConfiguration", server + "v1", 34, newest, fileReader.authentication},
		{"authorization-config", "AuthorizationConfiguration", server + "v1alpha1", 29, newest, fileReader.authorization},
		{"authorization-config", "AuthorizationConfiguration", server + "v1beta1", 30, newest, fileReader.authorization},
		{"authorization-config", "AuthorizationConfiguration", server + "v1", 32, newest, fileReader.authorization},
		{"tracing-config-file", "TracingConfiguration", server + "v1alpha1", always, newest, fileReader.tracing},
		{"tracing-config-file", "TracingConfiguration", server + "v1beta1", 27, newest, fileReader.tracing},
		{"tracing-config-file", "TracingConfiguration", server + "v1", 34, newest, fileReader.tracing},
		{"config", "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1beta2", 22, 27, fileReader.scheduler},
		{"config", "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1beta3", 23, 28, fileReader.scheduler},
		{"config", "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1", 25, newest, fileReader.scheduler},
		{"image-credential-provider-config", "CredentialProviderConfig", "kubelet.config.k8s.io/v1alpha1", 20, newest, fileReader.credentialProviders},
		{"image-credential-provider-config", "CredentialProviderConfig", "kubelet.config.k8s.io/v1beta1", 24, newest, fileReader.credentialProviders},
		{"image-credential-provider-config", "CredentialProviderConfig", "kubelet.config.k8s.io/v1", 26, newest, fileReader.credentialProviders},
	}
}

// topFields lists the top-level fields of a kind, without apiVersion and kind. It returns none for a kind with fields that are not checked.
func topFields(kind string) []string {
	return strings.Fields(map[string]string{
		"EncryptionConfiguration": "resources", "AdmissionConfiguration": "plugins", "AuthenticationConfiguration": "jwt anonymous",
		"AuthorizationConfiguration": "authorizers", "PodSecurityConfiguration": "defaults exemptions", "CredentialProviderConfig": "providers",
		"KubeSchedulerConfiguration": `parallelism leaderElection clientConnection enableProfiling enableContentionProfiling percentageOfNodesToScore
			podInitialBackoffSeconds podMaxBackoffSeconds profiles extenders delayCacheUntilActive healthzBindAddress metricsBindAddress`,
	}[kind])
}

// refuses returns the error of a component about the contents of the file that an argument names; "" if it accepts them.
func (r fileReader) refuses(component, argument, text string) string {
	switch {
	case argument == "config" && component != "kube-scheduler":
		return ""
	case argument == "token-auth-file":
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		for _, row := range rows {
			if len(row) < 3 {
				return "token file needs at least three columns"
			}
		}
		if err != nil {
			return err.Error()
		}
		return ""
	case regex.Of(`(^|-)(ca-?file|certfile|cert-file|client-certificate|certificate-authority)$`).MatchString(argument):
		if !strings.Contains(text, "-----BEGIN CERTIFICATE-----") {
			return "data does not contain any valid RSA or ECDSA certificates"
		}
		return ""
	case strings.HasSuffix(argument, "kubeconfig") || strings.HasSuffix(argument, "-webhook-config-file"):
		return kubeconfigRefused(text)
	}
	return r.document(argument, text)
}

// document reads the object in a file, for an argument or an admission plugin. It returns the component's error; "" for none.
func (r fileReader) document(of, text string) string {
	kinds := slices.DeleteFunc(configKinds(), func(k configKind) bool { return k.argument != of })
	if len(kinds) == 0 {
		return ""
	}
	var doc map[string]any
	if text := strings.TrimSpace(text); text != "" && text[0] == '{' {
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			return "couldn't get version/kind; JSON parse error: " + err.Error()
		}
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "error converting YAML to JSON: yaml: " + err.Error()
	}
	apiVersion, kind := textAt(doc, "apiVersion"), textAt(doc, "kind")
	if kind == "" || apiVersion == "" {
		return "Object 'Kind' is missing: it has no kind, or no apiVersion"
	}
	at := slices.IndexFunc(kinds, func(k configKind) bool {
		return k.kind == kind && k.apiVersion == apiVersion && r.minor >= k.first && r.minor <= k.last
	})
	if at < 0 {
		return fmt.Sprintf("no kind %q is registered for version %q (expected %s)", kind, apiVersion, kinds[0].kind)
	}
	strict := kind == "KubeSchedulerConfiguration" || strings.HasPrefix(kind, "Auth") || kind == "PodSecurityConfiguration" && r.minor > 29 ||
		kind == "EncryptionConfiguration" && r.minor > 30 || r.minor > 31
	for field := range doc {
		if fields := topFields(kind); strict && len(fields) > 0 && field != "apiVersion" && field != "kind" && !slices.Contains(fields, field) {
			return fmt.Sprintf("strict decoding error: unknown field %q", field)
		}
	}
	return kinds[at].law(r, doc)
}

func (fileReader) policy(doc map[string]any) string {
	rules := listAt(doc, "rules")
	if len(rules) == 0 {
		return "loaded illegal policy with 0 rules"
	}
	stages := []string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}
	for _, at := range append([]map[string]any{doc}, rules...) {
		for _, stage := range textsAt(at, "omitStages") {
			if !slices.Contains(stages, stage) {
				return fmt.Sprintf("omitStages: Unsupported value: %q", stage)
			}
		}
	}
	for n, rule := range rules {
		if level := textAt(rule, "level"); !slices.Contains([]string{"None", "Metadata", "Request", "RequestResponse"}, level) {
			return fmt.Sprintf("rules[%d].level: Unsupported value: %q", n, level)
		}
		for _, url := range textsAt(rule, "nonResourceURLs") {
			if url != "*" && !strings.HasPrefix(url, "/") || strings.Contains(strings.TrimSuffix(url, "*"), "*") {
				return fmt.Sprintf("rules[%d].nonResourceURLs: Invalid value: %q", n, url)
			}
		}
		if rule["nonResourceURLs"] != nil && (rule["resources"] != nil || rule["namespaces"] != nil) {
			return fmt.Sprintf("rules[%d].nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs", n)
		}
	}
	return ""
}

func (r fileReader) encryption(doc map[string]any) string {
	resources := listAt(doc, "resources")
	if len(resources) == 0 {
		return "resources: Required value: at least one resources is required"
	}
	for n, x := range resources {
		providers := listAt(x, "providers")
		if len(textsAt(x, "resources")) == 0 || len(providers) == 0 {
			return fmt.Sprintf("resources[%d]: Required value: at least one of resources and of providers is required", n)
		}
		for m, p := range providers {
			at := fmt.Sprintf("resources[%d].providers[%d]", n, m)
			if why := r.encryptionProvider(at, p); why != "" {
				return why
			}
		}
	}
	return ""
}

func (r fileReader) encryptionProvider(at string, p map[string]any) string {
	if len(p) != 1 {
		return at + ": Invalid value: provider needs exactly one of aesgcm, aescbc, secretbox, identity and kms"
	}
	for name, x := range p {
		of, _ := x.(map[string]any)
		switch name {
		case "identity":
		case "aesgcm", "aescbc", "secretbox":
			for k, key := range listAt(of, "keys") {
				raw, err := base64.StdEncoding.DecodeString(textAt(key, "secret"))
				if size := len(raw); err != nil || size != 32 && (name == "secretbox" || size != 16 && size != 24) {
					return fmt.Sprintf("%s.%s.keys[%d].secret: Invalid value: REDACTED", at, name, k)
				}
			}
			if len(listAt(of, "keys")) == 0 {
				return at + "." + name + ".keys: Required value"
			}
		case "kms":
			version := textAt(of, "apiVersion")
			switch {
			case !strings.HasPrefix(textAt(of, "endpoint"), "unix://"):
				return at + `.kms.endpoint: Invalid value: unsupported scheme "", must be unix`
			case version != "v2" && r.minor > 28 && !strings.Contains(r.gates, "KMSv1=true"):
				return "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."
			}
		default:
			return at + ": Invalid value: provider does not contain any of the expected providers"
		}
	}
	return ""
}

func (r fileReader) admission(doc map[string]any) string {
	for _, plugin := range listAt(doc, "plugins") {
		of, file := textAt(plugin, "name"), textAt(plugin, "path")
		text, known := "", false
		if inline, is := plugin["configuration"].(map[string]any); is {
			raw, err := yaml.Marshal(inline)
			text, known = string(raw), err == nil
		} else if file != "" {
			text, known = r.read(file)
		}
		if !known || strings.TrimSpace(text) == "" {
			continue
		}
		if why := r.document(of, text); why != "" {
			return fmt.Sprintf("couldn't init admission plugin %q: %s", of, why)
		}
	}
	return ""
}

func (fileReader) podSecurity(doc map[string]any) string {
	defaults, _ := doc["defaults"].(map[string]any)
	for name, x := range defaults {
		value := fmt.Sprint(x)
		switch {
		case !slices.Contains(strings.Fields("enforce enforce-version audit audit-version warn warn-version"), name):
			return fmt.Sprintf("strict decoding error: unknown field \"defaults.%s\"", name)
		case strings.HasSuffix(name, "-version"):
			if value != "latest" && !regex.Of(`^v1\.[0-9]+$`).MatchString(value) {
				return fmt.Sprintf("defaults.%s: Invalid value: %q", name, value)
			}
		case !slices.Contains([]string{"privileged", "baseline", "restricted"}, value):
			return fmt.Sprintf("defaults.%s: Invalid value: %q: must be one of privileged, baseline, restricted", name, value)
		}
	}
	return ""
}

func (fileReader) eventLimits(doc map[string]any) string {
	limits := listAt(doc, "limits")
	if len(limits) == 0 {
		return "limits: Invalid value: must not be empty"
	}
	for n, x := range limits {
		qps, burst := amountOf(x["qps"]), amountOf(x["burst"])
		if qps <= 0 || burst <= 0 || !slices.Contains([]string{"Server", "Namespace", "User", "SourceAndObject"}, textAt(x, "type")) {
			return fmt.Sprintf("limits[%d]: Invalid value: type, qps and burst must be valid", n)
		}
	}
	return ""
}

func (fileReader) authentication(doc map[string]any) string {
	for n, x := range listAt(doc, "jwt") {
		at := fmt.Sprintf("jwt[%d].", n)
		issuer, _ := x["issuer"].(map[string]any)
		mappings, _ := x["claimMappings"].(map[string]any)
		username, _ := mappings["username"].(map[string]any)
		switch {
		case !strings.HasPrefix(textAt(issuer, "url"), "https://"):
			return at + "issuer.url: Invalid value: URL scheme must be https"
		case len(textsAt(issuer, "audiences")) == 0:
			return at + "issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"
		case textAt(username, "claim") == "" && textAt(username, "expression") == "":
			return at + "claimMappings.username: Required value: claim or expression is required"
		}
	}
	return ""
}

func (fileReader) authorization(doc map[string]any) string {
	authorizers, names := listAt(doc, "authorizers"), map[string]bool{}
	if len(authorizers) == 0 {
		return "authorizers: Required value: at least one authorization mode must be defined"
	}
	for n, x := range authorizers {
		kind, name := textAt(x, "type"), textAt(x, "name")
		if !slices.Contains([]string{"AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "Node", "RBAC"}, kind) {
			return fmt.Sprintf("authorizers[%d].type: Unsupported value: %q", n, kind)
		}
		if name == "" || names[name] {
			return fmt.Sprintf("authorizers[%d].name: Required value", n)
		}
		names[name] = true
	}
	return ""
}

func (fileReader) tracing(doc map[string]any) string {
	if rate := amountOf(doc["samplingRatePerMillion"]); rate < 0 || rate > 1_000_000 {
		return "samplingRatePerMillion: Invalid value: sampling rate must be in the range [0, 1000000]"
	}
	return ""
}

func (r fileReader) scheduler(doc map[string]any) string {
	connection, _ := doc["clientConnection"].(map[string]any)
	share, parallel := doc["percentageOfNodesToScore"], doc["parallelism"]
	switch {
	case parallel != nil && amountOf(parallel) < 1:
		return "parallelism: Invalid value: should be an integer value greater than zero"
	case share != nil && (amountOf(share) < 0 || amountOf(share) > 100):
		return "percentageOfNodesToScore: Invalid value: not in valid range [0-100]"
	case textAt(connection, "kubeconfig") == "": // --kubeconfig is ignored beside --config
		return "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
	}
	names := map[string]bool{}
	for n, profile := range listAt(doc, "profiles") {
		name := textAt(profile, "schedulerName")
		if names[name] {
			return fmt.Sprintf("profiles[%d].schedulerName: Duplicate value: %q", n, name)
		}
		names[name] = true
		points, _ := profile["plugins"].(map[string]any)
		for _, x := range points {
			point, _ := x.(map[string]any)
			for _, plugin := range listAt(point, "enabled") {
				if of := textAt(plugin, "name"); !slices.Contains(schedulerPlugins(), of) && r.minor > 28 {
					return fmt.Sprintf("initializing profiles: %s does not exist", of)
				}
			}
		}
	}
	return ""
}

// schedulerPlugins are those in the documentation of the scheduler ("Scheduler Configuration"), and newer ones of the release notes.
func schedulerPlugins() []string {
	return strings.Fields(`ImageLocality TaintToleration NodeName NodePorts NodeAffinity PodTopologySpread NodeUnschedulable NodeResourcesFit
		NodeResourcesBalancedAllocation VolumeBinding VolumeRestrictions VolumeZone NodeVolumeLimits EBSLimits GCEPDLimits AzureDiskLimits CinderLimits
		InterPodAffinity PrioritySort DefaultBinder DefaultPreemption SchedulingGates DynamicResources GangScheduling NodeDeclaredFeatures`)
}

func (fileReader) credentialProviders(doc map[string]any) string {
	providers := listAt(doc, "providers")
	if len(providers) == 0 {
		return "providers: Required value: at least 1 item in plugins is required"
	}
	for _, p := range providers {
		switch {
		case !regex.Of(`^credentialprovider\.kubelet\.k8s\.io/v1(alpha1|beta1)?$`).MatchString(textAt(p, "apiVersion")):
			return "providers.apiVersion: Unsupported value"
		case len(textsAt(p, "matchImages")) == 0:
			return "providers.matchImages: Required value: at least 1 item in matchImages is required"
		case p["defaultCacheDuration"] == nil:
			return "providers.defaultCacheDuration: Required value"
		case regex.Of(`[/ ]|^\.{0,2}$`).MatchString(textAt(p, "name")):
			return "providers.name: Invalid value"
		}
	}
	return ""
}

// kubeconfigRefused returns why a component cannot connect with a kubeconfig (Validate in k8s.io/client-go/tools/clientcmd).
func kubeconfigRefused(text string) string {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "error loading config file: yaml: " + err.Error()
	}
	current := textAt(doc, "current-context")
	contexts := listAt(doc, "contexts")
	if at := slices.IndexFunc(contexts, func(c map[string]any) bool { return textAt(c, "name") == current }); at < 0 && current != "" {
		return fmt.Sprintf("invalid configuration: context was not found for specified context: %s", current)
	}
	if len(listAt(doc, "clusters")) == 0 {
		return "invalid configuration: no configuration has been provided"
	}
	return ""
}

func textAt(at map[string]any, key string) string { text, _ := at[key].(string); return text }

// textsAt returns the texts in a list.
func textsAt(at map[string]any, key string) (all []string) {
	list, _ := at[key].([]any)
	for _, x := range list {
		all = append(all, fmt.Sprint(x))
	}
	return all
}

// listAt returns the mappings in a list.
func listAt(at map[string]any, key string) (all []map[string]any) {
	list, _ := at[key].([]any)
	for _, x := range list {
		m, _ := x.(map[string]any)
		all = append(all, m)
	}
	return all
}

func amountOf(x any) float64 { n, _ := x.(float64); return n }
