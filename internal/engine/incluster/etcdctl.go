package incluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// etcdctl runs commands in pods on a node of the control plane. The image is
// that of etcd there, which has etcdctl beside it and may have no shell.
type etcdctl struct {
	k            *kube.Client
	machine      string    // that all of it is about
	pod          podObject // of etcd on the node where they run
	certificates string
	now          time.Time

	// What was seen right before.
	nodes    *Roster
	machines *ec2.Inventory
	healthy  []podObject // of etcd
}

// etcdctl finds a machine on which commands can be run: one that runs, with a
// healthy etcd, and is not the machine itself; if there is a choice, none of
// those that go.
func (a *API) etcdctl(ctx context.Context, c *cloud.Clients, machine, certificates string, going []ec2.InstanceState) (*etcdctl, error) {
	k, err := a.Client(c)
	if err == nil && k == nil {
		err = graph.NotYet(errNowhere)
	}
	if err != nil {
		return nil, a.patiently(ctx, err)
	}
	t := &etcdctl{k: k, machine: machine, certificates: certificates, now: c.Clock.Now()}
	if t.nodes, err = Nodes(ctx, c, a); err != nil {
		return nil, a.patiently(ctx, err)
	}
	if t.healthy, err = healthyMembers(ctx, k); err != nil {
		return nil, a.patiently(ctx, err)
	}
	if t.machines, err = ec2.InstanceInventory(ctx, c); err != nil {
		return nil, err
	}
	helper := slices.IndexFunc(t.healthy, func(p podObject) bool { return runs(t.nodes, t.machines, p.Spec.NodeName, going) })
	if helper < 0 { // all of them go, one after the other
		itself := make([]ec2.InstanceState, 1)
		itself[0].ID = machine
		helper = slices.IndexFunc(t.healthy, func(p podObject) bool { return runs(t.nodes, t.machines, p.Spec.NodeName, itself) })
	}
	if helper < 0 {
		return nil, graph.NotYet(errors.New("etcd to be healthy on a machine that stays"))
	}
	t.pod = t.healthy[helper]
	return t, nil
}

// runs reports whether a node is that of a machine which runs and is not among
// those that go.
func runs(all *Roster, machines *ec2.Inventory, node string, going []ec2.InstanceState) bool {
	return slices.ContainsFunc(machines.List, func(i *ec2.InstanceState) bool {
		s := all.Of(*i)
		return s != nil && s.Name == node && i.Status == "running" && !slices.ContainsFunc(going, func(g ec2.InstanceState) bool { return g.ID == i.ID })
	})
}

// command is one call of etcdctl, in a container of that name.
type command struct {
	name string
	args []string
}

const (
	localEtcd = "https://127.0.0.1:2379"
	// toolTakes is after how long a pod is taken to be stuck: its node may be
	// gone. Clocks may differ.
	toolTakes = 5 * time.Minute
)

// at returns a call of etcdctl at an endpoint, as the client by which kubeadm
// has the health of etcd checked.
func (t *etcdctl) at(endpoint string, args ...string) []string {
	const in = "/certificates/"
	return append([]string{
		"etcdctl", "--endpoints=" + endpoint, "--cacert=" + in + "ca.crt", "--cert=" + in + "healthcheck-client.crt", "--key=" + in + "healthcheck-client.key",
	}, args...)
}

func (t *etcdctl) name(what string) string { return "clusterawsadm-etcd-" + what + "-" + t.machine }

const toolPods = "/api/v1/namespaces/kube-system/pods"

func (t *etcdctl) path(what string) string { return toolPods + "/" + t.name(what) }

// start starts a pod.
func (t *etcdctl) start(ctx context.Context, what string, before, then []command) error {
	containers := func(all []command) (out []any) {
		for _, c := range all {
			out = append(out, map[string]any{
				"name": c.name, "image": t.pod.Spec.Containers[0].Image, "command": c.args, "imagePullPolicy": "IfNotPresent",
				"volumeMounts":    []any{map[string]any{"name": "certificates", "mountPath": "/certificates", "readOnly": true}},
				"securityContext": map[string]any{"runAsUser": 0},
			})
		}
		return out
	}
	err := t.k.Post(ctx, toolPods, map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": t.name(what), "namespace": "kube-system", "labels": map[string]any{"app.kubernetes.io/managed-by": kube.FieldManager}},
		"spec": map[string]any{
			"nodeName": t.pod.Spec.NodeName, "hostNetwork": true, "restartPolicy": "Never", "activeDeadlineSeconds": 60,
			"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false, "priorityClassName": "system-node-critical",
			"tolerations":    []any{map[string]any{"operator": "Exists"}},
			"initContainers": containers(before), "containers": containers(then),
			"volumes": []any{map[string]any{"name": "certificates", "hostPath": map[string]any{"path": t.certificates, "type": "Directory"}}},
		},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("pod %s: %w", t.name(what), err)
	}
	return t.awaited(what)
}

func (t *etcdctl) awaited(what string) error {
	return graph.NotYet(fmt.Errorf("pod kube-system/%s on %s, which runs etcdctl", t.name(what), t.pod.Spec.NodeName))
}

// errNotBegun says that there is no such pod.
var errNotBegun = errors.New("no pod")

// done returns what the containers of a pod have printed, by name, once all
// have ended well. A pod that looks, or that failed, is deleted by that.
func (t *etcdctl) done(ctx context.Context, what string) (printed map[string]string, err error) {
	var p podObject
	switch err := t.k.Get(ctx, t.path(what), &p); {
	case apierrors.IsNotFound(err):
		return nil, errNotBegun
	case err != nil:
		return nil, err
	}
	age := t.now.Sub(p.Metadata.CreationTimestamp.Time)
	switch p.Status.Phase {
	case "Succeeded", "Failed":
	default:
		if age > toolTakes {
			return nil, errors.Join(t.remove(ctx, what), t.awaited(what))
		}
		return nil, t.awaited(what)
	}
	if printed, err = t.printed(ctx, what, p); err != nil {
		return nil, err
	}
	if p.Status.Phase == "Succeeded" && what == "remove" {
		return printed, nil
	}
	if err := t.remove(ctx, what); err != nil {
		return nil, err
	}
	if p.Status.Phase == "Failed" {
		return nil, graph.NotYet(fmt.Errorf("etcdctl to get through: %s", strings.TrimSpace(p.Status.Reason+" "+p.Status.Message+" "+lastLine(printed))))
	}
	if age > toolTakes {
		return nil, errNotBegun // of a run that was stopped long ago
	}
	return printed, nil
}

// look finds out who is a member of etcd and who leads.
func (t *etcdctl) look(ctx context.Context) (members []etcdMember, leader uint64, err error) {
	seen, err := t.done(ctx, "look")
	if errors.Is(err, errNotBegun) {
		return nil, 0, t.start(ctx, "look", nil, []command{
			{"members", t.at(localEtcd, "member", "list", "-w", "json")},
			{"leader", t.at(localEtcd, "endpoint", "status", "-w", "json")},
		})
	}
	if err != nil {
		return nil, 0, err
	}
	return readMembers(seen)
}

// printed is what the containers of a pod have printed, by name.
func (t *etcdctl) printed(ctx context.Context, what string, p podObject) (map[string]string, error) {
	out := map[string]string{}
	for _, c := range p.Spec.Containers {
		var log []byte
		if err := t.k.Get(ctx, t.path(what)+"/log?container="+c.Name, &log); err != nil {
			return nil, fmt.Errorf("what pod %s has printed: %w", t.name(what), err)
		}
		out[c.Name] = string(log)
	}
	return out, nil
}

// lastLine is the last of what was printed.
func lastLine(printed map[string]string) (last string) {
	for _, text := range printed {
		text = strings.TrimSpace(text)
		if line := text[strings.LastIndexByte(text, '\n')+1:]; line != "" {
			last = line
		}
	}
	return last
}

// clean deletes the pods.
func (t *etcdctl) clean(ctx context.Context) error {
	for _, what := range []string{"look", "remove"} {
		if err := t.remove(ctx, what); err != nil {
			return err
		}
	}
	return nil
}

func (t *etcdctl) remove(ctx context.Context, what string) error {
	if err := t.k.Delete(ctx, t.path(what)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("pod %s: %w", t.name(what), err)
	}
	return nil
}
