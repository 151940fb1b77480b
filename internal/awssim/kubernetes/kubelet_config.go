package kubernetes

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// patchesRefused returns why kubeadm does not apply the patches in a folder, or why the kubelet does not start with the
// configuration that they make (cmd/kubeadm/app/util/patches/patches.go). Files that have no target are ignored.
func patchesRefused(folder string, files map[string]string, version string, m machine) string {
	if folder == "" {
		return ""
	}
	settings := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		base := path.Base(name)
		if !strings.HasPrefix(name, path.Clean(folder)+"/") || !strings.HasSuffix(base, ".yaml") && !strings.HasSuffix(base, ".json") {
			continue
		}
		target := regex.Of(`^(etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubeletconfiguration|corednsdeployment)([^.+]*)(\+?)(json|merge|strategic)?`).
			FindStringSubmatch(base)
		if target == nil || files[name] == "" {
			continue
		}
		if target[3] != "" && target[4] == "" {
			return "kubeadm: unknown or missing patch type after '+', must be one of [json merge strategic]"
		}
		docs, err := patchDocuments(files[name])
		if err != nil {
			return "kubeadm: could not convert patch to JSON: " + err.Error()
		}
		for _, d := range docs {
			list, isList := d.([]any)
			fields, isMap := d.(map[string]any)
			switch {
			case target[4] == "json" && !isList || target[4] != "json" && !isMap:
				return fmt.Sprintf("kubeadm: could not apply the following patch to target %q", target[1])
			case strings.HasPrefix(target[1], "kube-") || target[1] == "etcd":
				if why := staticPodPatchRefused(target[1], target[4], d); why != "" && m.plane {
					return why
				}
			case target[1] != "kubeletconfiguration":
			case isList:
				for _, x := range list {
					op, _ := x.(map[string]any)
					field := strings.TrimPrefix(fmt.Sprint(op["path"]), "/")
					if outer, inner, deeper := strings.Cut(field, "/"); op["op"] != "remove" && deeper && !strings.Contains(inner, "/") {
						settings[outer] = map[string]any{inner: op["value"]}
					} else if op["op"] != "remove" && !deeper {
						settings[field] = op["value"]
					}
				}
			default:
				maps.Copy(settings, fields)
			}
		}
	}
	return cmp.Or(kubeletConfigRefused(settings, version), replacedKubelet(kubeletArguments(settings), "", m))
}

// patchDocuments reads the documents of a file with patches.
func patchDocuments(text string) (all []any, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewBufferString(text)))
	for {
		data, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		var doc any
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return nil, err
		}
		all = append(all, doc)
	}
}

// kubeletFields are fields of the kubelet's configuration: the type of each, and the flag that has the same rules
// (k8s.io/kubelet/config/v1beta1/types.go).
const kubeletFields = `
maxPods int max-pods
podsPerCore int pods-per-core
maxOpenFiles int max-open-files
eventBurst int event-burst
eventRecordQPS int event-qps
kubeAPIBurst int kube-api-burst
kubeAPIQPS int kube-api-qps
registryBurst int registry-burst
registryPullQPS int registry-qps
healthzPort int healthz-port
readOnlyPort int read-only-port
port int port
imageGCHighThresholdPercent int image-gc-high-threshold
imageGCLowThresholdPercent int image-gc-low-threshold
oomScoreAdj int oom-score-adj
containerLogMaxFiles int container-log-max-files
containerLogMaxSize string container-log-max-size
nodeStatusMaxImages int node-status-max-images
cpuCFSQuotaPeriod duration cpu-cfs-quota-period
memoryThrottlingFactor float memoryThrottlingFactor
maxParallelImagePulls int maxParallelImagePulls
nodeLeaseDurationSeconds int nodeLeaseDurationSeconds
containerLogMaxWorkers int containerLogMaxWorkers
containerLogMonitorInterval duration containerLogMonitorInterval
cgroupDriver string cgroup-driver
cpuManagerPolicy string cpu-manager-policy
memoryManagerPolicy string memory-manager-policy
topologyManagerPolicy string topology-manager-policy
topologyManagerScope string topology-manager-scope
hairpinMode string hairpin-mode
reservedSystemCPUs string reserved-cpus
serializeImagePulls bool serialize-image-pulls
shutdownGracePeriod duration shutdownGracePeriod
shutdownGracePeriodCriticalPods duration shutdownGracePeriodCriticalPods
nodeStatusUpdateFrequency duration node-status-update-frequency
syncFrequency duration sync-frequency
streamingConnectionIdleTimeout duration streaming-connection-idle-timeout
imageMinimumGCAge duration minimum-image-ttl-duration
imageMaximumGCAge duration imageMaximumGCAge
rotateCertificates bool rotate-certificates
serverTLSBootstrap bool serverTLSBootstrap
failSwapOn bool fail-swap-on
protectKernelDefaults bool protect-kernel-defaults
makeIPTablesUtilChains bool make-iptables-util-chains
enableDebuggingHandlers bool enable-debugging-handlers
seccompDefault bool seccomp-default
evictionHard map< eviction-hard
evictionSoft map< eviction-soft
evictionSoftGracePeriod map= eviction-soft-grace-period
evictionMinimumReclaim map= eviction-minimum-reclaim
systemReserved map= system-reserved
kubeReserved map= kube-reserved
featureGates map= feature-gates
enforceNodeAllocatable list enforce-node-allocatable
allowedUnsafeSysctls list allowed-unsafe-sysctls
clusterDNS list cluster-dns
tlsCipherSuites list tls-cipher-suites
tlsMinVersion string tls-min-version
registerNode bool register-node
staticPodPath string pod-manifest-path
providerID string provider-id
address string address
containerRuntimeEndpoint string container-runtime-endpoint
authorization.mode string authorization-mode
authentication.x509.clientCAFile string client-ca-file
`

// settingAt returns a setting by its path, with dots between the names of fields; nil if it is not set.
func settingAt(settings map[string]any, at string) any {
	name, rest, deeper := strings.Cut(at, ".")
	if inside, is := settings[name].(map[string]any); deeper && is {
		return settingAt(inside, rest)
	} else if deeper {
		return nil
	}
	return settings[name]
}

// kubeletConfigRefused returns why the kubelet does not start with settings of its configuration; "" if it does. It
// ignores fields that it does not know (DecodeKubeletConfiguration in pkg/kubelet/kubeletconfig/util/codec).
func kubeletConfigRefused(settings map[string]any, version string) string {
	args := []any{}
	for line := range strings.SplitSeq(kubeletFields, "\n") {
		w := strings.Fields(line)
		if len(w) != 3 || settingAt(settings, w[0]) == nil {
			continue
		}
		value, ok := ofType(w[1], settingAt(settings, w[0]))
		if !ok {
			return fmt.Sprintf("kubelet: failed to load kubelet config file: json: cannot unmarshal into Go struct field KubeletConfiguration.%s", w[0])
		}
		why := cmp.Or(
			limitRefused(
				"kubelet",
				w[2],
				value,
			),
			choiceRefused("kubelet", w[2], value),
			syntaxRefused("kubelet", w[2], value),
			valueRefused(w[2], value, minorOf(version)),
		)
		if why != "" {
			return "kubelet: invalid configuration: " + w[0] + ": " + why
		}
		args = append(args, map[string]any{"name": w[2], "value": value})
	}
	if why := togetherRefused("kubelet", args); why != "" {
		return "kubelet: invalid configuration: " + why
	}
	return ""
}

// kubeletArguments returns the flags that have the same meaning as settings of a kubelet.
func kubeletArguments(settings map[string]any) any {
	args := []any{}
	for line := range strings.SplitSeq(kubeletFields, "\n") {
		if w := strings.Fields(line); len(w) == 3 && settingAt(settings, w[0]) != nil {
			value, _ := ofType(w[1], settingAt(settings, w[0]))
			args = append(args, map[string]any{"name": w[2], "value": value})
		}
	}
	return args
}

// ofType returns a value as the text of a flag, if it is of a type of the configuration.
func ofType(kind string, value any) (text string, ok bool) {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v), kind == "bool"
	case string:
		return v, kind == "string" || kind == "duration" && regex.Of(durations).MatchString(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), kind == "float" || kind == "int" && v == float64(int64(v)) || kind == "duration" && v == 0
	case []any:
		var items []string
		for _, x := range v {
			items = append(items, fmt.Sprint(x))
		}
		return strings.Join(items, ","), kind == "list"
	case map[string]any:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, key+strings.TrimPrefix(kind, "map")+fmt.Sprint(v[key]))
		}
		return strings.Join(items, ","), strings.HasPrefix(kind, "map")
	}
	return "", reflect.ValueOf(value).Kind() == reflect.Int64 && kind == "int"
}

const durations = `^-?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`
