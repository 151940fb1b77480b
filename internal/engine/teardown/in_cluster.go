package teardown

import (
	"cmp"
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
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// InCluster are Kubernetes objects of one type, for which controllers in the cluster have
// created AWS resources. A deletion deletes the objects first and waits for the
// controllers. If the cluster does not respond, the deletion continues: the AWS resources
// are found by their tags.
type InCluster struct {
	Kube *kube.Client
	Warn func(string) // called with what was not deleted
	// Timeout is how long to wait without progress, and half of the total time limit; 0:
	// five minutes.
	Timeout time.Duration

	list func(context.Context, *kube.Client) (*InClusterState, error)
	ask  func(context.Context, *kube.Client, *InClusterState) error
}

// InClusterState are the objects that still exist, and the requests so far.
type InClusterState struct {
	objects []object
	users   []inClusterObject // pods that use the objects

	asked          map[string]bool // by UID; objects that controllers create later are not deleted again
	told, scaled   map[string]bool // deleted claims; StatefulSets scaled down
	began, changed time.Time
	least          int
	failed         error // error of the last request
	over           bool  // the cluster is unreachable
}

// object is an object for which an AWS resource was created.
type object struct {
	name, path, uid string // "Service default/web"
	deleting        bool
	last            bool // it is deleted after the others
}

var (
	_ graph.Desired[InClusterState]  = (*InCluster)(nil)
	_ graph.Follower[InClusterState] = (*InCluster)(nil)
	_ graph.Deleter[InClusterState]  = (*InCluster)(nil)
)

// CloudID implements graph.State.
func (s InClusterState) CloudID() string { return strings.Join(s.names(), ", ") }

func (s InClusterState) names() []string {
	var names []string
	for _, o := range s.objects {
		names = append(names, o.name)
	}
	return names
}

// inClusterTimeout is how long controllers may make no progress. They wait for load
// balancers, whose network interfaces exist for another two minutes.
const inClusterTimeout = 5 * time.Minute

// unansweredTimeout is how long to retry if the API server stops responding or denies the
// request.
const unansweredTimeout = time.Minute

// Sweep adds the objects to a graph. They are deleted before everything else.
func (i *InCluster) Sweep(g *graph.Graph, id plan.ID, before []graph.Edge) {
	graph.Sweep(g, id, i, graph.From("which the cluster is asked to give up"), graph.With(before))
}

// Needs implements graph.Desired.
func (i *InCluster) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (i *InCluster) Find(ctx context.Context, c *cloud.Clients) (*InClusterState, error) {
	return i.Follow(ctx, c, &InClusterState{})
}

// Follow implements graph.Follower. After the first request, new objects are ignored. If
// the API server does not respond, the state is unchanged.
func (i *InCluster) Follow(ctx context.Context, _ *cloud.Clients, last *InClusterState) (*InClusterState, error) {
	if last.over {
		return nil, nil // the AWS resources are found by their tags
	}
	seen, err := i.list(ctx, i.Kube)
	have := *last
	have.failed = err
	switch {
	case err != nil && stopped(ctx, err):
		return nil, err
	case err != nil && last.asked == nil:
		i.giveUp(&have)
		return &InClusterState{over: true}, nil
	case err != nil:
		return &have, nil //nolint:nilerr // Delete waits for an answer
	}
	have.objects, have.users = seen.objects, seen.users
	if have.asked != nil {
		have.objects = slices.DeleteFunc(have.objects, func(o object) bool { return !have.asked[o.uid] })
	}
	if len(have.objects) == 0 {
		return nil, nil // everything is deleted
	}
	return &have, nil
}

// Diff implements graph.Desired.
func (i *InCluster) Diff(*InClusterState) plan.Diff { return nil }

// Delete implements graph.Deleter. Each call is one round, and records its requests in
// the state for the next.
func (i *InCluster) Delete(ctx context.Context, c *cloud.Clients, have *InClusterState) error {
	now := c.Clock.Now()
	left := len(have.objects) + len(have.users)
	if have.asked == nil {
		have.asked, have.told, have.scaled = map[string]bool{}, map[string]bool{}, map[string]bool{}
		have.began, have.changed, have.least = now, now, left
		for _, o := range have.objects {
			have.asked[o.uid] = true
		}
	}
	if have.failed == nil {
		if left < have.least {
			have.least, have.changed = left, now
		}
		if err := i.ask(ctx, i.Kube, have); err != nil {
			if stopped(ctx, err) {
				return err
			}
			have.failed = err
		}
	}
	limit := cmp.Or(i.Timeout, inClusterTimeout)
	idle := limit
	if have.failed != nil {
		idle = min(idle, unansweredTimeout)
	}
	if now.Sub(have.changed) >= idle || now.Sub(have.began) >= 2*limit {
		i.giveUp(have)
		return nil
	}
	if have.failed != nil {
		return graph.NotYet(fmt.Errorf("the API server: %s", kube.Reason(have.failed)))
	}
	return graph.NotYet(fmt.Errorf("the cluster to delete %s", text.Several(have.names())))
}

// giveUp warns about objects that still exist.
func (i *InCluster) giveUp(have *InClusterState) {
	what, why := "its AWS resources", "in time"
	if len(have.objects) > 0 {
		what = text.Several(have.names())
	}
	if have.failed != nil {
		why = "(" + kube.Reason(have.failed) + ")"
	}
	i.Warn(fmt.Sprintf("the cluster has not deleted %s %s: the AWS resources are found by their tags", what, why))
}

// stopped reports whether the error is from this run and not from the API server: the run
// was stopped, or lost its lock.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, cloud.ErrLockLost) || errors.As(err, new(*cloud.RefusedError))
}

// BalancersInCluster are the objects with load balancers: Services, and the Ingresses and
// Gateways for which the AWS Load Balancer Controller has created some.
func BalancersInCluster(k *kube.Client) *InCluster {
	return &InCluster{Kube: k, list: balancersInCluster, ask: func(ctx context.Context, k *kube.Client, have *InClusterState) error {
		var paths []string
		for _, o := range have.objects {
			if !o.deleting {
				paths = append(paths, o.path)
			}
		}
		return deleteAll(ctx, k, paths)
	}}
}

func balancersInCluster(ctx context.Context, k *kube.Client) (*InClusterState, error) {
	s := &InClusterState{}
	for _, of := range []struct {
		kind, group, plural string
		has                 func(*inClusterObject) bool
	}{
		{"Service", "/api/v1", "services", hasLoadBalancer},
		{"Ingress", "/apis/networking.k8s.io/v1", "ingresses", hasAWSFinalizer},
		{"Gateway", "/apis/gateway.networking.k8s.io/v1", "gateways", hasAWSFinalizer},
	} {
		all, err := inClusterObjects(ctx, k, of.group+"/"+of.plural)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if m := o.Metadata; of.has(&o) {
				s.objects = append(s.objects, object{
					name: of.kind + " " + m.Namespace + "/" + m.Name, path: of.group + "/namespaces/" + m.Namespace + "/" + of.plural + "/" + m.Name,
					uid: m.UID, deleting: m.DeletionTimestamp != "",
				})
			}
		}
	}
	return s, nil
}

// hasLoadBalancer reports whether a Service may have an AWS load balancer: it has no
// class, that of the AWS Load Balancer Controller or that of EKS.
func hasLoadBalancer(o *inClusterObject) bool {
	class := o.Spec.LoadBalancerClass
	return o.Spec.Type == "LoadBalancer" && (class == "" || strings.HasPrefix(class, "service.k8s.aws/") || strings.HasPrefix(class, "eks.amazonaws.com/"))
}

// hasAWSFinalizer reports whether an object has a finalizer of an AWS controller, which deletes
// the AWS resources first.
func hasAWSFinalizer(o *inClusterObject) bool {
	return slices.ContainsFunc(o.Metadata.Finalizers, func(f string) bool {
		domain, _, _ := strings.Cut(f, "/")
		return strings.HasSuffix(domain, ".k8s.aws") || strings.HasSuffix(domain, "eks.amazonaws.com")
	})
}

// VolumesInCluster are the claims whose EBS volumes are to be deleted with them. After
// the deletion of a claim, no new pod that uses it is scheduled, so only the existing
// pods are deleted. StatefulSets would create the claims again, and are scaled down.
func VolumesInCluster(k *kube.Client) *InCluster {
	return &InCluster{Kube: k, list: volumesInCluster, ask: func(ctx context.Context, k *kube.Client, have *InClusterState) error {
		var paths []string
		for _, p := range have.users {
			set := statefulSet(&p)
			if set == "" || have.scaled[set] {
				continue
			}
			err := k.Merge(ctx, set, map[string]any{"spec": map[string]any{"replicas": 0}})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			have.scaled[set] = true
		}
		for _, o := range have.objects {
			if !have.told[o.uid] {
				paths = append(paths, o.path)
			}
		}
		if err := deleteAll(ctx, k, paths); err != nil {
			return err
		}
		for _, o := range have.objects {
			have.told[o.uid] = true
		}
		paths = nil
		for _, p := range have.users {
			if p.Metadata.DeletionTimestamp == "" {
				paths = append(paths, "/api/v1/namespaces/"+p.Metadata.Namespace+"/pods/"+p.Metadata.Name)
			}
		}
		return deleteAll(ctx, k, paths)
	}}
}

// statefulSet returns the path of the StatefulSet that owns a pod; "" for none.
func statefulSet(pod *inClusterObject) string {
	for _, o := range pod.Metadata.OwnerReferences {
		if o.Controller && o.Kind == "StatefulSet" {
			return "/apis/apps/v1/namespaces/" + pod.Metadata.Namespace + "/statefulsets/" + o.Name
		}
	}
	return ""
}

// volumesInCluster lists claims by their volumes, which exist until they are deleted in
// AWS.
func volumesInCluster(ctx context.Context, k *kube.Client) (*InClusterState, error) {
	volumes, err := inClusterObjects(ctx, k, "/api/v1/persistentvolumes")
	if err != nil {
		return nil, err
	}
	s, claims := &InClusterState{}, map[string]bool{}
	for _, v := range volumes {
		claim := v.Spec.ClaimRef
		if claim.Name == "" || !deletedWithClaim(&v) {
			continue
		}
		claims[claim.Namespace+"/"+claim.Name] = true
		s.objects = append(s.objects, object{
			name: "PersistentVolumeClaim " + claim.Namespace + "/" + claim.Name, uid: v.Metadata.UID,
			path: "/api/v1/namespaces/" + claim.Namespace + "/persistentvolumeclaims/" + claim.Name,
		})
	}
	if len(claims) == 0 {
		return s, nil
	}
	pods, err := inClusterObjects(ctx, k, "/api/v1/pods")
	for _, p := range pods {
		if p.Spec.NodeName != "" && uses(&p, claims) {
			s.users = append(s.users, p)
		}
	}
	return s, err
}

// ReclaimPolicies returns the reclaim policies of the cluster's EBS volumes, by volume ID.
func ReclaimPolicies(ctx context.Context, k *kube.Client) (map[string]string, error) {
	volumes, err := inClusterObjects(ctx, k, "/api/v1/persistentvolumes")
	policies := map[string]string{}
	for _, v := range volumes {
		id := v.Spec.CSI.VolumeHandle
		if old := v.Spec.AWSElasticBlockStore; old != nil {
			id = cloud.LastPart(old.VolumeID) // "aws://ZONE/ID"
		}
		policies[id] = v.Spec.PersistentVolumeReclaimPolicy
	}
	return policies, err
}

// deletedWithClaim reports whether a PersistentVolume is an EBS volume that is deleted
// with its claim. One whose deletion has failed is not tried again.
func deletedWithClaim(v *inClusterObject) bool {
	driver := v.Spec.CSI.Driver
	ebs := driver == "ebs.csi.aws.com" || driver == "ebs.csi.eks.amazonaws.com" || v.Spec.AWSElasticBlockStore != nil
	return ebs && v.Spec.PersistentVolumeReclaimPolicy == "Delete" && v.Status.Phase != "Failed"
}

func uses(pod *inClusterObject, claims map[string]bool) bool {
	for _, v := range pod.Spec.Volumes {
		name := v.PersistentVolumeClaim.ClaimName
		if v.Ephemeral != nil {
			name = pod.Metadata.Name + "-" + v.Name
		}
		if name != "" && claims[pod.Metadata.Namespace+"/"+name] {
			return true
		}
	}
	return false
}

// inClusterObject has the fields that are used, of all types of objects.
type inClusterObject struct {
	Metadata struct {
		Name, Namespace, UID, DeletionTimestamp string

		Finalizers      []string
		OwnerReferences []struct {
			Kind, Name string
			Controller bool
		}
	}
	Spec struct {
		Type, LoadBalancerClass       string // of a Service
		PersistentVolumeReclaimPolicy string // this and the following: of a PersistentVolume
		ClaimRef                      struct{ Namespace, Name, UID string }
		CSI                           struct{ Driver, VolumeHandle string }
		AWSElasticBlockStore          *struct{ VolumeID string }
		NodeName                      string                 // of a Pod
		NodeClassRef                  struct{ Group string } // of a NodeClaim
		Template                      struct {               // of a NodePool
			Spec struct {
				NodeClassRef struct{ Group string }
			}
		}
		Volumes []struct {
			Name                  string
			PersistentVolumeClaim struct{ ClaimName string }
			Ephemeral             *struct{}
		}
	}
	Status struct{ Phase string }
}

// inClusterObjects lists the objects at a path; none if the type is not served.
func inClusterObjects(ctx context.Context, k *kube.Client, path string) (all []inClusterObject, err error) {
	for next := ""; ; {
		var page struct {
			Metadata struct{ Continue string }
			Items    []inClusterObject
		}
		if err := k.Get(ctx, path+"?limit=500&continue="+next, &page); err != nil {
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return all, err
		}
		all = append(all, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

// deleteAll deletes the objects at some paths. After an error it continues with the next.
func deleteAll(ctx context.Context, k *kube.Client, paths []string) (first error) {
	for _, path := range paths {
		err := k.Delete(ctx, path)
		if err != nil && !apierrors.IsNotFound(err) && first == nil {
			first = err
		}
		if err != nil && stopped(ctx, err) {
			return err
		}
	}
	return first
}

// ControlPlaneRuns reports whether a machine of the control plane is running.
func ControlPlaneRuns(ctx context.Context, c *cloud.Clients) (bool, error) {
	all, err := ec2.Instances(ctx, c)
	return slices.ContainsFunc(all, func(s ec2.InstanceState) bool {
		return s.Tags[cloud.RoleTag] == "control-plane" && s.Status == "running"
	}), err
}
