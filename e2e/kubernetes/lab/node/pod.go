package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grace is how long a pod may take to terminate.
const grace = 5 * time.Second

// pod is a running pod.
type pod struct {
	object     *corev1.Pod
	hash       string // digest of a static pod's manifest
	init       []*container
	containers []*container
	began      metav1.Time
	halt       context.CancelFunc
	ended      chan struct{}
}

// runPod starts a pod. Its processes continue to run without the kubelet.
func runPod(ctx context.Context, object *corev1.Pod, hash string) (*pod, error) {
	dir := filepath.Join("/var/log/pods", object.Namespace+"_"+object.Name+"_"+string(object.UID)+hash)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ctx, halt := context.WithCancel(context.WithoutCancel(ctx))
	p := &pod{object: object, hash: hash, began: metav1.Now(), halt: halt, ended: make(chan struct{})}
	for _, c := range object.Spec.InitContainers {
		p.init = append(p.init, newContainer(dir, c, hash != "", mountsOf(object, c)))
	}
	for _, c := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(dir, c, hash != "", mountsOf(object, c)))
	}
	go p.run(ctx)
	return p, nil
}

// mountsOf returns the paths of a container's volumes on the host and in the container.
func mountsOf(object *corev1.Pod, c corev1.Container) (all [][2]string) {
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.HostPath != nil })
		if i >= 0 {
			all = append(all, [2]string{filepath.Join(object.Spec.Volumes[i].HostPath.Path, m.SubPath), m.MountPath})
		}
	}
	return all
}

func (p *pod) run(ctx context.Context) {
	defer close(p.ended)
	policy := p.object.Spec.RestartPolicy
	for _, c := range p.init {
		if c.command == nil { // no process: complete immediately
			c.set(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}})
			continue
		}
		again := corev1.RestartPolicyOnFailure
		if policy == corev1.RestartPolicyNever {
			again = policy
		}
		c.run(ctx, again, grace)
		if ctx.Err() != nil || c.state.Terminated == nil || c.state.Terminated.ExitCode != 0 {
			return
		}
	}
	var all sync.WaitGroup
	for _, c := range p.containers {
		all.Go(func() { c.run(ctx, policy, grace) })
	}
	all.Wait()
}

// stop stops the processes.
func (p *pod) stop() {
	p.halt()
	<-p.ended
}

// status is the status for the API server.
func (p *pod) status(ctx context.Context, address string) corev1.PodStatus {
	s := corev1.PodStatus{
		HostIP: address, HostIPs: []corev1.HostIP{{IP: address}}, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		StartTime: &p.began, QOSClass: p.object.Status.QOSClass,
	}
	for _, c := range p.init {
		s.InitContainerStatuses = append(s.InitContainerStatuses, c.status(ctx))
	}
	ready := corev1.ConditionTrue
	for _, c := range p.containers {
		status := c.status(ctx)
		s.ContainerStatuses = append(s.ContainerStatuses, status)
		if !status.Ready {
			ready = corev1.ConditionFalse
		}
	}
	s.Phase = phase(s, p.object.Spec.RestartPolicy)
	for _, c := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, corev1.PodScheduled,
	} {
		is := corev1.ConditionTrue
		if c == corev1.ContainersReady || c == corev1.PodReady {
			is = ready
		}
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c, Status: is, LastTransitionTime: p.began})
	}
	return s
}

// phase returns the phase of the pod, by the rules of Kubernetes.
func phase(s corev1.PodStatus, policy corev1.RestartPolicy) corev1.PodPhase {
	waiting, running, failed := count(s.ContainerStatuses)
	_, _, initFailed := count(s.InitContainerStatuses)
	switch {
	case initFailed > 0 && policy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	case running > 0 || policy == corev1.RestartPolicyAlways && waiting == 0:
		return corev1.PodRunning
	case waiting > 0:
		return corev1.PodPending
	case failed > 0:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

func count(all []corev1.ContainerStatus) (waiting, running, failed int) {
	for _, c := range all {
		switch {
		case c.State.Running != nil:
			running++
		case c.State.Terminated == nil:
			waiting++
		case c.State.Terminated.ExitCode != 0:
			failed++
		}
	}
	return waiting, running, failed
}
