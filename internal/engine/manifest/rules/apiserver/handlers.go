package apiserver

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// handlers checks the probes and the lifecycle hooks of a container. Init containers may not have any, except for sidecars
// (restartPolicy: Always).
func (c *check) handlers(at string, of *corev1.Container, grace int64, begins bool) {
	if begins && (of.RestartPolicy == nil || *of.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
		for _, name := range given(
			setting{"lifecycle", of.Lifecycle != nil}, setting{"livenessProbe", of.LivenessProbe != nil},
			setting{"readinessProbe", of.ReadinessProbe != nil}, setting{"startupProbe", of.StartupProbe != nil},
		) {
			c.refuse(at+name, "is not for init containers, which end by themselves", "remove it, or set restartPolicy: Always of a sidecar")
		}
		return
	}
	c.probe(at+"livenessProbe", of.LivenessProbe, true)
	c.probe(at+"readinessProbe", of.ReadinessProbe, false)
	c.probe(at+"startupProbe", of.StartupProbe, true)
	c.when(
		of.ReadinessProbe != nil && of.ReadinessProbe.TerminationGracePeriodSeconds != nil, at+"readinessProbe.terminationGracePeriodSeconds",
		"is not for readiness probes, which end nothing", "remove it",
	)
	if of.Lifecycle != nil {
		c.hook(at+"lifecycle.postStart", of.Lifecycle.PostStart, grace)
		c.hook(at+"lifecycle.preStop", of.Lifecycle.PreStop, grace)
	}
}

// probe checks a probe of a container. restarts is true for liveness and startup probes: the kubelet restarts the container when they fail, and
// their successThreshold must be 1.
func (c *check) probe(at string, p *corev1.Probe, restarts bool) {
	if p == nil {
		return
	}
	handlers := given(
		setting{"exec", p.Exec != nil}, setting{"httpGet", p.HTTPGet != nil}, setting{"tcpSocket", p.TCPSocket != nil}, setting{"grpc", p.GRPC != nil},
	)
	switch {
	case len(handlers) == 0:
		c.refuse(at, "needs one of exec, httpGet, tcpSocket, grpc", "add it")
	case len(handlers) > 1:
		c.refuse(at+"."+handlers[1], "stands beside "+handlers[0], "remove one of them")
	}
	c.actions(at, p.Exec, p.HTTPGet, p.TCPSocket)
	if p.GRPC != nil {
		c.port(at+".grpc.port", intstr.FromInt32(p.GRPC.Port), false)
	}
	c.notNegative(at+".initialDelaySeconds", &p.InitialDelaySeconds)
	c.notNegative(at+".timeoutSeconds", &p.TimeoutSeconds)
	c.notNegative(at+".periodSeconds", &p.PeriodSeconds)
	c.notNegative(at+".successThreshold", &p.SuccessThreshold)
	c.notNegative(at+".failureThreshold", &p.FailureThreshold)
	between(c, at+".terminationGracePeriodSeconds", p.TerminationGracePeriodSeconds, 1, math.MaxInt64)
	if restarts && p.SuccessThreshold > 1 {
		c.refuse(at+".successThreshold", fmt.Sprintf("is %d, and must be 1", p.SuccessThreshold), "remove it")
	}
}

// actions checks the exec, httpGet and tcpSocket fields of a probe or a hook.
func (c *check) actions(at string, exec *corev1.ExecAction, get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction) {
	if exec != nil {
		c.when(len(exec.Command) == 0, at+".exec.command", "a value is required", "write the command as a list")
	}
	if get != nil {
		c.port(at+".httpGet.port", get.Port, false)
		oneOf(c, at+".httpGet.scheme", get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
		for _, h := range get.HTTPHeaders {
			c.invalid(at+".httpGet.httpHeaders", h.Name, validation.IsHTTPHeaderName(h.Name))
		}
	}
	if socket != nil {
		c.port(at+".tcpSocket.port", socket.Port, false)
	}
}

// hook checks a postStart or preStop hook (validateLifecycle). grace is the terminationGracePeriodSeconds of the pod.
func (c *check) hook(at string, h *corev1.LifecycleHandler, grace int64) {
	if h == nil {
		return
	}
	c.onlyOne(
		at,
		given(setting{"exec", h.Exec != nil}, setting{"httpGet", h.HTTPGet != nil}, setting{"tcpSocket", h.TCPSocket != nil}, setting{"sleep", h.Sleep != nil}),
		"exec, httpGet, sleep",
	)
	c.actions(at, h.Exec, h.HTTPGet, h.TCPSocket)
	if h.Sleep != nil && (h.Sleep.Seconds < 0 || h.Sleep.Seconds > grace) {
		c.refuse(
			at+".sleep", fmt.Sprintf("%d seconds are not between 0 and terminationGracePeriodSeconds, %d", h.Sleep.Seconds, grace),
			"sleep for a shorter time, or set a longer terminationGracePeriodSeconds of the pod",
		)
	}
}
