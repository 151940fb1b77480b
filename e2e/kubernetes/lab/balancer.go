package lab

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// apiPort is the port of API servers.
const apiPort = "6443"

// balancer forwards connections to healthy targets, round robin.
type balancer struct {
	namespace
	address  string
	listener net.Listener

	mu      sync.Mutex
	probes  healthCheck
	targets []string           // addresses
	health  map[string]*health // by address
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
	b := &balancer{namespace: ns, address: address, listener: l, health: map[string]*health{}}
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

// set sets the registered targets and their health check. A target that is registered
// again is new.
func (b *balancer) set(targets []string, probes healthCheck) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets, b.probes = targets, probes
	for target := range b.health {
		if !slices.Contains(targets, target) {
			delete(b.health, target)
		}
	}
}

// check checks the targets until the context ends.
func (b *balancer) check(ctx context.Context) {
	defer func() { _ = b.listener.Close() }()
	for ctx.Err() == nil {
		b.mu.Lock()
		probes, targets := b.probes, slices.Clone(b.targets)
		b.mu.Unlock()
		var all sync.WaitGroup
		for _, target := range targets {
			all.Go(func() { b.note(target, probes, probes.probe(ctx, b.namespace, target)) })
		}
		all.Wait()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(max(1, probes.Interval)) * time.Second):
		}
	}
}

// note applies the result of a health check.
func (b *balancer) note(target string, probes healthCheck, passed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.targets, target) {
		return // it was deregistered
	}
	if b.health[target] == nil {
		b.health[target] = &health{}
	}
	b.health[target].note(probes, passed)
}

// pick returns the next target for a connection; "" if there is none.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	targets := eligible(b.targets, b.health)
	if len(targets) == 0 {
		return ""
	}
	b.next++
	return targets[b.next%len(targets)]
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
