package rules

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// corednsPatchesBegin is the first minor version of Kubernetes whose kubeadm patches CoreDNS.
const corednsPatchesBegin = 32

// checkPatches checks the files in the folder of kubeadm's patches. kubeadm reads the target and the type from the name
// of a file, and ignores files without a target (parseFilename in cmd/kubeadm/app/util/patches/patches.go).
func (c *checks) checkPatches(o *manifest.Entry, prefix, folder string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion) {
	targets := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeletconfiguration"}
	if v.minor >= corednsPatchesBegin {
		targets = append(targets, "corednsdeployment")
	}
	name := regexp.MustCompile(`^(` + strings.Join(targets, "|") + `)[^.+]*(\+?)(json|merge|strategic)?`)
	for i, f := range spec.Files {
		at := fmt.Sprintf("%s.files[%d]", prefix, i)
		if path.Dir(path.Clean(f.Path)) != path.Clean(folder) {
			continue
		}
		base := path.Base(f.Path)
		parts := name.FindStringSubmatch(base)
		switch {
		case !strings.HasSuffix(base, ".yaml") && !strings.HasSuffix(base, ".json"):
			c.warn(o.Problem(at+".path", "kubeadm ignores "+base+" in its folder of patches: it reads .yaml and .json", "change the name"))
		case parts == nil:
			c.warn(
				o.Problem(
					at+".path",
					"kubeadm ignores "+base+" in its folder of patches: the name begins with no target",
					"begin it with one of "+strings.Join(targets, ", "),
				),
			)
		case parts[2] != "" && parts[3] == "":
			c.fail(o.Problem(at+".path", "kubeadm fails: after + in "+base+" is no type of patches", "write +merge, +strategic or +json"))
		case f.Content != "" && f.Encoding == "":
			c.checkPatch(o, at+".content", parts[1], parts[3], f.Content, v, spec)
		}
	}
}

// checkPatch checks the content of a patch.
func (c *checks) checkPatch(o *manifest.Entry, at, target, kind, text string, v kubernetesVersion, spec *bootstrapv1.KubeadmConfigSpec) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewBufferString(text)))
	for {
		data, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		var doc any
		if err == nil {
			err = yaml.Unmarshal(data, &doc)
		}
		if err != nil {
			c.fail(o.Problem(at, "kubeadm fails: the patch is neither YAML nor JSON", "correct the text"))
			return
		}
		fields, isMapping := doc.(map[string]any)
		operations, isList := doc.([]any)
		switch {
		case doc == nil:
		case kind == "json" && !isList:
			c.fail(o.Problem(at, "kubeadm fails: a patch of the type json is a list of operations", "write a list, or name the file +merge"))
		case kind != "json" && !isMapping:
			c.fail(o.Problem(at, "kubeadm fails: the patch is not a mapping", "write the fields to change, or name the file +json for a list of operations"))
		case isStaticPod(target):
			c.checkStaticPodPatch(o, at, target, kind, doc, spec)
		case target != "kubeletconfiguration":
		case isList:
			c.checkPatchedKubelet(o, at, settingsOf(operations), v, spec)
		default:
			c.checkPatchedKubelet(o, at, fields, v, spec)
		}
	}
}

// checkPatchedKubelet checks the settings in a patch of kubeadm as the arguments of a kubelet are checked.
func (c *checks) checkPatchedKubelet(o *manifest.Entry, at string, settings map[string]any, v kubernetesVersion, spec *bootstrapv1.KubeadmConfigSpec) {
	args := c.checkKubeletSettings(o, at, settings, v)
	c.failAll(o, at, unhealthyKubelet(args))
	if folder := args["pod-manifest-path"]; o.Kind == manifest.KindControlPlane && folder != "" && path.Clean(folder) != staticPods {
		c.fail(o.Problem(at, "staticPodPath: the control plane would not start: kubeadm writes its pods into "+staticPods, "remove it"))
	}
	if file := args["client-ca-file"]; path.IsAbs(file) {
		c.checkClientCA(o, at, file, spec)
	}
}

// staticPods is the folder in which kubeadm writes the pods of a control plane.
const staticPods = "/etc/kubernetes/manifests"

// checkClientCA warns of a file with certificates of clients that a kubelet does not find: it does not start then (cmd/kubelet/app/server.go of
// Kubernetes). kubeadm writes ca.crt on each machine, and the others on those of the control plane.
func (c *checks) checkClientCA(o *manifest.Entry, at, file string, spec *bootstrapv1.KubeadmConfigSpec) {
	name, inside := strings.CutPrefix(path.Clean(file), "/etc/kubernetes/pki/")
	switch {
	case inside && (name == "ca.crt" || slices.Contains(filesOfKubeadm(), name) && o.Kind == manifest.KindControlPlane):
	default:
		c.checkWritten(o, at, file, spec, "the kubelet does not start")
	}
}

// settingsOf returns the fields that the operations of a JSON patch set. An item of a list is not one.
func settingsOf(operations []any) map[string]any {
	settings := map[string]any{}
	for _, x := range operations {
		operation, _ := x.(map[string]any)
		at, _ := operation["path"].(string)
		if operation["op"] == "remove" || operation["value"] == nil {
			continue
		}
		fields := strings.Split(strings.TrimPrefix(at, "/"), "/")
		if regex.Of(`(^|/)(\d+|-)(/|$)`).MatchString(at) {
			continue
		}
		inside := settings
		for _, name := range fields[:len(fields)-1] {
			next, is := inside[name].(map[string]any)
			if !is {
				next = map[string]any{}
				inside[name] = next
			}
			inside = next
		}
		inside[fields[len(fields)-1]] = operation["value"]
	}
	return settings
}

// kubeletField is a field of KubeletConfiguration: its form, and the argument of the kubelet that means the same; the name
// of the field if there is none. Forms are those of the table of the components; 's' is a text, 'l' a list, and '<' and '='
// a mapping that the argument writes with this sign.
type kubeletField struct {
	form     byte
	argument string
}

// kubeletFields are the fields with rules (k8s.io/kubelet/config/v1beta1/types.go).
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var kubeletFields = sync.OnceValue(func() map[string]kubeletField {
	fields := map[string]kubeletField{}
	for form, names := range map[byte]string{
		'i': `maxPods:max-pods podsPerCore:pods-per-core maxOpenFiles:max-open-files eventBurst:event-burst eventRecordQPS:event-qps
			kubeAPIBurst:kube-api-burst kubeAPIQPS:kube-api-qps registryBurst:registry-burst registryPullQPS:registry-qps
			healthzPort:healthz-port readOnlyPort:read-only-port port:port imageGCHighThresholdPercent:image-gc-high-threshold
			imageGCLowThresholdPercent:image-gc-low-threshold oomScoreAdj:oom-score-adj containerLogMaxFiles:container-log-max-files
			nodeStatusMaxImages:node-status-max-images podPidsLimit:pod-max-pids maxParallelImagePulls nodeLeaseDurationSeconds
			containerLogMaxWorkers`,
		'f': `memoryThrottlingFactor`,
		'd': `cpuCFSQuotaPeriod:cpu-cfs-quota-period nodeStatusUpdateFrequency:node-status-update-frequency syncFrequency:sync-frequency
			streamingConnectionIdleTimeout:streaming-connection-idle-timeout imageMinimumGCAge:minimum-image-ttl-duration imageMaximumGCAge
			shutdownGracePeriod shutdownGracePeriodCriticalPods containerLogMonitorInterval runtimeRequestTimeout:runtime-request-timeout
			evictionPressureTransitionPeriod:eviction-pressure-transition-period cpuManagerReconcilePeriod:cpu-manager-reconcile-period`,
		'b': `serializeImagePulls:serialize-image-pulls rotateCertificates:rotate-certificates serverTLSBootstrap registerNode:register-node
			failSwapOn:fail-swap-on
			protectKernelDefaults:protect-kernel-defaults makeIPTablesUtilChains:make-iptables-util-chains seccompDefault:seccomp-default
			enableDebuggingHandlers:enable-debugging-handlers cpuCFSQuota:cpu-cfs-quota cgroupsPerQOS:cgroups-per-qos`,
		's': `cgroupDriver:cgroup-driver address:address providerID:provider-id healthzBindAddress:healthz-bind-address
			cpuManagerPolicy:cpu-manager-policy memoryManagerPolicy:memory-manager-policy
			topologyManagerPolicy:topology-manager-policy topologyManagerScope:topology-manager-scope hairpinMode:hairpin-mode
			reservedSystemCPUs:reserved-cpus containerLogMaxSize:container-log-max-size tlsMinVersion:tls-min-version
			systemReservedCgroup:system-reserved-cgroup kubeReservedCgroup:kube-reserved-cgroup clusterDomain:cluster-domain
			staticPodPath:pod-manifest-path containerRuntimeEndpoint:container-runtime-endpoint`,
		'l': `enforceNodeAllocatable:enforce-node-allocatable allowedUnsafeSysctls:allowed-unsafe-sysctls clusterDNS:cluster-dns
			tlsCipherSuites:tls-cipher-suites`,
		'<': `evictionHard:eviction-hard evictionSoft:eviction-soft`,
		'=': `evictionSoftGracePeriod:eviction-soft-grace-period evictionMinimumReclaim:eviction-minimum-reclaim
			systemReserved:system-reserved kubeReserved:kube-reserved featureGates:feature-gates`,
	} {
		for _, text := range strings.Fields(names) {
			name, argument, is := strings.Cut(text, ":")
			if !is {
				argument = name
			}
			fields[name] = kubeletField{form, argument}
		}
	}
	return fields
})

// checkKubeletSettings checks fields of KubeletConfiguration as the kubelet does when it starts. The rules are those of
// its arguments (ValidateKubeletConfiguration in pkg/kubelet/apis/config/validation of Kubernetes). It returns the settings as arguments.
func (c *checks) checkKubeletSettings(o *manifest.Entry, at string, settings map[string]any, v kubernetesVersion) map[string]string {
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		c.checkKubeletField(o, at, name, v)
		field, known := kubeletFields()[name]
		if !known || settings[name] == nil {
			continue
		}
		value, what := field.text(settings[name])
		switch {
		case what != "":
			c.fail(o.Problem(at, fmt.Sprintf("the kubelet does not start: %s is %v, not %s", name, settings[name], what), "change the value"))
			return nil
		case name == "featureGates":
			c.checkGates(o, at, components.Kubelet, value, v)
		default:
			c.checkValue(o, at, components.Kubelet, field.argument, value, v)
		}
		all[field.argument] = value
	}
	if settings["reservedMemory"] != nil {
		all["reserved-memory"] = "set"
	}
	for argument, value := range nestedKubelet(settings) {
		c.checkValue(o, at, components.Kubelet, argument, value, v)
		all[argument] = value
	}
	c.checkTogether(o, at, components.Kubelet, all)
	c.failAll(o, at, c.uselessKubelet(all))
	return all
}

// nestedKubelet returns the fields in other fields of a KubeletConfiguration, as arguments of the kubelet.
func nestedKubelet(settings map[string]any) map[string]string {
	args := map[string]string{}
	for argument, fields := range map[string][]string{
		"authorization-mode": {"authorization", "mode"}, "client-ca-file": {"authentication", "x509", "clientCAFile"},
	} {
		if text, is, err := unstructured.NestedString(settings, fields...); is && err == nil {
			args[argument] = text
		}
	}
	return args
}

// KubeletArguments returns the fields of a KubeletConfiguration as arguments of the kubelet, without those that have the wrong form.
func KubeletArguments(settings map[string]any) map[string]string {
	args := map[string]string{}
	for name, value := range settings {
		field, known := kubeletFields()[name]
		if text, what := field.text(value); known && what == "" {
			args[field.argument] = text
		}
	}
	maps.Copy(args, nestedKubelet(settings))
	return args
}

// failAll reports arguments as problems of the text that contains them, such as a patch or a list of flags. Each problem begins with the name
// of its argument.
func (c *checks) failAll(o *manifest.Entry, at string, all []replaced) {
	for _, bad := range all {
		c.fail(o.Problem(at, fmt.Sprintf("%s: %s", bad.name, bad.what), bad.fix))
	}
}

// checkKubeletField warns about a field that KubeletConfiguration does not have: the kubelet logs a warning, and goes on without it
// (DecodeKubeletConfiguration in pkg/kubelet/kubeletconfig/util/codec of Kubernetes).
func (c *checks) checkKubeletField(o *manifest.Entry, at, name string, v kubernetesVersion) {
	row := components.KubeletField(name)
	if _, has := row.In(v.minor); has || name == "kind" || name == "apiVersion" || !components.Known(v.minor) {
		return
	}
	what, fix := fmt.Sprintf("the kubelet ignores %s: Kubernetes 1.%d has no such field", name, v.minor), "correct its name, or remove it"
	if since, added := row.Added(v.minor); added {
		what += fmt.Sprintf("; 1.%d has it", since)
	}
	c.warn(o.Problem(at, what, fix))
}

// text returns a value in the form of an argument, or what it should be.
func (f kubeletField) text(value any) (text, what string) {
	const number, truth, word, list, mapping = "if", "b", "sd", "l", "<="
	accepts := func(forms string) bool { return strings.IndexByte(forms, f.form) >= 0 }
	switch v := value.(type) {
	case map[string]any:
		text, what = joined(v, string(f.form)), f.unless(accepts(mapping))
	case []any:
		text, what = strings.Join(texts(v), ","), f.unless(accepts(list))
	case bool:
		text, what = strconv.FormatBool(v), f.unless(accepts(truth))
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
		what = f.unless(accepts(number) && badValue(f.form, text) == "" || f.form == 'd' && v == 0)
	case string:
		text, what = v, f.unless(accepts(word) && badValue(f.form, v) == "")
	default:
		what = f.unless(false)
	}
	return text, what
}

// unless says what a value of the field should be if it is not.
func (f kubeletField) unless(ok bool) string {
	if ok {
		return ""
	}
	return map[byte]string{
		'i': "a whole number", 'f': "a number", 'd': "a duration such as 1m30s", 'b': "true or false", 's': "a text", 'l': "a list", '<': "a mapping", '=': "a mapping",
	}[f.form]
}

func texts(list []any) (all []string) {
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// joined writes a mapping as an argument does, with a sign between names and values.
func joined(mapping map[string]any, sign string) string {
	var items []string
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		items = append(items, key+sign+fmt.Sprint(mapping[key]))
	}
	return strings.Join(items, ",")
}
