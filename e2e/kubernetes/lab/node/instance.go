// Package node runs on an instance of the lab, as the first process of a PID namespace
// with its own network, host name and disk. It boots like an image for Cluster API (real
// cloud-init, real kubeadm, the real programs of the control plane), and replaces
// programs that would need their own machine: systemd, containerd and the kubelet.
package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
)

// Instance are the properties of an instance and its folders.
type Instance struct {
	ID, Zone, Address string
	IPv6              string            // its other address
	Name              string            // private DNS name
	Version           string            // Kubernetes version of its image, "v1.34.2"
	Endpoint          string            // endpoint URL of AWS, as seen from the instance
	Region            string            // AWS region
	UserData          []byte            // user data of RunInstances
	Hosts             map[string]string // host names and their addresses
	Disk              string            // folder of its disk
	Programs          string            // folder of the control plane programs

	// Registry is the address of a registry with all images. With it the instance runs the real
	// containerd, runc and kubelet; without, package node replaces them.
	Registry string
}

// Paths on an instance.
const (
	labDir     = "/opt/lab"
	shimDir    = labDir + "/bin"      // links to labnode by name
	programDir = labDir + "/programs" // the folder Instance.Programs
	selfFile   = "/run/lab/instance.json"
	socketFile = "/run/lab/services.sock"
)

// Main runs the program with the name args[0], and returns its exit code.
func Main(args []string) (int, error) {
	switch filepath.Base(args[0]) {
	case "systemctl":
		return systemctl(args[1:])
	case "kubeadm":
		return 1, kubeadm(args[1:])
	case cloudController:
		return 1, cloud()
	case "pause":
		pause()
		return 0, nil
	case "web":
		return 1, web()
	case "get":
		return 0, get(args[1:])
	case "ctr":
		if err := ctr(args[1:]); err != nil {
			return 1, err
		}
		return 0, nil
	case "kubelet":
		self, err := whoAmI()
		if err == nil {
			_, err = fmt.Println("Kubernetes " + self.Version) // kubeadm calls it only for this
		}
		return 0, err
	default:
		if len(args) != 2 {
			return 2, fmt.Errorf("usage: %s INSTANCE.json", args[0])
		}
		return 1, boot(args[1])
	}
}

// boot runs the instance until its standard input is closed, which happens when its
// parent ends.
func boot(file string) error {
	self, err := read(file)
	if err != nil {
		return err
	}
	if self.Registry != "" {
		if err := self.confine(file); err != nil {
			return fmt.Errorf("control groups of %s: %w", self.ID, err)
		}
	}
	if err := self.enter(); err != nil {
		return fmt.Errorf("root of %s: %w", self.ID, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // Read returns when it is closed
		stop()
	}()
	log.SetFlags(log.Lmicroseconds)
	s := &services{self: self}
	if self.Registry == "" {
		s.kubelet, err = newKubelet(self), serveRuntime(ctx)
	} else {
		s.kubelet, err = self.realServices(ctx)
	}
	if err != nil {
		return fmt.Errorf("container runtime: %w", err)
	}
	if err := s.serve(ctx); err != nil {
		return fmt.Errorf("services: %w", err)
	}
	s.kubelet.start(ctx)
	if err := s.cloudInit(ctx); err != nil {
		log.Printf("cloud-init: %v", err)
	}
	<-ctx.Done()
	return nil
}

func read(file string) (*Instance, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	self := &Instance{}
	return self, json.Unmarshal(text, self)
}

// nodeIP is the address of the Node: with node-ip "::" the IPv6 address, as with the real
// kubelet.
func (i *Instance) nodeIP() string {
	if readFlags()["node-ip"] == "::" {
		return i.IPv6
	}
	return i.Address
}

func whoAmI() (*Instance, error) { return read(selfFile) }

// ignored are the preflight checks of kubeadm that an instance of the lab does not pass:
// it shares the kernel and cgroups of this machine, and has no network tools.
// HTTPProxyCIDR fails in kubeadm 1.33.4 built with this version of Go, whose url.Parse
// rejects an IPv4 address in brackets.
const ignored = "SystemVerification,HTTPProxyCIDR,Swap,Mem,NumCPU,FileExisting-conntrack,FileExisting-crictl,FileExisting-ethtool," +
	"FileExisting-iptables,FileExisting-socat,FileExisting-tc,FileExisting-ebtables,FileExisting-ip," +
	"FileContent--proc-sys-net-bridge-bridge-nf-call-iptables,FileContent--proc-sys-net-ipv6-conf-default-forwarding"

// ignoredOfReal are those that an instance with a real container runtime does not pass.
const ignoredOfReal = "SystemVerification,Swap,Mem,NumCPU,FileExisting-crictl,FileExisting-socat,FileExisting-ethtool,FileExisting-tc,FileExisting-ebtables"

// kubeadm runs the real kubeadm.
func kubeadm(args []string) error {
	self, err := whoAmI()
	if err != nil {
		return err
	}
	program := filepath.Join(programDir, "kubeadm-"+self.Version)
	checks := ignored
	if self.Registry != "" {
		checks = ignoredOfReal
		if err := keepConntrack(args); err != nil {
			return err
		}
	}
	if len(args) > 0 && (args[0] == "init" || args[0] == "join") && !slices.Contains(args, "phase") { // of which only some have checks
		args = append(args, "--ignore-preflight-errors="+checks)
	}
	return syscall.Exec(program, append([]string{"kubeadm"}, args...), os.Environ())
}

// command returns a command in its own process group, like a service.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// keepConntrack turns off, in the configuration of "kubeadm init", that kube-proxy sets the maximum
// number of tracked connections: the kernel permits that only in the network namespace of the
// machine, and instances have their own.
func keepConntrack(args []string) error {
	at := slices.Index(args, "--config")
	if len(args) == 0 || args[0] != "init" || at < 0 || at == len(args)-1 {
		return nil
	}
	file := args[at+1]
	text, err := os.ReadFile(file)
	if err != nil || bytes.Contains(text, []byte("KubeProxyConfiguration")) {
		return err
	}
	text = append(text, "\n---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconntrack: {maxPerCore: 0}\n"...)
	return os.WriteFile(file, text, 0o600)
}
