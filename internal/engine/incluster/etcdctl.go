package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// etcdctl runs commands in pods on a Node of the control plane. Their image is the
// one that etcd runs there: it contains etcdctl, and may have no shell.
type etcdctl struct {
	k            *kube.Client
	cloud        *cloud.Clients
	machine      string     // that the commands are about
	pod          corev1.Pod // of etcd on the Node where they run
	certificates string
	now          time.Time

	// The state that was read just before.
	nodes    *NodeList
	machines *ec2.Inventory
	healthy  []corev1.Pod // of etcd
}

// etcdctl chooses a machine on which commands can run: one that is running, has a healthy
// etcd, and is not the machine itself; if possible, not one that is to be terminated.
func (a *API) etcdctl(ctx context.Context, c *cloud.Clients, machine, certificates string, leaving []ec2.InstanceState) (*etcdctl, error) {
	k, err := a.Client(c)
	if err == nil && k == nil {
		err = graph.NotYet(errNoAddress)
	}
	if err != nil {
		return nil, a.retryUnavailable(ctx, err)
	}
	t := &etcdctl{k: k, cloud: c, machine: machine, certificates: certificates, now: c.Now()}
	if t.nodes, err = Nodes(ctx, c, a); err != nil {
		return nil, a.retryUnavailable(ctx, err)
	}
	if t.healthy, err = healthyMembers(ctx, k); err != nil {
		return nil, a.retryUnavailable(ctx, err)
	}
	if t.machines, err = ec2.InstanceInventory(ctx, c); err != nil {
		return nil, err
	}
	helper := slices.IndexFunc(t.healthy, func(p corev1.Pod) bool { return runs(t.nodes, t.machines, p.Spec.NodeName, leaving) })
	if helper < 0 { // all of them are to be terminated, one after the other
		itself := make([]ec2.InstanceState, 1)
		itself[0].ID = machine
		helper = slices.IndexFunc(t.healthy, func(p corev1.Pod) bool { return runs(t.nodes, t.machines, p.Spec.NodeName, itself) })
	}
	if helper < 0 {
		return nil, graph.NotYet(errors.New("etcd to be healthy on a machine that stays"))
	}
	t.pod = t.healthy[helper]
	return t, nil
}

// runs reports whether a Node belongs to a running machine that is not in without.
func runs(all *NodeList, machines *ec2.Inventory, node string, without []ec2.InstanceState) bool {
	return slices.ContainsFunc(machines.List, func(i *ec2.InstanceState) bool {
		s := all.Of(*i)
		return s != nil && s.Name == node && i.Status == "running" && !slices.ContainsFunc(without, func(g ec2.InstanceState) bool { return g.ID == i.ID })
	})
}

// command is one call of etcdctl, in a container of that name.
type command struct {
	name string
	args []string
}

// podTimeout is the maximum age of a pod: an older one is stuck, because its Node may
// be deleted, or it is from another run. Clocks may differ.
const podTimeout = 5 * time.Minute

// clientURLs is the annotation of an etcd pod with the URL that other machines use
// (kubeadm: EtcdAdvertiseClientUrlsAnnotationKey).
const clientURLs = "kubeadm.kubernetes.io/etcd.advertise-client-urls"

// local returns the URL of etcd on the Node where the commands run. On 127.0.0.1, etcd
// listens only if its address is IPv4 (kubeadm's phases/etcd/local.go).
func (t *etcdctl) local() string {
	return cmp.Or(t.pod.Annotations[clientURLs], "https://127.0.0.1:2379")
}

// at returns the command line of etcdctl for an endpoint, with the client
// certificate that kubeadm creates for health checks of etcd.
func (t *etcdctl) at(endpoint string, args ...string) []string {
	const in = "/certificates/"
	return append([]string{
		"etcdctl", "--endpoints=" + endpoint, "--cacert=" + in + "ca.crt", "--cert=" + in + "healthcheck-client.crt", "--key=" + in + "healthcheck-client.key",
	}, args...)
}

func (t *etcdctl) name(what string) string { return podPrefix + what + "-" + t.machine }

const podsPath = "/api/v1/namespaces/kube-system/pods"

func (t *etcdctl) path(what string) string { return podsPath + "/" + t.name(what) }

// start creates a pod that runs the commands in before, and then those in then. It returns an
// error that waits for it.
func (t *etcdctl) start(ctx context.Context, what string, before, then []command) error {
	return cmp.Or(t.create(ctx, what, before, then), t.awaited(what))
}

// create creates a pod that runs the commands in before, and then those in then.
func (t *etcdctl) create(ctx context.Context, what string, before, then []command) error {
	const volume = "certificates"
	containers := func(all []command) (out []corev1.Container) {
		for _, c := range all {
			out = append(out, corev1.Container{
				Name: c.name, Image: t.pod.Spec.Containers[0].Image, Command: c.args, ImagePullPolicy: corev1.PullIfNotPresent,
				VolumeMounts:    []corev1.VolumeMount{{Name: volume, MountPath: "/certificates", ReadOnly: true}},
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64)}, // root, because it reads the certificates
			})
		}
		return out
	}
	deadline, directory := int64(60), corev1.HostPathDirectory
	err := t.k.Post(ctx, podsPath, &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      t.name(what),
			Namespace: metav1.NamespaceSystem,
			Labels:    map[string]string{"app.kubernetes.io/managed-by": kube.FieldManager},
		},
		Spec: corev1.PodSpec{
			NodeName: t.pod.Spec.NodeName, HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &deadline,
			TerminationGracePeriodSeconds: new(int64), AutomountServiceAccountToken: new(bool), PriorityClassName: "system-node-critical",
			Tolerations:    []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			InitContainers: containers(before), Containers: containers(then),
			Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.certificates, Type: &directory}}}},
		},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("pod %s: %w", t.name(what), err)
	}
	return nil
}

func (t *etcdctl) awaited(what string) error {
	return graph.NotYet(fmt.Errorf("pod kube-system/%s on %s, which runs etcdctl", t.name(what), t.pod.Spec.NodeName))
}

// podPrefix begins the names of all pods that run etcdctl.
const podPrefix = "clusterawsadm-etcd-"

// leftPods lists the pods with etcdctl that an interrupted run has left behind: those that check the members,
// and those for a machine that is not in machines.
func leftPods(ctx context.Context, k *kube.Client, machines []*ec2.InstanceState) (names []string, err error) {
	var list corev1.PodList
	err = k.Get(ctx, podsPath+"?labelSelector=app.kubernetes.io/managed-by="+kube.FieldManager, &list)
	for _, p := range list.Items {
		ofMachine := func(i *ec2.InstanceState) bool { return strings.HasSuffix(p.Name, "-"+i.ID) }
		if strings.HasPrefix(p.Name, podPrefix) && !slices.ContainsFunc(machines, ofMachine) {
			names = append(names, p.Name)
		}
	}
	return names, err
}

// errNoPod says that a pod does not exist.
var errNoPod = errors.New("no pod")

// done returns the output of the containers of a pod, by name, after all have succeeded.
// It deletes a pod that lists members or has removed a lost one, or that failed.
func (t *etcdctl) done(ctx context.Context, what string) (printed map[string]string, err error) {
	var p corev1.Pod
	switch err := t.k.Get(ctx, t.path(what), &p); {
	case apierrors.IsNotFound(err):
		return nil, errNoPod
	case err != nil:
		return nil, err
	}
	age := t.now.Sub(p.CreationTimestamp.Time)
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		if age > podTimeout || !runs(t.nodes, t.machines, p.Spec.NodeName, nil) { // its machine was lost in the meantime
			return nil, errors.Join(t.remove(ctx, what), t.awaited(what))
		}
		return nil, t.awaited(what)
	}
	if printed, err = t.printed(ctx, what, p); err != nil {
		return nil, err
	}
	if p.Status.Phase == corev1.PodSucceeded && what == "remove" {
		return printed, nil
	}
	if err := t.remove(ctx, what); err != nil {
		return nil, err
	}
	return ended(what, p, printed, age)
}

// ended says how a pod that was deleted has ended.
func ended(what string, p corev1.Pod, printed map[string]string, age time.Duration) (map[string]string, error) {
	old, failed := age > podTimeout, p.Status.Phase == corev1.PodFailed // old: from a run that was stopped
	switch {
	case failed && !old && what == "probe" && p.Status.Reason == "": // etcdctl has ended by itself
		return printed, errSilent
	case failed:
		return nil, graph.NotYet(fmt.Errorf("etcdctl to succeed: %s", strings.TrimSpace(p.Status.Reason+" "+p.Status.Message+" "+lastLine(printed))))
	case old:
		return nil, errNoPod
	}
	return printed, nil
}

// members lists the members of etcd, and returns the leader.
func (t *etcdctl) members(ctx context.Context) (members []etcdMember, leader uint64, err error) {
	seen, err := t.done(ctx, "look")
	if errors.Is(err, errNoPod) {
		return nil, 0, t.start(ctx, "look", nil, []command{
			{"members", t.at(t.local(), "member", "list", "-w", "json")},
			{"leader", t.at(t.local(), "endpoint", "status", "-w", "json")},
		})
	}
	if err != nil {
		return nil, 0, err
	}
	return readMembers(seen)
}

// printed returns the output of the containers of a pod, by name. In a pod that has failed, containers
// may never have started.
func (t *etcdctl) printed(ctx context.Context, what string, p corev1.Pod) (map[string]string, error) {
	out := map[string]string{}
	for _, c := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		var log []byte
		err := t.k.Get(ctx, t.path(what)+"/log?container="+c.Name, &log)
		if apierrors.IsBadRequest(err) && p.Status.Phase == corev1.PodFailed {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what pod %s has printed: %w", t.name(what), err)
		}
		out[c.Name] = string(log)
	}
	return out, nil
}

// lastLine returns the last line of the output.
func lastLine(printed map[string]string) (last string) {
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		text := strings.TrimSpace(printed[name])
		if line := text[strings.LastIndexByte(text, '\n')+1:]; line != "" {
			last = line
		}
	}
	return last
}

// clean deletes the pods.
func (t *etcdctl) clean(ctx context.Context) error {
	for _, what := range []string{"look", "remove", "lost", "probe"} {
		if err := t.remove(ctx, what); err != nil {
			return err
		}
	}
	return nil
}

func (t *etcdctl) remove(ctx context.Context, what string) error {
	return t.deletePod(ctx, t.name(what))
}

func (t *etcdctl) deletePod(ctx context.Context, name string) error {
	if err := t.k.Delete(ctx, podsPath+"/"+name); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	return nil
}
