package kubernetes

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// choices are the values that flags have, from the messages of the programs and the reference of their command lines
// (https://kubernetes.io/docs/reference/command-line-tools-reference/).
const choices = `
kube-apiserver audit-log-format legacy json
kube-apiserver audit-log-mode batch blocking blocking-strict
kube-apiserver audit-webhook-mode batch blocking blocking-strict
kube-apiserver authorization-mode... AlwaysAllow AlwaysDeny ABAC Webhook RBAC Node
kube-apiserver endpoint-reconciler-type master-count lease none
kube-apiserver storage-backend etcd3
kube-apiserver storage-media-type application/json application/yaml application/vnd.kubernetes.protobuf
kube-controller-manager cidr-allocator-type RangeAllocator CloudAllocator IPAMFromCluster IPAMFromCloud
kube-controller-manager leader-elect-resource-lock leases
kube-scheduler leader-elect-resource-lock leases
kubelet authorization-mode AlwaysAllow Webhook
kubelet cgroup-driver cgroupfs systemd
kubelet cpu-manager-policy none static
kubelet enforce-node-allocatable... none pods system-reserved kube-reserved system-reserved-compressible kube-reserved-compressible
kubelet hairpin-mode promiscuous-bridge hairpin-veth none
kubelet memory-manager-policy None Static
kubelet topology-manager-policy none best-effort restricted single-numa-node
kubelet topology-manager-scope container pod
* logging-format text json
* tls-min-version VersionTLS10 VersionTLS11 VersionTLS12 VersionTLS13
`

// choiceRefused returns why a component does not start with a value that is not one of the choices of a flag; those of a
// list are marked with "...".
func choiceRefused(component, name, value string) string {
	for line := range strings.SplitSeq(choices, "\n") {
		w := strings.Fields(line)
		if len(w) < 3 || w[0] != component && w[0] != "*" || strings.TrimSuffix(w[1], "...") != name {
			continue
		}
		given := []string{value}
		if strings.HasSuffix(w[1], "...") {
			given = strings.Split(value, ",")
		}
		for i, g := range given {
			switch {
			case !slices.Contains(w[2:], g):
				return fmt.Sprintf("invalid value %q for --%s", g, name)
			case slices.Contains(given[:i], g):
				return fmt.Sprintf("--%s has mode %q specified more than once", name, g)
			}
		}
	}
	return ""
}

// syntaxRefused returns why a component does not start with a value that it cannot parse.
func syntaxRefused(component, name, value string) string {
	invalid := fmt.Sprintf("invalid argument %q for \"--%s\" flag", value, name)
	syntax := map[string]string{
		"kube-apiserver service-node-port-range":              `^\d+([-+]\d+)?$`,
		"kube-apiserver oidc-issuer-url":                      `^https://`,
		"kube-apiserver runtime-config":                       `^(api/(all|ga|beta|alpha|legacy)|[^/=,]+/[^/=,]+(/[^/=,]+)?)?([=,]|$)`,
		"kube-apiserver service-account-jwks-uri":             `^https://`,
		"kube-apiserver etcd-servers-overrides":               `^[^/#]*/[^/#]*#[^#;]+(;[^#;]+)*$`,
		"kube-apiserver watch-cache-sizes":                    `^[^#]+#[0-9]+(,[^#]+#[0-9]+)*$`,
		"kube-apiserver strict-transport-security-directives": `^(includeSubDomains|preload|max-age=[^=,]*)(,(includeSubDomains|preload|max-age=[^=,]*))*$`,
		"kube-apiserver oidc-required-claim":                  `=`,
		"kube-apiserver allow-metric-labels":                  `^[^,=]+,[^,=]+=.`,
		"kube-controller-manager allow-metric-labels":         `^[^,=]+,[^,=]+=.`,
		"kube-scheduler allow-metric-labels":                  `^[^,=]+,[^,=]+=.`,
		"kube-apiserver advertise-address":                    `^[0-9a-fA-F.:]+$`,
		"kube-apiserver kubelet-port":                         `^[0-9]+$`,
		"kube-apiserver requestheader-uid-headers":            `(?i)(^|,)x-remote-uid(,|$)`,
		"kube-controller-manager requestheader-uid-headers":   `(?i)(^|,)x-remote-uid(,|$)`,
		"kube-scheduler requestheader-uid-headers":            `(?i)(^|,)x-remote-uid(,|$)`,
		"kubelet cpu-manager-policy-options":                  `=`,
		"kube-apiserver audit-log-version":                    `^audit\.k8s\.io/v1$`,
		"kube-apiserver audit-webhook-version":                `^audit\.k8s\.io/v1$`,
		"kube-apiserver service-account-issuer":               `.`,
		"kube-controller-manager cluster-cidr":                `^[0-9a-fA-F.:]+/[0-9]+(,[0-9a-fA-F.:]+/[0-9]+)?$`,
		"kube-controller-manager service-cluster-ip-range":    `^[0-9a-fA-F.:]+/[0-9]+(,[0-9a-fA-F.:]+/[0-9]+)?$`,
		"kubelet address":                                     `^[0-9a-fA-F.:]+$`,
		"kubelet healthz-bind-address":                        `^[0-9a-fA-F.:]+$`,
		"kubelet reserved-cpus":                               `^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`,
		"kubelet system-reserved":                             `^((cpu|memory|ephemeral-storage|pid)=[0-9.]+([munkKMGTPE]i?)?(,|$))*$`,
		"kubelet kube-reserved":                               `^((cpu|memory|ephemeral-storage|pid)=[0-9.]+([munkKMGTPE]i?)?(,|$))*$`,
		"kubelet eviction-hard":                               `^((memory|nodefs|imagefs|containerfs|allocatableMemory|pid)\.(available|inodesFree)<[0-9.]+(%|[munkKMGTPE]i?)?(,|$))*$`,
		"kubelet eviction-soft":                               `^((memory|nodefs|imagefs|containerfs|allocatableMemory|pid)\.(available|inodesFree)<[0-9.]+(%|[munkKMGTPE]i?)?(,|$))*$`,
	}
	if on := regex.Of(`^([^=,]+(=(true|false|1|0|t|f|T|F|TRUE|FALSE|True|False))?(,|$))*$`); name == "runtime-config" && !on.MatchString(value) {
		return invalid
	}
	if pattern, is := syntax[component+" "+name]; is && !regexp.MustCompile(pattern).MatchString(value) {
		return invalid
	}
	switch name {
	case "log-text-info-buffer-size", "log-json-info-buffer-size":
		if !regex.Of(`^[0-9.]+([munkKMGTPE]i?)?$`).MatchString(value) {
			return invalid + ": quantities must match the regular expression"
		}
	case "runtime-config": // "unknown api groups": those with a dot end in k8s.io
		for item := range strings.SplitSeq(value, ",") {
			group, _, _ := strings.Cut(item, "/")
			if !regex.Of(`^(api|apps|autoscaling|batch|extensions|policy|[a-z.]+\.k8s\.io|)$`).MatchString(group) {
				return "unknown api groups " + group
			}
		}
	case "tls-sni-cert-key": // NamedCertKey.Set in k8s.io/component-base/cli/flag
		files, names, _ := strings.Cut(value, ":")
		if strings.Count(files, ",") != 1 || strings.Contains(names, ":") {
			return invalid + ": expected comma separated certificate and key file paths"
		}
	case "vmodule": // parseModuleSpec in k8s.io/klog
		if !regex.Of(`^([^=,]+=[0-9]+,?)*$`).MatchString(value) {
			return invalid + ": syntax error: expect comma-separated list of filename=N"
		}
	case "allowed-unsafe-sysctls": // NewAllowlist in pkg/kubelet/sysctl
		for item := range strings.SplitSeq(value, ",") {
			if !regex.Of(`^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./]?\*)?$`).MatchString(item) {
				return fmt.Sprintf("sysctl %q must have at most 253 characters and match regex", item)
			}
		}
	case "hostname-override": // the name of the Node
		if !strings.Contains(value, "{") && !regex.Of(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).MatchString(value) {
			return fmt.Sprintf("Node %q is invalid: metadata.name: Invalid value", value)
		}
	case "cors-allowed-origins": // validateCorsAllowedOriginList in k8s.io/apiserver/pkg/server/options/server_run_options.go
		for origin := range strings.SplitSeq(value, ",") {
			if _, err := regexp.Compile(origin); err != nil || !strings.Contains(origin, "^") && !strings.Contains(origin, "//") || !strings.ContainsAny(origin, "$:") {
				return "--cors-allowed-origins has an invalid regular expression"
			}
		}
	case "service-account-max-token-expiration": // pkg/controlplane/apiserver/options/options.go
		if n := measured(value); n != 0 && (n < 3600 || n > 1<<32) {
			return "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
		}
	case "service-account-issuer": // pkg/kubeapiserver/options/authentication.go: "contained a ':' but was not a valid URL"
		if u, err := url.Parse(value); strings.Contains(value, ":") && (err != nil || u.Host == "") {
			return invalid
		}
	case "anonymous-auth": // the probes of kubeadm, and its own wait for the API server, send no credentials
		if component == "kube-apiserver" && value == "false" {
			return "the liveness probe fails with the status 401, and the kubelet ends the container again and again"
		}
	case "bind-address":
		if net.ParseIP(value) == nil {
			return invalid + ": failed to parse IP"
		}
	case "node-ip":
		for ip := range strings.SplitSeq(value, ",") {
			if net.ParseIP(ip) == nil {
				return invalid
			}
		}
	case "tls-cipher-suites":
		for suite := range strings.SplitSeq(value, ",") {
			known := func(s *tls.CipherSuite) bool { return s.Name == suite || s.Name == suite+"_SHA256" }
			if !slices.ContainsFunc(tls.CipherSuites(), known) && !slices.ContainsFunc(tls.InsecureCipherSuites(), known) {
				return "Cipher suite " + suite + " not supported or doesn't exist"
			}
		}
	case "service-node-port-range":
		low, high, is := strings.Cut(value, "-")
		from, _ := strconv.Atoi(low)
		if to, _ := strconv.Atoi(high); is && from > to {
			return invalid + ": end port cannot be less than start port"
		}
	case "controllers":
		for name := range strings.SplitSeq(value, ",") {
			if name != "*" && !slices.Contains(words("controllers"), strings.TrimPrefix(name, "-")) {
				return fmt.Sprintf("%q is not in the list of known controllers", name)
			}
		}
	}
	return ""
}

// togetherRefused returns why a component does not start with some flags that it has only together.
func togetherRefused(component string, args any) string {
	given := map[string]string{}
	for _, arg := range pairs(args) {
		given[arg[0]] = arg[1]
	}
	_, issuer := given["oidc-issuer-url"]
	_, client := given["oidc-client-id"]
	_, cpus := given["reserved-cpus"]
	reserved := "," + given["system-reserved"] + "," + given["kube-reserved"]
	if component == "kube-controller-manager" || component == "kube-scheduler" {
		return electionRefused(given)
	}
	if component == "kubelet" {
		if why := kubeletTogether(given); why != "" {
			return why
		}
	}
	if component == "kube-apiserver" {
		if why := serverTogether(given); why != "" {
			return why
		}
	}
	switch {
	case component == "kube-apiserver" && issuer != client:
		return "oidc-issuer-url and oidc-client-id must be specified together when any oidc flags are set"
	case component == "kubelet" && given["cpu-manager-policy"] == "static" && !cpus && !strings.Contains(reserved, ",cpu="):
		return "failed to initialize cpu manager: the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
	case component == "kubelet" && given["eviction-soft"] != "" && given["eviction-soft-grace-period"] == "":
		return "grace period must be specified for the soft eviction threshold"
	}
	return ""
}

// serverTogether returns why the API server does not start with flags that need others, or exclude them: Validate in
// pkg/kubeapiserver/options (authentication.go, authorization.go) and in pkg/controlplane/apiserver/options/validation.go. kubeadm
// sets the keys of service accounts, and the modes of authorization unless there is a file of them.
func serverTogether(given map[string]string) string {
	has := func(name string) bool { _, is := given[name]; return is }
	modes := "," + given["authorization-mode"] + ","
	for name := range given {
		switch {
		case strings.HasPrefix(name, "oidc-") && (!has("oidc-issuer-url") || !has("oidc-client-id")):
			return "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
		case strings.HasPrefix(name, "oidc-") && has("authentication-config"):
			return "authentication-config file and oidc-* flags are mutually exclusive"
		case name == "service-account-signing-endpoint":
			return "can't set service-account-signing-key-file with service-account-signing-endpoint"
		case strings.HasPrefix(name, "peer-") && !strings.Contains(given["feature-gates"], "UnknownVersionInteroperabilityProxy=true") && !strings.Contains(given["feature-gates"], "AllAlpha=true"):
			return "--" + name + " requires UnknownVersionInteroperabilityProxy feature to be turned on"
		}
	}
	if lists(given["enable-admission-plugins"], "ImagePolicyWebhook") && !has("admission-control-config-file") {
		return "failed to initialize admission: couldn't init admission plugin \"ImagePolicyWebhook\": no config specified"
	}
	if lists(given["enable-admission-plugins"], "EventRateLimit") && !has("admission-control-config-file") { // plugin/pkg/admission/eventratelimit
		return "failed to initialize admission: couldn't init admission plugin \"EventRateLimit\": limits: Invalid value: []: must not be empty"
	}
	if why := auditTogether(given); why != "" {
		return why
	}
	switch {
	case given["enable-priority-and-fairness"] != "false" && given["max-requests-inflight"] == "0" && given["max-mutating-requests-inflight"] == "0": // feature.go
		return "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive"
	case has("encryption-provider-config-automatic-reload") && given["encryption-provider-config"] == "": // etcd.go
		return "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
	case strings.Contains(modes, ",Webhook,") && !has("authorization-webhook-config-file"):
		return "authorization-mode Webhook's authorization config file not passed"
	case strings.Contains(modes, ",ABAC,") && !has("authorization-policy-file"):
		return "authorization-mode ABAC's authorization policy file not passed"
	case has("authorization-policy-file") && !strings.Contains(modes, ",ABAC,"):
		return "cannot specify --authorization-policy-file without mode ABAC"
	case has("authorization-webhook-config-file") && !strings.Contains(modes, ",Webhook,"):
		return "cannot specify --authorization-webhook-config-file without mode Webhook"
	case has("authorization-config") && has("authorization-mode"):
		return "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
	}
	return ""
}

// auditTogether returns why the API server does not start with flags about audit events (validateBackendBatchOptions and
// AuditTruncateOptions.Validate in k8s.io/apiserver/pkg/server/options/audit.go, v0.34.2).
func auditTogether(given map[string]string) string {
	usual := map[string]float64{
		"log-batch-buffer-size": 10000, "log-batch-max-size": 1, "webhook-batch-buffer-size": 10000, "webhook-batch-max-size": 400,
		"webhook-batch-throttle-qps": 10, "webhook-batch-throttle-burst": 15, "log-truncate-max-event-size": 102400, "log-truncate-max-batch-size": 10485760,
		"webhook-truncate-max-event-size": 102400, "webhook-truncate-max-batch-size": 10485760,
	}
	number := func(name string) float64 {
		if v, is := given["audit-"+name]; is {
			return measured(v)
		}
		return usual[name]
	}
	for plugin, enabling := range map[string]string{"log": "audit-log-path", "webhook": "audit-webhook-config-file"} {
		mode := given["audit-"+plugin+"-mode"]
		batch := mode == "batch" || mode == "" && plugin == "webhook"
		throttle := given["audit-"+plugin+"-batch-throttle-enable"]
		switch {
		case given[enabling] == "":
		case batch && number(plugin+"-batch-buffer-size") <= 0:
			return "invalid audit batch " + plugin + " buffer size, must be a positive number"
		case batch && number(plugin+"-batch-max-size") <= 0:
			return "invalid audit batch " + plugin + " max batch size, must be a positive number"
		case batch && (throttle == "true" || throttle == "" && plugin == "webhook") &&
			(number(plugin+"-batch-throttle-qps") <= 0 || number(plugin+"-batch-throttle-burst") <= 0):
			return "invalid audit batch " + plugin + " throttle, must be a positive number"
		case number(plugin+"-truncate-max-event-size") <= 0:
			return "invalid audit truncate " + plugin + " max event size, must be a positive number"
		case number(plugin+"-truncate-max-batch-size") < number(plugin+"-truncate-max-event-size"):
			return "invalid audit truncate " + plugin + " max batch size, must be greater than max event size"
		}
	}
	return ""
}

// kubeletTogether returns why the kubelet does not start with settings that contradict each other; "" if it does
// (ValidateKubeletConfiguration in pkg/kubelet/apis/config/validation of Kubernetes, and pkg/kubelet/cm/memorymanager).
func kubeletTogether(given map[string]string) string {
	number := func(name string, usual float64) float64 {
		if v, is := given[name]; is {
			return measured(v)
		}
		return usual
	}
	enforced := strings.Split(given["enforce-node-allocatable"], ",")
	switch {
	case number("image-gc-low-threshold", 80) >= number("image-gc-high-threshold", 85):
		return "imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent"
	case number("maxParallelImagePulls", 0) > 1 && given["serialize-image-pulls"] != "false":
		return "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls is set to false"
	case number("shutdownGracePeriodCriticalPods", 0) > number("shutdownGracePeriod", 0):
		return "shutdownGracePeriodCriticalPods must be <= shutdownGracePeriod"
	case number("imageMaximumGCAge", 0) > 0 && number("imageMaximumGCAge", 0) <= number("minimum-image-ttl-duration", 120):
		return "imageMaximumGCAge must be greater than imageMinimumGCAge"
	case number("cpu-cfs-quota-period", 0.1) != 0.1 && !strings.Contains(given["feature-gates"], "CustomCPUCFSQuotaPeriod=true"):
		return "cpuCFSQuotaPeriod requires feature gate CustomCPUCFSQuotaPeriod"
	case given["reserved-cpus"] != "" && given["system-reserved-cgroup"]+given["kube-reserved-cgroup"] != "":
		return "can't use reservedSystemCPUs with systemReservedCgroup or kubeReservedCgroup"
	case given["memory-manager-policy"] == "Static" && given["reserved-memory"] == "":
		return "the static memory manager policy requires reserved memory"
	case slices.Contains(enforced, "none") && len(enforced) > 1:
		return "enforceNodeAllocatable may not contain additional enforcements when none is specified"
	case given["cgroups-per-qos"] == "false" && given["enforce-node-allocatable"] != "none": // pods is the default
		return "cgroupsPerQOS must be set to true when \"pods\" contained in enforceNodeAllocatable"
	case len(slices.Compact(slices.Sorted(slices.Values(enforced)))) < len(enforced):
		return "duplicated enforcements in enforceNodeAllocatable"
	}
	for _, of := range []string{"system-reserved", "kube-reserved"} {
		if slices.Contains(enforced, of) && slices.Contains(enforced, of+"-compressible") {
			return "both " + of + " and " + of + "-compressible cannot be specified together in enforceNodeAllocatable"
		}
	}
	for _, of := range []string{"system-reserved", "kube-reserved"} {
		if (slices.Contains(enforced, of) || slices.Contains(enforced, of+"-compressible")) && given[of+"-cgroup"] == "" {
			return of + "-cgroup must be specified when it is in enforceNodeAllocatable"
		}
	}
	return ""
}

// fileRefused returns why a component does not start with a file that its container does not have: kubeadm mounts the
// certificates and the component's kubeconfig (cmd/kubeadm/app/phases/controlplane/volumes.go), and the manifest more.
func fileRefused(component, keys string, args any, more []hostVolume) string {
	seen := []string{
		keys, "/etc/ssl/certs", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		"/etc/kubernetes/" + strings.TrimPrefix(component, "kube-") + ".conf",
	}
	for _, v := range more {
		seen = append(seen, v.MountPath)
	}
	for _, arg := range pairs(args) {
		name, file := arg[0], arg[1]
		reads := regex.Of(`(^|-)(config|kubeconfig|file)$|^etcd-(cafile|certfile|keyfile)$|^kubelet-(certificate-authority|client-certificate|client-key)$`).
			MatchString(name)
		inside := func(dir string) bool { _, is := below(file, dir); return is }
		if reads && strings.HasPrefix(file, "/") && !slices.ContainsFunc(seen, inside) {
			return fmt.Sprintf("open %s: no such file or directory", file)
		}
	}
	return ""
}

// below returns the rest of a path after that of a folder, and whether the folder contains the file, or is the file itself.
func below(file, folder string) (rest string, is bool) {
	rest, is = strings.CutPrefix(path.Clean(file), path.Clean(folder))
	return rest, is && (rest == "" || rest[0] == '/')
}
