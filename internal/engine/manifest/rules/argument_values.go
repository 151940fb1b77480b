package rules

import (
	"crypto/tls"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// valueRule says what is wrong with the value of an argument; "" for nothing.
type valueRule func(value string) string

// valueRules are the rules of components about the values of arguments, by the component and the name. A component does not
// start with another value. The form of a value, such as a number, is in the table of the components.
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var valueRules = sync.OnceValue(func() map[string]valueRule {
	rules := map[string]valueRule{}
	for _, component := range []string{components.APIServer, components.ControllerManager, components.Scheduler, components.Kubelet} {
		// k8s.io/component-base: cli/flag/ciphersuites_flag.go, logs/api/v1/options.go
		rules[component+" tls-min-version"] = oneOf("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
		rules[component+" tls-cipher-suites"] = listOf(oneOf(cipherSuites()...))
		rules[component+" logging-format"] = oneOf("text", "json")
		rules[component+" bind-address"] = address                                                    // k8s.io/apiserver/pkg/server/options/serving.go
		rules[component+" allow-metric-labels"] = matching(`^[^,=]+,[^,=]+=.`, "METRIC,LABEL=VALUES") // metrics/options.go
		rules[component+" log-text-info-buffer-size"] = quantity
		rules[component+" log-json-info-buffer-size"] = quantity
		rules[component+" requestheader-uid-headers"] = remoteUser                                                              // k8s.io/apiserver/pkg/server/options/authentication.go
		rules[component+" tls-sni-cert-key"] = matching(`^[^,:]+,[^,:]+(:[^:]*)?$`, "CERTIFICATE,KEY or CERTIFICATE,KEY:NAMES") // cli/flag/namedcertkey_flag.go
		rules[component+" vmodule"] = listOf(matching(`^[^=]+=\d+$`, "FILE=LEVEL"))                                             // logs/api/v1/types.go
	}
	// pkg/kubeapiserver/options and k8s.io/apiserver/pkg/server/options of Kubernetes
	for name, rule := range map[string]valueRule{
		"authorization-mode":       once(listOf(oneOf("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"))),
		"audit-log-mode":           oneOf("batch", "blocking", "blocking-strict"),
		"audit-webhook-mode":       oneOf("batch", "blocking", "blocking-strict"),
		"audit-log-format":         oneOf("legacy", "json"),
		"endpoint-reconciler-type": oneOf("master-count", "lease", "none"),
		"storage-media-type":       oneOf("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"),
		"oidc-signing-algs":        listOf(oneOf("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")),
		"oidc-issuer-url":          secureURL,
		"service-node-port-range":  portRange,
		"runtime-config":           listOf(onOrOff),
		"advertise-address":        address,
		"kubelet-port":             between(0, mostPort),
		"kubelet-read-only-port":   between(0, mostPort),
		"storage-backend":          oneOf("etcd3"),
		"cors-allowed-origins":     listOf(origin),
		"service-account-jwks-uri": secureURL,
		"strict-transport-security-directives": listOf(
			matching(`^(includeSubDomains|preload|max-age=[^=]*)$`, "max-age=SECONDS, includeSubDomains or preload"),
		),
		"etcd-servers-overrides":               listOf(matching(`^[^/#]*/[^/#]*#[^#;]+(;[^#;]+)*$`, "GROUP/RESOURCE#SERVER;SERVER")),
		"watch-cache-sizes":                    listOf(matching(`^[^#]+#\d+$`, "RESOURCE#SIZE")),
		"service-account-max-token-expiration": zeroOr(lasting(time.Hour, (1<<32)*time.Second)),
		"service-cluster-ip-range":             listOf(block),
		"oidc-required-claim":                  listOf(pair),
		"audit-log-version":                    oneOf("audit.k8s.io/v1"), // k8s.io/apiserver/pkg/server/options/audit.go
		"audit-webhook-version":                oneOf("audit.k8s.io/v1"),

		"audit-log-maxage": notNegative, "audit-log-maxbackup": notNegative, "audit-log-maxsize": notNegative, "livez-grace-period": notNegative,
		"max-requests-inflight": notNegative, "max-mutating-requests-inflight": notNegative, "request-timeout": notNegative,
		"min-request-timeout": notNegative, "shutdown-delay-duration": notNegative, "shutdown-watch-termination-grace-period": notNegative,
		"storage-initialization-timeout": notNegative,
		"goaway-chance":                  share(0, 0.02),
		"apiserver-count":                between(1, 1<<31-1),
		"kubernetes-service-node-port":   between(0, mostPort),
		"service-account-issuer":         issuer,
		"anonymous-auth":                 anonymous,
		"secure-port":                    probed(apiPort),
	} {
		rules[components.APIServer+" "+name] = rule
	}
	rules[components.ControllerManager+" secure-port"], rules[components.Scheduler+" secure-port"] = probed(10257), probed(10259)
	// cmd/kube-controller-manager/app/options of Kubernetes
	for name, rule := range map[string]valueRule{
		"attach-detach-reconcile-sync-period":         lasting(time.Second, math.MaxInt64),
		"concurrent-ephemeralvolume-syncs":            between(1, 1<<31-1),
		"concurrent-horizontal-pod-autoscaler-syncs":  between(1, 1<<31-1),
		"concurrent-statefulset-syncs":                between(1, 1<<31-1),
		"concurrent-service-endpoint-syncs":           between(1, 50),
		"mirroring-concurrent-service-endpoint-syncs": between(1, 50),
		"max-endpoints-per-slice":                     between(1, 1000),
		"mirroring-max-endpoints-per-subset":          between(1, 1000),
	} {
		rules[components.ControllerManager+" "+name] = rule
	}
	for _, component := range []string{components.ControllerManager, components.Scheduler} {
		rules[component+" leader-elect-resource-lock"] = oneOf("leases") // k8s.io/client-go/tools/leaderelection/resourcelock
	}
	rules[components.ControllerManager+" cluster-cidr"] = listOf(block) // cmd/kube-controller-manager/app/core.go
	rules[components.ControllerManager+" service-cluster-ip-range"] = listOf(block)
	rules[components.ControllerManager+" cidr-allocator-type"] = oneOf("RangeAllocator", "CloudAllocator", "IPAMFromCluster", "IPAMFromCloud")
	// cmd/kubelet/app/options, pkg/kubelet/apis/config/validation and pkg/kubelet/eviction/helpers.go of Kubernetes
	for name, rule := range map[string]valueRule{
		"cgroup-driver":              oneOf("cgroupfs", "systemd"),
		"cpu-manager-policy":         oneOf("none", "static"),
		"memory-manager-policy":      oneOf("None", "Static"),
		"topology-manager-policy":    oneOf("none", "best-effort", "restricted", "single-numa-node"),
		"topology-manager-scope":     oneOf("container", "pod"),
		"hairpin-mode":               oneOf("promiscuous-bridge", "hairpin-veth", "none"),
		"authorization-mode":         oneOf("AlwaysAllow", "Webhook"),
		"enforce-node-allocatable":   listOf(oneOf("none", "pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible")),
		"system-reserved":            listOf(reservation),
		"kube-reserved":              listOf(reservation),
		"eviction-hard":              listOf(threshold("<")),
		"eviction-soft":              listOf(threshold("<")),
		"eviction-minimum-reclaim":   listOf(threshold("=")),
		"eviction-soft-grace-period": listOf(gracePeriod),
		"node-ip":                    nodeAddresses,
		"cluster-dns":                listOf(address),
		"address":                    address,
		"healthz-bind-address":       address,
		"cpu-manager-policy-options": listOf(pair),
		"reserved-cpus":              matching(`^\d+(-\d+)?(,\d+(-\d+)?)*$`, "a list of CPUs such as 0-1,4"),
		"reserved-memory":            matching(`^\d+:[a-zA-Z0-9-]+=\S+$`, "a reservation such as 0:memory=1Gi"),
		"container-log-max-size":     quantity,
		"container-log-max-files":    between(2, 1<<31-1),
		"max-pods":                   between(0, 1<<31-1),
		"image-gc-high-threshold":    between(0, 100),
		"image-gc-low-threshold":     between(0, 100),
		"oom-score-adj":              between(-1000, 1000),
		"read-only-port":             between(0, mostPort),
		"healthz-port":               between(0, mostPort),
		"port":                       between(1, mostPort),
		"iptables-masquerade-bit":    between(0, 31),
		"iptables-drop-bit":          between(0, 31),
		"node-status-max-images":     between(-1, 1<<31-1),
		"cpu-cfs-quota-period":       lasting(time.Millisecond, time.Second),
		"allowed-unsafe-sysctls":     listOf(matching(`^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./]?\*)?$`, "a sysctl such as kernel.msg* or net.core.somaxconn")),
		"hostname-override":          nodeName,
		"pods-per-core":              notNegative, "max-open-files": notNegative, "event-burst": notNegative, "event-qps": notNegative,
		"kube-api-burst": notNegative, "kube-api-qps": notNegative, "registry-burst": notNegative, "registry-qps": notNegative,

		// fields of its configuration for which it has no arguments
		"memoryThrottlingFactor":      share(0.0001, 1),
		"maxParallelImagePulls":       between(1, 1<<31-1),
		"nodeLeaseDurationSeconds":    between(1, 1<<31-1),
		"containerLogMaxWorkers":      between(1, 1<<31-1),
		"containerLogMonitorInterval": lasting(3*time.Second, math.MaxInt64),
	} {
		rules[components.Kubelet+" "+name] = rule
	}
	return rules
})

// checkValue checks the value of an argument whose form is right.
func (c *checks) checkValue(o *manifest.Entry, path, component, name, value string, v kubernetesVersion) {
	rule := valueRules()[component+" "+strings.ReplaceAll(name, "_", "-")]
	if component == components.ControllerManager && name == "controllers" && v.minor <= newestControllers {
		rule = listOf(controller)
	}
	if of := versionRule(name, v); of != nil {
		rule = of
	}
	if newer := newerRules()[component+" "+name]; v.minor >= newer.since && newer.rule != nil {
		rule = newer.rule
	}
	if rule == nil || value == "" || strings.ContainsAny(value, "${}") {
		return
	}
	if what := rule(value); what != "" {
		c.fail(o.Problem(path, fmt.Sprintf("%s of %s: %s", name, component, what), "change the value, or remove the argument"))
	}
}

// versionRule returns the rule of an argument whose values are versions of Kubernetes; nil for none.
func versionRule(name string, v kubernetesVersion) valueRule {
	const firstEmulated, before = 31, 3
	switch name {
	case "show-hidden-metrics-for-version": // k8s.io/component-base/metrics/options.go
		return oneOf(fmt.Sprintf("1.%d", v.minor-1))
	case "emulated-version", "min-compatibility-version": // k8s.io/apiserver/pkg/util/compatibility/version.go
		var permitted []string
		for minor := max(firstEmulated, v.minor-before); minor <= v.minor; minor++ {
			permitted = append(permitted, fmt.Sprintf("1.%d", minor))
		}
		return listOf(func(value string) string {
			if component, of, is := strings.Cut(value, "="); is && component == "kube" {
				return oneOf(permitted...)(of)
			} else if is {
				return ""
			}
			return oneOf(permitted...)(value)
		})
	}
	return nil
}

// newerRule is a rule that a component has since a minor version.
type newerRule struct {
	since uint64
	rule  valueRule
}

// newerRules are rules of cmd/kube-controller-manager/app/options that came later. The cloud providers, and what they allocated, were
// removed in Kubernetes 1.31.
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var newerRules = sync.OnceValue(func() map[string]newerRule {
	return map[string]newerRule{
		components.ControllerManager + " cidr-allocator-type":        {31, oneOf("RangeAllocator")},
		components.ControllerManager + " concurrent-cron-job-syncs":  {28, between(1, 1<<31-1)},
		components.ControllerManager + " concurrent-job-syncs":       {28, between(1, 1<<31-1)},
		components.ControllerManager + " concurrent-daemonset-syncs": {34, between(1, 1<<31-1)},
	}
})

func oneOf(permitted ...string) valueRule {
	return func(value string) string {
		if slices.Contains(permitted, value) {
			return ""
		}
		if len(permitted) > 12 {
			return fmt.Sprintf("%q is not known", value)
		}
		return fmt.Sprintf("%q is not one of %s", value, strings.Join(permitted, ", "))
	}
}

// listOf applies a rule to the items of a list with commas.
func listOf(rule valueRule) valueRule {
	return func(value string) string {
		for item := range strings.SplitSeq(value, ",") {
			if what := rule(strings.TrimSpace(item)); item != "" && what != "" {
				return what
			}
		}
		return ""
	}
}

// once is a rule of a list in which no item stands twice.
func once(rule valueRule) valueRule {
	return func(value string) string {
		items := strings.Split(value, ",")
		for i, item := range items {
			if slices.Contains(items[:i], item) {
				return fmt.Sprintf("%q is listed twice", item)
			}
		}
		return rule(value)
	}
}

func matching(pattern, what string) valueRule {
	compiled := regexp.MustCompile(pattern)
	return func(value string) string {
		if compiled.MatchString(value) {
			return ""
		}
		return fmt.Sprintf("%q is not %s", value, what)
	}
}

func between(least, most int64) valueRule {
	return func(value string) string {
		if n, err := strconv.ParseInt(value, 0, 64); err == nil && n >= least && n <= most {
			return ""
		}
		return fmt.Sprintf("%s is not a number from %d to %d", value, least, most)
	}
}

// notNegative is the rule of numbers and durations.
func notNegative(value string) string {
	if strings.HasPrefix(value, "-") {
		return value + " is negative"
	}
	return ""
}

func share(least, most float64) valueRule {
	return func(value string) string {
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= least && n <= most {
			return ""
		}
		return fmt.Sprintf("%s is not a number from %v to %v", value, least, most)
	}
}

func lasting(least, most time.Duration) valueRule {
	return func(value string) string {
		switch d, err := time.ParseDuration(value); {
		case err == nil && d >= least && d <= most:
			return ""
		case most == math.MaxInt64:
			return fmt.Sprintf("%s is less than %s", value, least)
		default:
			return fmt.Sprintf("%s is not a duration from %s to %s", value, least, most)
		}
	}
}

// probed is the rule of the port of a component of the control plane: the probes in kubeadm's static pods use one port, and the
// kubelet ends a container that does not answer there (cmd/kubeadm/app/phases/controlplane/manifests.go).
func probed(port int) valueRule {
	return func(value string) string {
		if value == strconv.Itoa(port) {
			return ""
		}
		return fmt.Sprintf("with the port %s it is ended again and again: kubeadm's probes use the port %d", value, port)
	}
}

// anonymous is the rule of anonymous-auth: the probes in kubeadm's static pods, and the wait of kubeadm itself, send no credentials.
func anonymous(value string) string {
	if on, err := strconv.ParseBool(value); err != nil || on {
		return ""
	}
	return "without anonymous requests kubeadm's probes get the status 401, and the kubelet ends the API server again and again"
}

// issuer is the rule of service-account-issuer: with a colon, it is a URL (pkg/kubeapiserver/options/authentication.go).
func issuer(value string) string {
	if _, err := url.Parse(value); strings.Contains(value, ":") && err != nil {
		return fmt.Sprintf("%q is not a URL", value)
	}
	return ""
}

func nodeName(value string) string {
	if bad := validation.IsDNS1123Subdomain(value); !strings.Contains(value, "{") && len(bad) > 0 {
		return fmt.Sprintf("%q is not the name of a Node: %s", value, bad[0])
	}
	return ""
}

func address(value string) string {
	if _, err := netip.ParseAddr(value); err == nil {
		return ""
	}
	return fmt.Sprintf("%q is not an IP address", value)
}

// nodeAddresses is the rule of node-ip: one address, or one of each family.
func nodeAddresses(value string) string {
	if what := listOf(address)(value); what != "" {
		return what
	}
	all := strings.Split(value, ",")
	if len(all) > 2 || len(all) == 2 && strings.Contains(all[0], ":") == strings.Contains(all[1], ":") {
		return fmt.Sprintf("%q is neither one IP address nor one of each family", value)
	}
	return ""
}

// zeroOr is the rule of a duration that may be 0.
func zeroOr(rule valueRule) valueRule {
	return func(value string) string {
		if d, err := time.ParseDuration(value); err == nil && d == 0 {
			return ""
		}
		return rule(value)
	}
}

// pair is the rule of an item of a mapping: NAME=VALUE.
func pair(value string) string {
	if strings.Contains(value, "=") {
		return ""
	}
	return fmt.Sprintf("%q is not written as NAME=VALUE", value)
}

func block(value string) string {
	if _, err := netip.ParsePrefix(value); err == nil {
		return ""
	}
	return fmt.Sprintf("%q is not a block of addresses such as 10.96.0.0/12", value)
}

// origin is the rule of an item of cors-allowed-origins: a regular expression that says where the host begins and ends
// (validateCorsAllowedOriginList in k8s.io/apiserver/pkg/server/options).
func origin(value string) string {
	switch _, err := regexp.Compile(value); {
	case err != nil:
		return fmt.Sprintf("%q is not a regular expression", value)
	case !strings.Contains(value, "^") && !strings.Contains(value, "//") || !strings.ContainsAny(value, "$:"):
		return fmt.Sprintf("%q does not say where the host begins and ends, as //example\\.com(:|$) does", value)
	}
	return ""
}

func secureURL(value string) string {
	if strings.HasPrefix(value, "https://") {
		return ""
	}
	return fmt.Sprintf("%q is not a URL that begins with https://", value)
}

// portRange is the rule of a range of ports: "30000-32767", "30000+2767" or one port (PortRange in
// k8s.io/apimachinery/pkg/util/net).
func portRange(value string) string {
	first, last, is := strings.Cut(value, "-")
	if !is && matching(`^\d+\+\d+$`, "")(value) == "" {
		return ""
	} else if !is {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, bad := strconv.Atoi(last)
	if err != nil || bad != nil || from < 0 || to > mostPort || from > to {
		return fmt.Sprintf("%q is not a range of ports such as 30000-32767", value)
	}
	return ""
}

// onOrOff is the rule of an item of runtime-config: NAME, or NAME=true.
func onOrOff(value string) string {
	api, on, is := strings.Cut(value, "=")
	if _, err := strconv.ParseBool(on); is && err != nil {
		return fmt.Sprintf("%q is not an API with true or false", value)
	}
	if parts := strings.Count(api, "/"); parts < 1 || parts > 2 { // k8s.io/apiserver/pkg/server/resourceconfig
		return fmt.Sprintf("%q is not an API such as apps/v1, apps/v1/deployments or api/beta", api)
	}
	group, _, _ := strings.Cut(api, "/")
	if group != "" && !slices.Contains(apiGroups(), group) { // Validate in k8s.io/apiserver/pkg/server/options/api_enablement.go
		return fmt.Sprintf("%q is not a group of APIs of Kubernetes", group)
	}
	return ""
}

// apiGroups returns the API groups that runtime-config can name: those that the API server serves, or has served since Kubernetes 1.27
// (pkg/apis of Kubernetes, kube-aggregator and apiextensions-apiserver), and "api", as in api/beta for all beta versions.
func apiGroups() []string {
	return strings.Fields(`api admission.k8s.io admissionregistration.k8s.io apidiscovery.k8s.io apiextensions.k8s.io apiregistration.k8s.io apps
		apiserverinternal.k8s.io authentication.k8s.io authorization.k8s.io autoscaling batch certificates.k8s.io coordination.k8s.io discovery.k8s.io
		events.k8s.io extensions flowcontrol.apiserver.k8s.io imagepolicy.k8s.io internal.apiserver.k8s.io networking.k8s.io node.k8s.io policy
		rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io storagemigration.k8s.io`)
}

// remoteUser is the rule of requestheader-uid-headers.
func remoteUser(value string) string {
	const standard = "X-Remote-Uid"
	if slices.ContainsFunc(strings.Split(value, ","), func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), standard) }) {
		return ""
	}
	return fmt.Sprintf("%q has not the header %s, without which the API server does not start", value, standard)
}

func quantity(value string) string {
	if q, err := resource.ParseQuantity(value); err == nil && q.Sign() >= 0 {
		return ""
	}
	return fmt.Sprintf("%q is not a quantity such as 100Mi", value)
}

// reservation is the rule of an item of system-reserved and kube-reserved: cpu=100m.
func reservation(value string) string {
	name, amount, _ := strings.Cut(value, "=")
	if what := oneOf("cpu", "memory", "ephemeral-storage", "pid")(name); what != "" {
		return what
	}
	return quantity(amount)
}

// evictionSignals are the signals of the kubelet (k8s.io/kubernetes/pkg/kubelet/eviction/api).
func evictionSignals() []string {
	return []string{
		"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available",
		"containerfs.inodesFree", "allocatableMemory.available", "pid.available",
	}
}

// threshold is the rule of an item of eviction-hard: memory.available<100Mi, or nodefs.available<10%.
func threshold(operator string) valueRule {
	return func(value string) string {
		signal, amount, is := strings.Cut(value, operator)
		if !is {
			return fmt.Sprintf("%q is not a threshold such as memory.available%s100Mi", value, operator)
		}
		if what := oneOf(evictionSignals()...)(signal); what != "" {
			return what
		}
		percent, is := strings.CutSuffix(amount, "%")
		if !is {
			return quantity(amount)
		}
		if n, err := strconv.ParseFloat(percent, 32); err != nil || n < 0 || n > 100 {
			return fmt.Sprintf("%q is not a percentage", amount)
		}
		return ""
	}
}

// gracePeriod is the rule of an item of eviction-soft-grace-period: memory.available=1m30s.
func gracePeriod(value string) string {
	signal, period, _ := strings.Cut(value, "=")
	if what := oneOf(evictionSignals()...)(signal); what != "" {
		return what
	}
	if d, err := time.ParseDuration(period); err != nil || d < 0 {
		return fmt.Sprintf("%q is not a duration such as 1m30s", period)
	}
	return ""
}

// cipherSuites are the names that components know: those of Go, and two older names.
func cipherSuites() []string {
	names := []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}
	for _, c := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		names = append(names, c.Name)
	}
	return names
}

// controller is the rule of an item of controllers: "*", a name, or "-" and a name.
func controller(value string) string {
	name := strings.TrimPrefix(value, "-")
	if value == "*" || slices.Contains(controllers(), name) {
		return ""
	}
	return fmt.Sprintf("%q is not a controller such as node-ipam-controller", name)
}

// newestControllers is the newest minor version whose controllers are known here.
const newestControllers = 34

// controllers are the controllers of the kube-controller-manager, and the names that they had until Kubernetes 1.27
// (cmd/kube-controller-manager/names, and the aliases in cmd/kube-controller-manager/app).
func controllers() []string {
	return strings.Fields(`bootstrap-signer-controller certificatesigningrequest-approving-controller certificatesigningrequest-cleaner-controller
		certificatesigningrequest-signing-controller cloud-node-lifecycle-controller clusterrole-aggregation-controller
		cronjob-controller daemonset-controller deployment-controller device-taint-eviction-controller disruption-controller
		endpoints-controller endpointslice-controller endpointslice-mirroring-controller ephemeral-volume-controller
		garbage-collector-controller horizontal-pod-autoscaler-controller job-controller
		kube-apiserver-serving-clustertrustbundle-publisher-controller legacy-serviceaccount-token-cleaner-controller
		namespace-controller node-ipam-controller node-lifecycle-controller node-route-controller
		persistentvolume-attach-detach-controller persistentvolume-binder-controller persistentvolume-expander-controller
		persistentvolume-protection-controller persistentvolumeclaim-protection-controller pod-garbage-collector-controller
		podcertificaterequest-cleaner-controller replicaset-controller replicationcontroller-controller resourceclaim-controller
		resourcequota-controller root-ca-certificate-publisher-controller selinux-warning-controller service-cidr-controller
		service-lb-controller serviceaccount-controller serviceaccount-token-controller statefulset-controller
		storage-version-migrator-controller storageversion-garbage-collector-controller taint-eviction-controller
		token-cleaner-controller ttl-after-finished-controller ttl-controller validatingadmissionpolicy-status-controller
		volumeattributesclass-protection-controller
		attachdetach bootstrapsigner cloud-node-lifecycle clusterrole-aggregation cronjob csrapproving csrcleaner csrsigning
		daemonset deployment disruption endpoint endpointslice endpointslicemirroring ephemeral-volume garbagecollector
		horizontalpodautoscaling job legacy-service-account-token-cleaner namespace nodeipam nodelifecycle persistentvolume-binder
		persistentvolume-expander podgc pv-protection pvc-protection replicaset replicationcontroller resource-claim-controller
		resourcequota root-ca-cert-publisher route service serviceaccount serviceaccount-token statefulset storage-version-gc svm
		tokencleaner ttl ttl-after-finished`)
}

// checkTogether checks arguments that a component accepts only with others.
func (c *checks) checkTogether(o *manifest.Entry, path, component string, args map[string]string) {
	fail := func(what, fix string) {
		c.fail(o.Problem(namedArgument(o, path, what), component+" does not start: "+what, fix))
	}
	switch component {
	case components.APIServer: // k8s.io/apiserver/pkg/server/options/admission.go
		checkServerTogether(args, fail)
		for plugin := range strings.SplitSeq(args["enable-admission-plugins"], ",") {
			if plugin != "" && slices.Contains(strings.Split(args["disable-admission-plugins"], ","), plugin) {
				fail(fmt.Sprintf("the admission plugin %s is enabled and disabled", plugin), "remove it from one of the arguments")
			}
		}
	case components.ControllerManager:
		checkElection(args, fail)
		for _, name := range slices.Sorted(maps.Keys(args)) { // cmd/kube-controller-manager/app/options/csrsigningcontroller.go; kubeadm sets the first two
			if strings.HasPrefix(name, "cluster-signing-") && strings.HasSuffix(name, "-file") && name != "cluster-signing-cert-file" &&
				name != "cluster-signing-key-file" {
				fail(name+" excludes cluster-signing-cert-file and cluster-signing-key-file, which kubeadm sets", "remove it")
				break
			}
		}
	case components.Scheduler:
		checkElection(args, fail)
	case components.Kubelet:
		checkKubeletTogether(args, fail)
	}
}

// namedArgument returns the path of the argument that a text names first; that of all arguments if the manifest sets none of those.
func namedArgument(o *manifest.Entry, path, text string) string {
	found, first := path, len(text)
	note := func(name, at string) {
		if i := slices.Index(regex.Of(`[A-Za-z0-9-]+`).FindAllString(text, -1), name); i >= 0 && i < first {
			found, first = at, i
		}
	}
	switch all := manifest.ValueAt(o.Value, path).(type) {
	case []any:
		for i, x := range all {
			arg, _ := x.(map[string]any)
			note(manifest.StringField(arg, "name"), argumentPath(o, path, i, manifest.StringField(arg, "name")))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(all)) {
			note(name, path+"."+name)
		}
	}
	return found
}

// usualPeriod is the default of cpu-cfs-quota-period.
const usualPeriod = 100 * time.Millisecond

// checkElection compares the durations of the election of a leader (ValidateLeaderElectionConfiguration in
// k8s.io/component-base/config/validation, and NewLeaderElector in k8s.io/client-go/tools/leaderelection).
func checkElection(args map[string]string, fail func(what, fix string)) {
	const jitter = 1.2
	lease, renew := durationOf(args, "leader-elect-lease-duration", 15*time.Second), durationOf(args, "leader-elect-renew-deadline", 10*time.Second)
	retry := durationOf(args, "leader-elect-retry-period", 2*time.Second)
	if on, err := strconv.ParseBool(args["leader-elect"]); err == nil && !on {
		return
	}
	switch {
	case retry <= 0:
		fail(fmt.Sprintf("leader-elect-retry-period is %s", retry), "use a duration such as 2s")
	case lease <= renew:
		fail(fmt.Sprintf("leader-elect-lease-duration, %s, is not longer than leader-elect-renew-deadline, %s", lease, renew), "set both, such as 15s and 10s")
	case renew.Seconds() <= jitter*retry.Seconds():
		fail(
			fmt.Sprintf("leader-elect-renew-deadline, %s, is not longer than %v times leader-elect-retry-period, %s", renew, jitter, retry),
			"set both, such as 10s and 2s",
		)
	}
}

// durationOf returns the duration in an argument, or its default.
func durationOf(args map[string]string, name string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(args[name]); err == nil {
		return d
	}
	return usual
}

// numberOf returns the number in an argument, or its default.
func numberOf(args map[string]string, name string, usual int) int {
	if n, err := strconv.Atoi(args[name]); err == nil {
		return n
	}
	return usual
}

// checkKubeletLimits compares numbers and durations of the kubelet with each other, as the kubelet does when it starts
// (ValidateKubeletConfiguration in pkg/kubelet/apis/config/validation of Kubernetes).
func checkKubeletLimits(args map[string]string, fail func(what, fix string)) {
	const usualHigh, usualLow, usualAge = 85, 80, 2 * time.Minute
	if high, low := numberOf(args, "image-gc-high-threshold", usualHigh), numberOf(args, "image-gc-low-threshold", usualLow); low >= high {
		fail(fmt.Sprintf("image-gc-low-threshold, %d, is not less than image-gc-high-threshold, %d", low, high), "set both")
	}
	if n := numberOf(args, "maxParallelImagePulls", 1); n > 1 && args["serialize-image-pulls"] != "false" {
		fail(fmt.Sprintf("maxParallelImagePulls is %d, and images are pulled one after the other", n), "set serializeImagePulls: false")
	}
	if part, all := durationOf(args, "shutdownGracePeriodCriticalPods", 0), durationOf(args, "shutdownGracePeriod", 0); part > all {
		fail(fmt.Sprintf("shutdownGracePeriodCriticalPods, %s, is a part of shutdownGracePeriod, which is %s", part, all), "set a longer shutdownGracePeriod")
	}
	if most, least := durationOf(args, "imageMaximumGCAge", 0), durationOf(args, "minimum-image-ttl-duration", usualAge); most > 0 && most <= least {
		fail(fmt.Sprintf("imageMaximumGCAge, %s, is not more than imageMinimumGCAge, %s", most, least), "set more")
	}
}

// checkReservations checks what a kubelet reserves, and which reservations it enforces (also pkg/kubelet/cm/memorymanager).
func checkReservations(args map[string]string, fail func(what, fix string)) {
	enforced := strings.Split(args["enforce-node-allocatable"], ",")
	if _, memory := args["reserved-memory"]; args["memory-manager-policy"] == "Static" && !memory {
		fail("the static policy of the memory manager needs reserved memory", "set reserved-memory")
	}
	if args["reserved-cpus"] != "" && args["system-reserved-cgroup"]+args["kube-reserved-cgroup"] != "" {
		fail("reserved-cpus cannot be set together with system-reserved-cgroup or kube-reserved-cgroup", "remove one of them")
	}
	checkEnforced(args, enforced, fail)
}

// checkEnforced checks enforce-node-allocatable, the reservations that a kubelet enforces, and whether the kubelet can enforce them.
func checkEnforced(args map[string]string, enforced []string, fail func(what, fix string)) {
	if slices.Contains(enforced, "none") && len(enforced) > 1 {
		fail("enforce-node-allocatable has none, and more", "remove none, or the others")
	}
	if len(slices.Compact(slices.Sorted(slices.Values(enforced)))) < len(enforced) {
		fail("enforce-node-allocatable has a value twice", "remove one of them")
	}
	if args["cgroups-per-qos"] == "false" && args["enforce-node-allocatable"] != "none" {
		fail("without cgroups-per-qos, the kubelet cannot enforce reservations, as it does by default", "remove it, or set enforce-node-allocatable to none")
	}
	for _, of := range []string{"system-reserved", "kube-reserved"} {
		if slices.Contains(enforced, of) && slices.Contains(enforced, of+"-compressible") {
			fail(fmt.Sprintf("enforce-node-allocatable has %s and %s-compressible", of, of), "remove one of them")
		}
		if (slices.Contains(enforced, of) || slices.Contains(enforced, of+"-compressible")) && args[of+"-cgroup"] == "" {
			fail(fmt.Sprintf("enforce-node-allocatable has %s, and %s-cgroup is not set", of, of), "set it, or remove "+of)
		}
	}
}

func checkKubeletTogether(args map[string]string, fail func(what, fix string)) {
	_, config := args["image-credential-provider-config"]
	if _, programs := args["image-credential-provider-bin-dir"]; config != programs { // pkg/credentialprovider/plugin
		fail("image-credential-provider-config and image-credential-provider-bin-dir belong together", "set both")
	}
	const period, gate = "cpu-cfs-quota-period", "CustomCPUCFSQuotaPeriod" // pkg/kubelet/apis/config/validation
	if d := durationOf(args, period, usualPeriod); d != usualPeriod && d >= time.Millisecond && d <= time.Second &&
		!strings.Contains(args["feature-gates"], gate+"=true") && !strings.Contains(args["feature-gates"], "AllAlpha=true") {
		fail(period+" needs the feature gate "+gate, "set the feature gate to true, or remove it")
	}
	_, listed := args["reserved-cpus"]
	_, file := args["config"]
	if !file {
		checkKubeletLimits(args, fail)
		checkReservations(args, fail)
	}
	reserves := regex.Of(`(^|,)cpu=`).MatchString
	if args["cpu-manager-policy"] == "static" && !listed && !file && !reserves(args["system-reserved"]) && !reserves(args["kube-reserved"]) {
		fail("the static policy of the CPU manager needs reserved CPUs", "set reserved-cpus, system-reserved or kube-reserved") // pkg/kubelet/cm/cpumanager
	}
	checkEvictions(args, fail)
}

// checkEvictions checks that each soft threshold has a grace period.
func checkEvictions(args map[string]string, fail func(what, fix string)) {
	for item := range strings.SplitSeq(args["eviction-soft"], ",") { // pkg/kubelet/eviction/helpers.go
		signal, _, is := strings.Cut(item, "<")
		if is && !strings.Contains(","+args["eviction-soft-grace-period"], ","+signal+"=") {
			fail(fmt.Sprintf("eviction-soft has %s, and eviction-soft-grace-period has not", signal), "add "+signal+"=1m30s to it")
		}
	}
}
