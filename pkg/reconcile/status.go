package reconcile

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	pkgeks "github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// Status reads the state of the cluster: of the resources of the manifest, or, without
// one, of those with the tag of the cluster.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	r := c.begin(Options{})
	s := Status{Name: c.Name, Region: c.Region}
	look := r.lookByManifest
	if c.manifest == nil {
		look = r.lookByTag
	}
	if err := look(ctx, &s); err != nil {
		return s, public(err)
	}
	kinds := slices.Concat(aws.Kinds(), incluster.Kinds())
	for _, step := range r.plan.Steps {
		n := r.built.Resource(step.Resource)
		if n == nil || step.Action == graph.Leave || n.Role() == graph.RoleSwept {
			continue
		}
		state, detail := kind.Status(kinds, n.Observed())
		s.Resources = append(s.Resources, ResourceStatus{
			Resource: ID(step.Resource), CloudID: step.CloudID, State: r.stateOf(step, state), Detail: detail, Origin: step.Origin, Changes: changes(step),
		})
	}
	return s, nil
}

// stateOf returns the state of a resource, by its step in the plan and, in a plan to
// delete by tag, by the state that AWS reports.
func (r *run) stateOf(s graph.Step, reported string) string {
	switch {
	case r.behindAPIServer(s):
		return "unknown"
	case s.Action == graph.Remove && r.c.manifest == nil:
		return okOrPending(reported)
	}
	return stateByAction(s.Action)
}

// behindAPIServer reports whether a resource is in the cluster and cannot be read,
// because the API server does not answer.
func (r *run) behindAPIServer(s graph.Step) bool {
	n, server := r.built.Resource(s.Resource), r.built.Resource("api-server")
	if server == nil || n == server || s.CloudID != "" || n.Role() != graph.RoleInstalled && n.Role() != graph.RoleExpected {
		return false
	}
	have, seen := server.Observed().(*incluster.APIServerState)
	return seen && !have.Answers()
}

// lookByManifest reads the state of the resources of the manifest.
func (r *run) lookByManifest(ctx context.Context, s *Status) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	s.Version, s.Endpoint = r.c.manifest.Version, known(r.built.Endpoint.String())
	return nil
}

// lookByTag reads the state of the resources with the tag of the cluster.
func (r *run) lookByTag(ctx context.Context, s *Status) (err error) {
	if err := r.lookToDelete(ctx); err != nil {
		return err
	}
	slices.Reverse(r.plan.Steps)
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	if s.Endpoint, err = elb.TaggedEndpoint(ctx, r.cloud); err != nil || s.Endpoint != "" {
		return err
	}
	if e, err := eks.Tagged(ctx, r.cloud); err == nil && e != nil { // without the permission there is none to show
		s.Endpoint, s.Version = strings.TrimPrefix(e.Endpoint, "https://"), e.Version
	}
	return nil
}

func known(endpoint string) string {
	if strings.HasPrefix(endpoint, graph.Unknown) {
		return ""
	}
	return endpoint
}

// changes returns the differences of a resource that exists.
func changes(s graph.Step) Diff {
	if s.Action == graph.Create {
		return nil
	}
	return diffOf(s.Diff)
}

func stateByAction(a graph.Action) string {
	switch a {
	case graph.Create:
		return "missing"
	case graph.Update:
		return "differs"
	case graph.Settle, graph.Await:
		return "pending"
	case graph.Conflict:
		return "conflict"
	case graph.Existing:
		return "existing"
	case graph.Remove:
		return "extra"
	case graph.Keep, graph.Leave:
	}
	return "ok"
}

func okOrPending(state string) string {
	if state == "" || state == "running" || state == "available" || state == "active" {
		return "ok"
	}
	return "pending"
}

// KubeconfigOptions say how kubectl gets tokens for an EKS cluster. Other clusters
// ignore them.
type KubeconfigOptions struct {
	Profile string // of the AWS configuration that tokens are made with; "" for that of the environment
	Method  string // clusterawsadm, aws-cli or iam-authenticator: the program that makes the tokens
}

// Kubeconfig returns the kubeconfig of an administrator. That of a self-managed
// cluster is made with the key of the cluster CA, which is in the account. That of an
// EKS cluster has no secret.
func (c *Cluster) Kubeconfig(ctx context.Context, o KubeconfigOptions) ([]byte, error) {
	data, err := c.kubeconfig(ctx, o)
	return data, public(err)
}

func (c *Cluster) kubeconfig(ctx context.Context, o KubeconfigOptions) ([]byte, error) {
	r := c.begin(Options{})
	if c.manifest != nil && c.manifest.EKS != nil {
		s, err := eks.ClusterByName(cloud.ReadOnly(ctx), r.cloud, c.manifest.EKS.ControlPlane.Spec.EKSClusterName)
		if err == nil && s == nil {
			err = fmt.Errorf("EKS cluster %s does not exist in %s: create it first", c.manifest.EKS.ControlPlane.Spec.EKSClusterName, c.Region)
		}
		if err != nil {
			return nil, refuseIdentity(err)
		}
		return c.eksKubeconfig(s, o)
	}
	keys, err := secrets.StoredPKI(cloud.ReadOnly(ctx), r.cloud)
	if err != nil {
		return nil, refuseIdentity(fmt.Errorf("read the keys of the cluster: %w", err))
	}
	if keys == nil {
		if s, err := eks.Tagged(cloud.ReadOnly(ctx), r.cloud); s != nil && err == nil && c.manifest == nil {
			return c.eksKubeconfig(s, o)
		}
		return nil, fmt.Errorf("the account has no keys of cluster %s in %s: create the cluster first", c.Name, c.Region)
	}
	endpoint, err := r.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	return boot.Kubeconfig(c.Name, endpoint, keys, r.cloud.Clock.Now())
}

// eksKubeconfig makes a kubeconfig whose tokens a program makes, in the role
// of the manifest's identity if it has one.
func (c *Cluster) eksKubeconfig(s *eks.ClusterState, o KubeconfigOptions) ([]byte, error) {
	if s.Endpoint == "" {
		return nil, fmt.Errorf("EKS cluster %s is %s and has no endpoint yet", s.Name, strings.ToLower(s.Status))
	}
	ca, err := base64.StdEncoding.DecodeString(s.CA)
	if err != nil {
		return nil, fmt.Errorf("certificate of EKS cluster %s: %w", s.Name, err)
	}
	k := pkgeks.Kubeconfig{
		Cluster: s.Name, Endpoint: s.Endpoint, CA: ca, Region: c.Region, Profile: o.Profile, Method: ekscontrolplanev1.EKSTokenMethod(o.Method),
	}
	if c.manifest != nil {
		for _, id := range c.manifest.Identity {
			if id.Role != nil {
				k.Role = id.Role.RoleArn
			}
		}
	}
	return k.Encode()
}

// endpoint returns the address of the API server, from the manifest or from the load
// balancer with the tag of the cluster.
func (r *run) endpoint(ctx context.Context) (string, error) {
	if r.c.manifest != nil {
		if err := r.look(ctx); err != nil {
			return "", err
		}
		if e := known(r.built.Endpoint.String()); e != "" {
			return e, nil
		}
	} else if e, err := elb.TaggedEndpoint(cloud.ReadOnly(ctx), r.cloud); e != "" || err != nil {
		return e, err
	}
	return "", fmt.Errorf("cluster %s has no load balancer in %s yet", r.c.Name, r.c.Region)
}

// List finds the clusters of the region of the target by their tags.
func List(ctx context.Context, t Target) ([]ClusterSummary, error) {
	c := cloud.New(t.Config, "", t.options())
	all, err := teardown.Clusters(cloud.ReadOnly(ctx), c)
	if err != nil {
		return nil, err
	}
	var out []ClusterSummary
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, ClusterSummary{Name: name, Region: t.Config.Region, Kinds: all[name]})
	}
	return out, nil
}
