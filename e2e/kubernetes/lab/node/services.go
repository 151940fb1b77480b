package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"sync"
)

// services replace systemd.
type services struct {
	self    *Instance
	kubelet *unit

	mu    sync.Mutex
	init  int  // process group of "cloud-init init" while it runs
	again bool // restart it
}

// unit is a service that systemd would start and stop.
type unit struct {
	run func(ctx context.Context) // until the context ends

	mu    sync.Mutex
	halt  context.CancelFunc // cancels the running one; nil if none runs
	ended chan struct{}
}

// start starts it, unless it runs.
func (u *unit) start(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.halt != nil {
		return
	}
	running, halt := context.WithCancel(context.WithoutCancel(ctx))
	u.halt, u.ended = halt, make(chan struct{})
	go func() {
		defer close(u.ended)
		u.run(running)
	}()
}

// stop stops it, and waits until it has ended.
func (u *unit) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.halt != nil {
		u.halt()
		<-u.ended
		u.halt = nil
	}
}

// answer is the response to systemctl.
type answer struct {
	Text string
	Code int
}

// serve handles calls of systemctl.
func (s *services) serve(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socketFile)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				var args []string
				if json.NewDecoder(c).Decode(&args) == nil {
					_ = json.NewEncoder(c).Encode(s.do(ctx, args)) // the client may have been killed
				}
			}()
		}
	}()
	return nil
}

func (s *services) do(ctx context.Context, args []string) answer {
	args = slices.DeleteFunc(args, func(a string) bool { return a[0] == '-' })
	if len(args) == 0 || args[0] == "daemon-reload" {
		return answer{}
	}
	unit := ""
	if len(args) > 1 {
		unit = args[1]
	}
	switch verb := args[0]; {
	case unit == "cloud-init" && verb == "restart":
		if s.restartCloudInit() {
			return answer{}
		}
	case unit == "kubelet" || unit == "kubelet.service":
		return s.kubeletUnit(ctx, verb)
	case slices.Contains([]string{"is-active", "is-enabled", "status"}, verb):
		return answer{Text: "active"}
	}
	log.Printf("systemctl: the lab does not know how to %q", args)
	return answer{Code: 1}
}

func (s *services) kubeletUnit(ctx context.Context, verb string) answer {
	switch verb {
	case "start":
		s.kubelet.start(ctx)
	case "stop":
		s.kubelet.stop()
	case "restart":
		s.kubelet.stop()
		s.kubelet.start(ctx)
	}
	return answer{Text: "active"}
}

// systemctl is the client.
func systemctl(args []string) (int, error) {
	for _, a := range args {
		if a == "firewalld" || a == "systemd-resolved" { // kubeadm asks for these
			return 3, nil // inactive
		}
	}
	c, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socketFile)
	if err != nil {
		return 1, err
	}
	if err := json.NewEncoder(c).Encode(args); err != nil {
		return 1, err
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return 1, err
	}
	if a.Text != "" {
		_, err = fmt.Fprintln(os.Stdout, a.Text)
	}
	return a.Code, err
}
