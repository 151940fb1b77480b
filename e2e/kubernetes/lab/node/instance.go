// Package node runs on an instance of the lab: a process that is the first of
// its PID namespace, with a network, a host name and a disk of its own. It
// boots as an image made for Cluster API does (real cloud-init, real kubeadm,
// the real programs of the control plane), and stands in for what cannot run
// without a machine of its own: systemd, containerd and the kubelet.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Instance is what AWS knows of an instance, and where the lab keeps it.
type Instance struct {
	ID, Zone, Address string
	Name              string            // private DNS name
	Version           string            // of Kubernetes in its image, "v1.34.2"
	Endpoint          string            // of AWS, as seen from the instance
	Region            string            // of AWS
	UserData          []byte            // what RunInstances was given
	Hosts             map[string]string // names in the network, and their addresses
	Disk              string            // folder of what is written on it
	Programs          string            // folder of what control planes run
}

// Where things are on an instance.
const (
	labDir     = "/opt/lab"
	shimDir    = labDir + "/bin"      // by names of labnode
	programDir = labDir + "/programs" // the folder Instance.Programs
	selfFile   = "/run/lab/instance.json"
	socketFile = "/run/lab/services.sock"
)

// Main runs the program of that name, args[0], and returns its exit code.
func Main(args []string) (int, error) {
	switch filepath.Base(args[0]) {
	case "systemctl":
		return systemctl(args[1:])
	case "kubeadm":
		return 1, kubeadm(args[1:])
	case cloudController:
		return 1, cloud()
	case "kubelet":
		self, err := whoAmI()
		if err == nil {
			_, err = fmt.Println("Kubernetes " + self.Version) // all that kubeadm asks it
		}
		return 0, err
	default:
		if len(args) != 2 {
			return 2, fmt.Errorf("usage: %s INSTANCE.json", args[0])
		}
		return 1, boot(args[1])
	}
}

// boot is the life of an instance, which ends with standard input: when
// whoever started it is gone, so is the instance.
func boot(file string) error {
	self, err := read(file)
	if err != nil {
		return err
	}
	if err := self.enter(); err != nil {
		return fmt.Errorf("root of %s: %w", self.ID, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when it is closed
		stop()
	}()
	log.SetFlags(log.Lmicroseconds)
	if err := serveRuntime(ctx); err != nil {
		return fmt.Errorf("container runtime: %w", err)
	}
	s := &services{self: self, kubelet: newKubelet(self)}
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

func whoAmI() (*Instance, error) { return read(selfFile) }

// ignored are those of kubeadm's checks that an instance of the lab does not
// pass: it shares a kernel and its cgroups with the machine it runs on, and has
// no tools of the network. HTTPProxyCIDR is one that kubeadm 1.33.4 fails when
// it is built by this Go, whose url.Parse refuses an IPv4 address in brackets.
const ignored = "SystemVerification,HTTPProxyCIDR,Swap,Mem,NumCPU,FileExisting-conntrack,FileExisting-crictl,FileExisting-ethtool," +
	"FileExisting-iptables,FileExisting-socat,FileExisting-tc,FileExisting-ebtables,FileExisting-ip," +
	"FileContent--proc-sys-net-bridge-bridge-nf-call-iptables,FileContent--proc-sys-net-ipv6-conf-default-forwarding"

// kubeadm runs the real one.
func kubeadm(args []string) error {
	self, err := whoAmI()
	if err != nil {
		return err
	}
	program := filepath.Join(programDir, "kubeadm-"+self.Version)
	if len(args) > 0 && (args[0] == "init" || args[0] == "join") {
		args = append(args, "--ignore-preflight-errors="+ignored)
	}
	return syscall.Exec(program, append([]string{"kubeadm"}, args...), os.Environ())
}

// command is a command as services run: in a process group of its own.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}
