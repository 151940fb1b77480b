package lab

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// apiPort is the port of API servers.
const apiPort = "6443"

// healthPeriod is the interval of health checks.
const healthPeriod = time.Second

// balancer forwards connections to healthy targets, round robin.
type balancer struct {
	namespace
	address  string
	listener net.Listener

	mu      sync.Mutex
	targets []string        // addresses
	healthy map[string]bool // of them
	next    int
}

// newBalancer listens on an address of the namespace until the context ends.
func newBalancer(ctx context.Context, ns namespace, address string) (*balancer, error) {
	if err := ip(ctx, "-n", string(ns), "addr", "add", address+"/8", "dev", "eth0"); err != nil {
		return nil, err
	}
	l, err := ns.listen(ctx, net.JoinHostPort(address, apiPort))
	if err != nil {
		return nil, err
	}
	b := &balancer{namespace: ns, address: address, listener: l, healthy: map[string]bool{}}
	go b.check(ctx)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			go b.forward(ctx, c)
		}
	}()
	return b, nil
}

// set sets the registered targets.
func (b *balancer) set(targets []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = targets
}

// check checks the targets until the context ends.
func (b *balancer) check(ctx context.Context) {
	defer func() { _ = b.listener.Close() }()
	for ctx.Err() == nil {
		b.mu.Lock()
		targets := append([]string{}, b.targets...)
		b.mu.Unlock()
		healthy := map[string]bool{}
		for _, target := range targets {
			if c, err := b.dial(ctx, "tcp", net.JoinHostPort(target, apiPort)); err == nil {
				healthy[target] = true
				_ = c.Close()
			}
		}
		b.mu.Lock()
		b.healthy = healthy
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(healthPeriod):
		}
	}
}

// pick returns the next healthy target.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.targets {
		b.next++
		if target := b.targets[b.next%len(b.targets)]; b.healthy[target] {
			return target
		}
	}
	return ""
}

func (b *balancer) forward(ctx context.Context, from net.Conn) {
	defer func() { _ = from.Close() }()
	target := b.pick()
	if target == "" {
		return
	}
	to, err := b.dial(ctx, "tcp", net.JoinHostPort(target, apiPort))
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	done := make(chan struct{}, 2)
	pipe := func(w, r net.Conn) {
		_, _ = io.Copy(w, r) // one side has closed the connection
		done <- struct{}{}
	}
	go pipe(to, from)
	go pipe(from, to)
	select {
	case <-done:
	case <-ctx.Done():
	}
}
