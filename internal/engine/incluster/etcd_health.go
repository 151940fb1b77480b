package incluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/etcd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EtcdHealth is the condition for stopping the control plane: each of its machines has a healthy member of etcd. Only Update
// asks the members.
type EtcdHealth struct {
	API      *API
	Machines int // of the control plane
	After    []graph.Edge
}

// EtcdHealthState says whether etcd was asked.
type EtcdHealthState struct{ Healthy bool }

// CloudID implements graph.State.
func (EtcdHealthState) CloudID() string { return "members of etcd" }

var (
	_ graph.Desired[EtcdHealthState] = (*EtcdHealth)(nil)
	_ graph.Updater[EtcdHealthState] = (*EtcdHealth)(nil)
)

// Needs implements graph.Desired.
func (e *EtcdHealth) Needs() []graph.Edge { return append(e.API.needs(), e.After...) }

// Find implements graph.Desired.
func (e *EtcdHealth) Find(context.Context, *cloud.Clients) (*EtcdHealthState, error) {
	return &EtcdHealthState{}, nil
}

// Diff implements graph.Desired.
func (e *EtcdHealth) Diff(have *EtcdHealthState) (d plan.Diff) {
	if !have.Healthy {
		d.Set("members", "unknown until etcd is asked", fmt.Sprintf("%d healthy", e.Machines))
	}
	return d
}

// Update implements graph.Updater.
func (e *EtcdHealth) Update(ctx context.Context, c *cloud.Clients, _ *EtcdHealthState, _ plan.Diff) (*EtcdHealthState, error) {
	keys, _ := e.API.PKI.Found()
	k, err := e.API.Client(c)
	switch {
	case err != nil:
		return nil, err
	case k == nil:
		return nil, graph.NotYet(errNoAddress)
	}
	unhealthy, err := CheckEtcd(ctx, c, k, keys.PKI, e.Machines)
	switch {
	case err != nil:
		return nil, retryUnavailable(ctx, err)
	case unhealthy != "":
		return nil, graph.NotYet(fmt.Errorf("etcd to be healthy: %s", unhealthy))
	}
	return &EtcdHealthState{true}, nil
}

// CheckEtcd asks each member of etcd whether it is healthy. It returns the reason why the machines of the control plane must not be
// stopped, or "". External etcd is not checked, because it runs on other machines.
func CheckEtcd(ctx context.Context, c *cloud.Clients, k *kube.Client, keys *boot.PKI, machines int) (unhealthy string, err error) {
	if err := k.Ready(ctx); err != nil || len(keys.Etcd.Key) == 0 {
		return "", err
	}
	pods, err := healthyMembers(ctx, k)
	if err != nil {
		return "", err
	}
	if len(pods) < machines {
		return fmt.Sprintf("%d of %s of the control plane have a healthy member", len(pods), text.Count(machines, "machine")), nil
	}
	config, err := keys.EtcdTLS(c.Now())
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		member := etcdOf(k, p, config)
		why, err := whyUnhealthy(ctx, member, func(name string) bool {
			return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == name })
		})
		member.Close()
		if err != nil {
			return fmt.Sprintf("the member on %s: %v", p.Spec.NodeName, err), context.Cause(ctx)
		}
		if why != "" {
			return fmt.Sprintf("the member on %s %s", p.Spec.NodeName, why), nil
		}
	}
	return "", nil
}

// whyUnhealthy returns what is wrong with a member, or "". answers reports whether the member on a Node is ready.
func whyUnhealthy(ctx context.Context, member *etcd.Client, answers func(node string) bool) (string, error) {
	s, err := member.Status(ctx)
	switch {
	case err != nil:
		return "", err
	case s.Learner:
		return "is a learner", nil
	case s.Leader == 0:
		return "knows no leader", nil
	}
	names, err := member.Members(ctx)
	for _, name := range names {
		if !answers(name) {
			return "knows the member " + name + ", which is not healthy", nil
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("it lists no members")
	}
	return "", err
}
