package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The minimum and maximum time before a container is restarted: a fifth of the kubelet's.
const (
	firstPause = 2 * time.Second
	lastPause  = time.Minute
)

// container is a process of a pod. If the program does not exist on the instance
// (kube-proxy, coredns, other images), the container is reported as running and does not
// run.
type container struct {
	spec    corev1.Container
	command []string // nil without a process
	log     string   // file
	died    string   // termination message path

	mu       sync.Mutex
	state    corev1.ContainerState
	last     corev1.ContainerState
	restarts int32
}

// newContainer returns a container that has not been started.
func newContainer(dir string, spec corev1.Container, static bool, mounts [][2]string) *container {
	c := &container{spec: spec, log: filepath.Join(dir, spec.Name+".log"), died: filepath.Join(dir, spec.Name+".died")}
	c.state.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	args := append(append([]string{}, spec.Command...), spec.Args...)
	if len(spec.Command) == 0 {
		return c
	}
	program := findProgram(spec.Image, args[0])
	if program == "" {
		return c
	}
	args[0] = program
	if strings.HasPrefix(filepath.Base(program), "etcd-") {
		args = append(args, "--unsafe-no-fsync") // kills only child processes
	}
	if static { // kubeadm mounts everything at the same path
		c.command = args
		return c
	}
	c.command = append([]string{"unshare", "--mount", "/bin/sh", "-ec", mountScript(c, mounts), "container"}, args...)
	return c
}

// controlPlaneImages are the images whose programs run. kube-proxy and CoreDNS would need a pod
// network.
var controlPlaneImages = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// findProgram returns the file of a program in an image. Images of control planes contain
// the program in the version of the image, and no shell: etcd:3.6.5-0 contains
// etcd-v3.6.5 and etcdctl-v3.6.5. Images named lab/ contain all programs of the instance.
// For other images it returns "".
func findProgram(image, name string) string {
	if strings.HasPrefix(image, "lab/") {
		program, err := exec.LookPath(name)
		if err != nil {
			return name
		}
		return program
	}
	base, tag, _ := strings.Cut(filepath.Base(image), ":")
	tag, _, _ = strings.Cut(strings.TrimPrefix(tag, "v"), "-")
	if !slices.Contains(controlPlaneImages, base) || !exists(filepath.Join(programDir, base+"-v"+tag)) {
		return ""
	}
	return filepath.Join(programDir, filepath.Base(name)+"-v"+tag)
}

// mountScript mounts the volumes of a container and its termination message file, in its
// own mount namespace.
func mountScript(c *container, mounts [][2]string) string {
	path := c.spec.TerminationMessagePath
	if path == "" {
		path = corev1.TerminationMessagePathDefault
	}
	script := ": > '" + c.died + "'\n: >> '" + path + "'\nmount --bind '" + c.died + "' '" + path + "'\n"
	for _, m := range mounts {
		if m[0] != m[1] {
			script += "mkdir -p '" + m[0] + "' '" + m[1] + "'\nmount --rbind '" + m[0] + "' '" + m[1] + "'\n"
		}
	}
	return script + `exec "$@"`
}

// run runs it, by the pod's restart policy, until it has completed or the context ends.
func (c *container) run(ctx context.Context, policy corev1.RestartPolicy, grace time.Duration) {
	if c.command == nil {
		c.set(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		<-ctx.Done()
		return
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		code := c.once(ctx, grace)
		if ctx.Err() != nil || policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && code == 0 {
			return
		}
		if time.Since(began) > 10*lastPause {
			pause = firstPause
		}
		log.Printf("container %s ended with %d after %s; again in %s", c.spec.Name, code, time.Since(began).Round(time.Millisecond), pause)
		c.mu.Lock()
		c.last, c.restarts = c.state, c.restarts+1
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// once runs the process once.
func (c *container) once(ctx context.Context, grace time.Duration) (code int32) {
	began := metav1.Now()
	ended := func(code int32, message string) int32 {
		c.set(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Message: message, StartedAt: began, FinishedAt: metav1.Now(), Reason: map[bool]string{true: "Completed", false: "Error"}[code == 0],
		}})
		return code
	}
	_ = os.Rename(c.log, c.log+".previous") // the file may not exist
	out, err := os.Create(c.log)
	if err != nil {
		return ended(128, err.Error())
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = out, out, c.spec.WorkingDir
	cmd.Env = os.Environ()
	for _, e := range c.spec.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return ended(128, err.Error())
	}
	c.set(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}})
	_ = cmd.Wait() // only the exit code matters
	return ended(int32(cmd.ProcessState.ExitCode()), c.lastWords(cmd.ProcessState.ExitCode()))
}

// lastWords returns the termination message.
func (c *container) lastWords(code int) string {
	message, _ := os.ReadFile(c.died) // the file may not exist
	if len(message) == 0 && code != 0 && c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		message, _ = os.ReadFile(c.log)
		message = message[max(0, len(message)-2048):]
	}
	return string(message[max(0, len(message)-4096):])
}

func (c *container) set(state corev1.ContainerState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// status returns the status of the container, after a readiness probe.
func (c *container) status(ctx context.Context) corev1.ContainerStatus {
	c.mu.Lock()
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, State: c.state, LastTerminationState: c.last, RestartCount: c.restarts,
		ContainerID: fmt.Sprintf("lab://%s/%d", c.log, c.restarts),
	}
	c.mu.Unlock()
	started := s.State.Running != nil
	s.Started = &started
	s.Ready = started && (c.command == nil || c.answers(ctx))
	return s
}

// answers executes an HTTP readiness probe. Other probes always succeed.
func (c *container) answers(ctx context.Context) bool {
	p := c.spec.ReadinessProbe
	if p == nil || p.HTTPGet == nil {
		return true
	}
	port := p.HTTPGet.Port.String()
	for _, named := range c.spec.Ports {
		if named.Name == port {
			port = fmt.Sprint(named.ContainerPort)
		}
	}
	host := p.HTTPGet.Host
	if host == "" {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	url := strings.ToLower(string(p.HTTPGet.Scheme)) + "://" + net.JoinHostPort(host, port) + p.HTTPGet.Path
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode < http.StatusBadRequest
}
