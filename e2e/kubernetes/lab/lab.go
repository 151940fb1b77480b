package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/node"
	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/wire"
)

// Lab is an AWS account in which instances boot.
type Lab struct {
	account  *account
	laptop   namespace
	front    namespace // of load balancers
	programs string
	folder   string
	hosts    string // /etc/hosts of the laptop
	registry string // of images; empty without real container runtimes

	mu        sync.Mutex
	machines  map[string]*Machine // by instance ID
	balancers map[string]*balancer
	broken    error // why an instance did not boot
}

// Start starts a lab until the end of the test.
func Start(t *testing.T) *Lab {
	t.Helper()
	require.Zero(t, os.Geteuid(), "the lab makes network namespaces, which only root may")
	began := time.Now()
	dir, err := build(t.Context())
	require.NoError(t, err)
	t.Logf("programs are built after %s", time.Since(began).Round(time.Second))
	ctx := t.Context()
	locked, err := lock(ctx, 20*time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { _ = locked.Close() })
	require.NoError(t, sweep(ctx))
	t.Cleanup(func() { require.NoError(t, sweep(context.WithoutCancel(ctx)), "clean up") })

	l := &Lab{programs: dir, machines: map[string]*Machine{}, balancers: map[string]*balancer{}}
	l.folder, err = os.MkdirTemp("", prefix+"disks-") //nolint:usetesting // if this lab is killed, the next one has to find it
	require.NoError(t, err)
	require.NoError(t, newSwitchboard(ctx))
	l.front, err = newHost(ctx, "lb", balancerAddress)
	require.NoError(t, err)
	l.hosts = filepath.Join(hostsFolder, prefix+"laptop", "hosts")
	require.NoError(t, os.MkdirAll(filepath.Dir(l.hosts), 0o755))
	require.NoError(t, os.WriteFile(l.hosts, []byte("127.0.0.1 localhost\n"), 0o644))
	l.laptop, err = newHost(ctx, "laptop", laptopAddress)
	require.NoError(t, err)
	l.account, err = openAccount(ctx, l.folder)
	require.NoError(t, err)

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() { l.work(background) })
	t.Cleanup(func() {
		stop()
		all.Wait()
		l.keepLogs(t)
		for _, m := range l.machines {
			m.Kill()
		}
		require.NoError(t, l.account.close())
	})
	return l
}

// realRuntimes makes the instances of a lab run the real containerd, runc and kubelet, with the
// images that a manifest and kubeadm name.
func (l *Lab) realRuntimes(t *testing.T, manifest string) {
	t.Helper()
	for _, p := range addOns() {
		_, err := controlplane.Build(t.Context(), p)
		require.NoError(t, err)
	}
	began := time.Now()
	background, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	require.NoError(t, serveImages(background, l.account.namespace, l.programs, manifest, l.account.roots))
	t.Logf("images are made after %s", time.Since(began).Round(time.Second))
	l.registry = registryAddress
}

// work simulates AWS once a second: new instances boot, terminated instances end, and
// load balancers forward to their targets.
func (l *Lab) work(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		failures++
		err := l.round(ctx)
		if err == nil || ctx.Err() != nil {
			failures = 0
		}
		if failures == 5 { // requests may fail while resources are incomplete
			l.mu.Lock()
			l.broken = err
			l.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (l *Lab) round(ctx context.Context) error {
	instances, err := l.account.Instances(ctx)
	if err != nil {
		return err
	}
	balancers, err := l.account.loadBalancers(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.balance(ctx, balancers, instances); err != nil {
		return err
	}
	for _, i := range instances { // first, because moto gives their addresses to new ones
		if m := l.machines[i.ID]; m != nil && i.State != "running" && i.State != "pending" {
			m.Kill()
			delete(l.machines, i.ID)
			if err := m.remove(ctx); err != nil {
				return err
			}
		}
	}
	for _, i := range instances {
		if i.State == "running" && l.machines[i.ID] == nil && i.Image != eksImage {
			if err := l.launch(ctx, i); err != nil {
				return fmt.Errorf("launch %s: %w", i.ID, err)
			}
		}
	}
	return nil
}

func (l *Lab) launch(ctx context.Context, i wire.Instance) error {
	for _, other := range l.machines {
		if other.Address == i.Address {
			return fmt.Errorf("%s has the address %s, too: the clusters of a test need different networks", other.ID, i.Address)
		}
	}
	data, err := l.account.userData(ctx, i.ID)
	if err != nil {
		return err
	}
	version, err := l.account.version(ctx, i.Image)
	if err != nil {
		return err
	}
	hosts := map[string]string{}
	for _, service := range []string{"secretsmanager", "ec2", "elasticloadbalancing", "autoscaling", "sts", "kms"} {
		hosts[service+"."+region+".amazonaws.com"] = awsAddress
	}
	for name, b := range l.balancers {
		hosts[name] = b.address
	}
	m, err := newMachine(ctx, l.folder, node.Instance{
		ID: i.ID, Zone: i.Zone, Address: i.Address, IPv6: ipv6(i.Address), Name: i.Name, Version: version, Endpoint: endpoint, Region: region,
		UserData: data, Hosts: hosts, Programs: l.programs, Registry: l.registry,
	})
	if err != nil {
		return err
	}
	m.Tag = i.Tag("Name")
	l.machines[i.ID] = m
	l.account.route(ctx, routeAfter)
	return m.boot(ctx)
}

// balance updates the targets of load balancers. New DNS names are added for the laptop;
// instances get them when they boot.
func (l *Lab) balance(ctx context.Context, all []loadBalancer, instances []wire.Instance) error {
	for _, lb := range all {
		b := l.balancers[lb.Name]
		if b == nil {
			var err error
			if b, err = newBalancer(ctx, l.front, fmt.Sprintf(balancerFormat, len(l.balancers)+1)); err != nil {
				return err
			}
			l.balancers[lb.Name] = b
			if err := l.announce(lb.Name, b.address); err != nil {
				return err
			}
		}
		var targets []string
		for _, i := range instances {
			switch {
			case !slices.Contains(lb.targets, i.ID):
			case lb.ipv6:
				targets = append(targets, ipv6(i.Address))
			default:
				targets = append(targets, i.Address)
			}
		}
		b.set(targets, lb.probes)
	}
	return nil
}

// announce appends to the file and does not replace it, because the file is bind-mounted.
func (l *Lab) announce(name, address string) error {
	f, err := os.OpenFile(l.hosts, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s %s\n", address, name); err != nil {
		return err
	}
	return f.Close()
}

// Machines returns the running instances by name.
func (l *Lab) Machines(t *testing.T) (all []*Machine) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NoError(t, l.broken, "the lab itself failed")
	for _, m := range l.machines {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Machine) int { return strings.Compare(a.Tag+a.ID, b.Tag+b.ID) })
	return all
}

// keepLogs copies the console output of instances to LAB_LOGS, if that is set, and the
// end of it to the log of a failed test.
func (l *Lab) keepLogs(t *testing.T) {
	t.Helper()
	for _, m := range l.machines {
		text, err := os.ReadFile(m.Console())
		if err != nil {
			continue // there is no output
		}
		if t.Failed() {
			t.Logf("console of %s (%s):\n%s", m.ID, m.Tag, text[max(0, len(text)-4000):])
		}
		if dir := os.Getenv("LAB_LOGS"); dir != "" {
			if err := os.MkdirAll(filepath.Join(dir, m.ID), 0o755); err != nil {
				t.Logf("logs of %s: %v", m.ID, err)
			}
			if err := os.CopyFS(filepath.Join(dir, m.ID, "pods"), os.DirFS(m.Path("/var/log/pods"))); err != nil {
				t.Logf("logs of %s: %v", m.ID, err)
			}
			if err := os.WriteFile(filepath.Join(dir, m.ID, "console.log"), text, 0o600); err != nil {
				t.Logf("logs of %s: %v", m.ID, err)
			}
		}
	}
}
