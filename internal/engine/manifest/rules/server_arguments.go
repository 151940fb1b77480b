package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkServerTogether checks arguments that the API server accepts only with others, or without them: Validate in
// pkg/kubeapiserver/options (authentication.go, authorization.go), in pkg/controlplane/apiserver/options/validation.go and in
// cmd/kube-apiserver/app/options/validation.go of Kubernetes.
func checkServerTogether(args map[string]string, fail func(what, fix string)) {
	has := func(name string) bool { _, set := args[name]; return set }
	names := slices.Sorted(maps.Keys(args))
	checkAuthorization(args, has, fail)
	tokens := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "oidc-") })
	switch {
	case tokens && has("authentication-config"):
		fail("the arguments oidc-… and authentication-config exclude each other", "remove one of them")
	case tokens && (!has("oidc-issuer-url") || !has("oidc-client-id")):
		fail("oidc-issuer-url and oidc-client-id belong together, and all other arguments oidc-… need them", "set both")
	}
	if has("service-account-signing-endpoint") {
		fail("service-account-signing-endpoint excludes the key files of service accounts, which kubeadm sets", "remove it")
	}
	const proxy = "UnknownVersionInteroperabilityProxy"
	gates := args["feature-gates"]
	if at := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "peer-") }); at >= 0 &&
		!strings.Contains(gates, proxy+"=true") && !strings.Contains(gates, "AllAlpha=true") {
		fail(fmt.Sprintf("%s needs the feature gate %s", names[at], proxy), "set feature-gates: "+proxy+"=true, or remove it")
	}
	lease, renew, retry := durationOf(args, "coordinated-leadership-lease-duration", 15*time.Second),
		durationOf(args, "coordinated-leadership-renew-deadline", 10*time.Second), durationOf(args, "coordinated-leadership-retry-period", 2*time.Second)
	if lease <= renew || renew <= retry {
		fail(
			fmt.Sprintf(
				"the durations of coordinated-leadership are %s (lease), %s (renew) and %s (retry), and each has to be longer than the next",
				lease,
				renew,
				retry,
			),
			"change them",
		)
	}
	checkServicePort(args, fail)
	checkNeeded(args, has, fail)
	checkAudit(args, fail)
}

// checkAudit checks the batches and the sizes of audit events. Those of a log without a file and of a webhook without a configuration have no
// effect (k8s.io/apiserver/pkg/server/options/audit.go).
func checkAudit(args map[string]string, fail func(what, fix string)) {
	for _, sink := range []struct {
		name, on, mode string
		throttled      bool
	}{{"log", "audit-log-path", "blocking", false}, {"webhook", "audit-webhook-config-file", "batch", true}} {
		if args[sink.on] == "" {
			continue
		}
		at := "audit-" + sink.name + "-"
		positive := []string{"truncate-max-event-size"}
		if cmp.Or(args[at+"mode"], sink.mode) == "batch" {
			positive = append(positive, "batch-buffer-size", "batch-max-size")
			if given, set := args[at+"batch-throttle-enable"]; given == "true" || given == "" && set || !set && sink.throttled {
				positive = append(positive, "batch-throttle-qps", "batch-throttle-burst")
			}
		}
		for _, name := range positive {
			if n, err := strconv.ParseFloat(args[at+name], 64); err == nil && n <= 0 {
				fail(fmt.Sprintf("%s%s is %s, and has to be more than 0", at, name, args[at+name]), "change it, or remove it")
			}
		}
		const event, batch = 100 << 10, 10 << 20
		if numberOf(args, at+"truncate-max-batch-size", batch) < numberOf(args, at+"truncate-max-event-size", event) {
			fail(at+"truncate-max-batch-size is smaller than "+at+"truncate-max-event-size", "use a larger one")
		}
	}
}

// checkNeeded checks arguments that the API server, or an admission plugin, requires.
func checkNeeded(args map[string]string, has func(string) bool, fail func(what, fix string)) {
	const reads, writes = "max-requests-inflight", "max-mutating-requests-inflight" // k8s.io/apiserver/pkg/server/options/feature.go
	if args["enable-priority-and-fairness"] != "false" && numberOf(args, reads, 400)+numberOf(args, writes, 200) == 0 {
		fail(reads+" and "+writes+" are 0: the API server would serve no request", "remove them")
	}
	if has("encryption-provider-config-automatic-reload") && args["encryption-provider-config"] == "" { // etcd.go in the same folder
		fail("encryption-provider-config-automatic-reload needs encryption-provider-config", "set it, or remove the argument")
	}
	if has("service-account-issuer") && args["service-account-issuer"] == "" {
		fail("service-account-issuer is empty", "set it, or remove it: kubeadm sets it")
	}
	// plugin/pkg/admission/imagepolicy/admission.go: "no config specified"; plugin/pkg/admission/eventratelimit: limits "must not be empty"
	for _, plugin := range []string{"ImagePolicyWebhook", "EventRateLimit"} {
		if slices.Contains(strings.Split(args["enable-admission-plugins"], ","), plugin) && !has("admission-control-config-file") {
			fail("the admission plugin "+plugin+" needs a configuration", "set admission-control-config-file, or remove it")
		}
	}
}

// checkAuthorization checks the modes of authorization. kubeadm sets Node,RBAC unless the manifest has authorization-mode or
// authorization-config.
func checkAuthorization(args map[string]string, has func(string) bool, fail func(what, fix string)) {
	modes := strings.Split(args["authorization-mode"], ",")
	for _, x := range []struct{ mode, file string }{{"ABAC", "authorization-policy-file"}, {"Webhook", "authorization-webhook-config-file"}} {
		switch on := slices.Contains(modes, x.mode); {
		case on && !has(x.file):
			fail(fmt.Sprintf("authorization-mode has %s, and %s is not set", x.mode, x.file), "set it, or remove the mode")
		case has(x.file) && !on:
			fail(fmt.Sprintf("%s needs the mode %s in authorization-mode", x.file, x.mode), "add the mode, or remove the argument")
		}
	}
	if has("authorization-config") && (has("authorization-mode") || has("authorization-webhook-config-file")) {
		fail("authorization-config excludes authorization-mode and authorization-webhook-…", "remove them")
	}
}

// checkServicePort checks that the node port of the Service kubernetes is in the range of node ports.
func checkServicePort(args map[string]string, fail func(what, fix string)) {
	port := numberOf(args, "kubernetes-service-node-port", 0)
	from, to := 30000, 32767
	if low, high, is := strings.Cut(args["service-node-port-range"], "-"); is {
		first, err := strconv.Atoi(low)
		last, bad := strconv.Atoi(high)
		if err != nil || bad != nil {
			return
		}
		from, to = first, last
	} else if args["service-node-port-range"] != "" {
		return
	}
	if port > 0 && (port < from || port > to) {
		fail(fmt.Sprintf("kubernetes-service-node-port, %d, is not in the range of node ports, %d-%d", port, from, to), "change it")
	}
}
