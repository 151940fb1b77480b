package kubernetes

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// limits has a line for each flag that takes a number or a duration: the component, the flag, the least value and the
// greatest; "-" means that there is no greatest value. Sources in Kubernetes: Validate in
// k8s.io/apiserver/pkg/server/options (server_run_options.go, audit.go), in cmd/kube-controller-manager/app/options and in
// pkg/controlplane/apiserver/options, and ValidateKubeletConfiguration in pkg/kubelet/apis/config/validation. A port must be
// the one that kubeadm's probes use (cmd/kubeadm/app/phases/controlplane/manifests.go).
const limits = `
kube-apiserver livez-grace-period 0s -
kube-apiserver max-requests-inflight 0 -
kube-apiserver max-mutating-requests-inflight 0 -
kube-apiserver request-timeout 0s -
kube-apiserver min-request-timeout 0 -
kube-apiserver goaway-chance 0 0.02
kube-apiserver shutdown-delay-duration 0s -
kube-apiserver shutdown-watch-termination-grace-period 0s -
kube-apiserver storage-initialization-timeout 0s -
kube-apiserver audit-log-maxage 0 -
kube-apiserver audit-log-maxbackup 0 -
kube-apiserver audit-log-maxsize 0 -
kube-apiserver apiserver-count 1 -
kube-apiserver kubernetes-service-node-port 0 65535
kube-apiserver secure-port 6443 6443
kube-controller-manager attach-detach-reconcile-sync-period 1s -
kube-controller-manager concurrent-ephemeralvolume-syncs 1 -
kube-controller-manager concurrent-horizontal-pod-autoscaler-syncs 1 -
kube-controller-manager concurrent-service-endpoint-syncs 1 50
kube-controller-manager concurrent-statefulset-syncs 1 -
kube-controller-manager max-endpoints-per-slice 1 1000
kube-controller-manager mirroring-concurrent-service-endpoint-syncs 1 50
kube-controller-manager mirroring-max-endpoints-per-subset 1 1000
kube-controller-manager secure-port 10257 10257
kube-scheduler secure-port 10259 10259
kubelet max-pods 0 -
kubelet pods-per-core 0 -
kubelet max-open-files 0 -
kubelet event-burst 0 -
kubelet event-qps 0 -
kubelet kube-api-burst 0 -
kubelet kube-api-qps 0 -
kubelet registry-burst 0 -
kubelet registry-qps 0 -
kubelet healthz-port 0 65535
kubelet read-only-port 0 65535
kubelet port 1 65535
kubelet image-gc-high-threshold 0 100
kubelet image-gc-low-threshold 0 100
kubelet oom-score-adj -1000 1000
kubelet container-log-max-files 2 -
kubelet node-status-max-images -1 -
kubelet cpu-cfs-quota-period 1ms 1s
kubelet memoryThrottlingFactor 0.0001 1
kubelet maxParallelImagePulls 1 -
kubelet nodeLeaseDurationSeconds 1 -
kubelet containerLogMaxWorkers 1 -
kubelet containerLogMonitorInterval 3s -
kubelet iptables-masquerade-bit 0 31
kubelet iptables-drop-bit 0 31
`

// limitsOf returns the least and the most, as written in limits, by component and flag.
//
//nolint:gochecknoglobals // constant data, which is read when it is needed first
var limitsOf = sync.OnceValue(func() map[[2]string][2]string {
	all := map[[2]string][2]string{}
	for line := range strings.SplitSeq(limits, "\n") {
		if w := strings.Fields(line); len(w) == 4 {
			all[[2]string{w[0], w[1]}] = [2]string{w[2], w[3]}
		}
	}
	return all
})

// limitRefused returns why a component ends with a number or a duration in a flag; "" if it does not.
func limitRefused(component, name, value string) string {
	limit, limited := limitsOf()[[2]string{component, name}]
	if !limited {
		return ""
	}
	least, most := measured(limit[0]), math.Inf(1)
	if limit[1] != "-" {
		most = measured(limit[1])
	}
	if n := measured(value); math.IsNaN(n) || n < least || n > most {
		return fmt.Sprintf("--%s %s must be between %s and %s, inclusive", name, value, limit[0], limit[1])
	}
	return ""
}

// measured reads a number or a duration in seconds; NaN if it is neither.
func measured(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(n)
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return math.NaN()
}

// electionRefused returns why a component does not start with the durations of its leader election
// (ValidateLeaderElectionConfiguration in k8s.io/component-base/config/validation, NewLeaderElector in
// k8s.io/client-go/tools/leaderelection).
func electionRefused(given map[string]string) string {
	seconds := func(name, usual string) float64 {
		if v, is := given["leader-elect-"+name]; is {
			return measured(v)
		}
		return measured(usual)
	}
	lease, renew, retry := seconds("lease-duration", "15s"), seconds("renew-deadline", "10s"), seconds("retry-period", "2s")
	switch {
	case given["leader-elect"] == "false":
	case lease <= 0 || renew <= 0 || retry <= 0:
		return "leaderElection: must be greater than zero"
	case lease <= renew:
		return "leaseDuration must be greater than renewDeadline"
	case renew <= 1.2*retry:
		return "renewDeadline must be greater than retryPeriod*JitterFactor"
	}
	return ""
}
