package eks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PodIdentity gives the pods with a service account the permissions of an IAM role ("EKS Pod
// Identity", EKS user guide). There can be one for each service account. EKS deletes it with the
// cluster.
type PodIdentity struct {
	Cluster                   *graph.Ref[ClusterState]
	Namespace, ServiceAccount string
	Role                      *graph.Ref[iam.RoleState]
	Adopt                     bool // it may be somebody else's: it gets the tags
	Tags                      cloud.Tags
}

// PodIdentityState is an EKS Pod Identity association, as AWS describes it.
type PodIdentityState struct {
	identity.Object                                    // the ID is its ARN
	Association                                 string // its ID in the cluster
	Cluster, Namespace, ServiceAccount, RoleARN string
	Owner                                       string // ARN of the add-on that owns it; "" for none
	Foreign                                     bool   // somebody else has made it
}

// IsOwned reports whether the cluster owns the association. One that belongs to an add-on is deleted with the add-on.
func (s PodIdentityState) IsOwned(c *cloud.Clients) bool {
	return s.Owner == "" && ownedByName(s.Object, c)
}

var _ graph.Managed[PodIdentityState] = (*PodIdentity)(nil)

// Needs implements graph.Desired.
func (p *PodIdentity) Needs() []graph.Edge {
	return append(graph.DeletedWith(p.Cluster), graph.On(p.Role)...)
}

// Find implements graph.Desired.
func (p *PodIdentity) Find(ctx context.Context, c *cloud.Clients) (*PodIdentityState, error) {
	cluster, ok := p.Cluster.Found()
	if !ok {
		return nil, nil
	}
	s, err := PodIdentityOf(ctx, c, cluster.Name, p.Namespace+"/"+p.ServiceAccount)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	have.Foreign = !have.IsOwned(c)
	return &have, nil
}

// Diff implements graph.Desired.
func (p *PodIdentity) Diff(have *PodIdentityState) (d plan.Diff) {
	if have.Owner != "" {
		d.Fixed("owner", have.Owner, "this cluster")
		d.Advise("the add-on owns the association of this service account: remove it from the annotation, or from the add-on")
		return d
	}
	if have.Foreign && !p.Adopt {
		return notOwned()
	}
	d.Set("role", have.RoleARN, p.Role.CloudID())
	d.Tags(have.Tags, p.Tags)
	return d
}

// Create implements graph.Creator.
func (p *PodIdentity) Create(ctx context.Context, c *cloud.Clients) (*PodIdentityState, error) {
	cluster, _ := p.Cluster.Found()
	out, err := c.EKS.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
		ClusterName: &cluster.Name, Namespace: &p.Namespace, ServiceAccount: &p.ServiceAccount, RoleArn: aws.String(p.Role.CloudID()), Tags: p.Tags,
		ClientRequestToken: c.Token("pod-identity", cluster.Name, p.Namespace, p.ServiceAccount, p.Role.CloudID()),
	})
	if err != nil {
		return nil, err
	}
	return podIdentityState(out.Association), nil
}

// Update implements graph.Updater.
func (p *PodIdentity) Update(ctx context.Context, c *cloud.Clients, have *PodIdentityState, d plan.Diff) (*PodIdentityState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = changeTags(ctx, c, have.Object, p.Tags, d)
		after.Foreign = false
		return &after, err
	}
	after.RoleARN = p.Role.CloudID()
	_, err := c.EKS.UpdatePodIdentityAssociation(ctx, &eks.UpdatePodIdentityAssociationInput{
		ClusterName: &have.Cluster, AssociationId: &have.Association, RoleArn: &after.RoleARN,
	})
	return &after, err
}

// Delete implements graph.Deleter.
func (p *PodIdentity) Delete(ctx context.Context, c *cloud.Clients, have *PodIdentityState) error {
	_, err := c.EKS.DeletePodIdentityAssociation(ctx, &eks.DeletePodIdentityAssociationInput{
		ClusterName: &have.Cluster, AssociationId: &have.Association,
	})
	return err
}

// PodIdentityAgent is the add-on that gives pods the credentials of their associations.
const PodIdentityAgent = "eks-pod-identity-agent"

// PodIdentityKind is the kind of pod identity associations.
const PodIdentityKind = "pod-identity"

// podIdentityKind declares pod identity associations.
func podIdentityKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: PodIdentityKind, Rehearsed: true, Area: plan.AreaSecurity, Statement: kind.EKS,
		ReadActions: []string{"eks:DescribePodIdentityAssociation", "eks:ListPodIdentityAssociations"},
		Actions: []string{
			"eks:CreatePodIdentityAssociation", "eks:DeletePodIdentityAssociation", "eks:TagResource", "eks:UntagResource", "eks:UpdatePodIdentityAssociation",
		},
	}, kind.Functions[PodIdentityState]{})
}

// PodIdentityOf returns the association of a service account, "NAMESPACE/NAME"; nil if there is none.
func PodIdentityOf(ctx context.Context, c *cloud.Clients, cluster, account string) (*PodIdentityState, error) {
	all, err := podIdentities(ctx, c, cluster)
	id, ok := all[account]
	if !ok || err != nil {
		return nil, err
	}
	return podIdentity(ctx, c, cluster, id)
}

// podIdentity returns the association with an ID; nil if there is none.
func podIdentity(ctx context.Context, c *cloud.Clients, cluster, id string) (*PodIdentityState, error) {
	return cloud.Remember(ctx, c, "pod identity association "+id, func(ctx context.Context) (*PodIdentityState, error) {
		out, err := c.EKS.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: &cluster, AssociationId: &id})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		return podIdentityState(out.Association), nil
	})
}

// podIdentities lists the associations of a cluster: their IDs by "NAMESPACE/SERVICEACCOUNT".
func podIdentities(ctx context.Context, c *cloud.Clients, cluster string) (map[string]string, error) {
	return cloud.Remember(ctx, c, "pod identity associations", func(ctx context.Context) (map[string]string, error) {
		p := eks.NewListPodIdentityAssociationsPaginator(c.EKS, &eks.ListPodIdentityAssociationsInput{ClusterName: &cluster})
		all, err := cloud.Pages(ctx, p, func(o *eks.ListPodIdentityAssociationsOutput) []types.PodIdentityAssociationSummary {
			return o.Associations
		})
		ids := map[string]string{}
		for _, a := range all {
			ids[aws.ToString(a.Namespace)+"/"+aws.ToString(a.ServiceAccount)] = aws.ToString(a.AssociationId)
		}
		return ids, cloud.IgnoreNotFound(err)
	})
}

// podIdentityAccounts lists the service accounts with an association. Without the permission to
// list associations, there can be none that the cluster owns.
func podIdentityAccounts(ctx context.Context, c *cloud.Clients, cluster string) (accounts []string, err error) {
	all, err := podIdentities(ctx, c, cluster)
	for account := range all {
		accounts = append(accounts, account)
	}
	if cloud.Denied(err) {
		err = nil
	}
	return accounts, err
}

func podIdentityState(x *types.PodIdentityAssociation) *PodIdentityState {
	return &PodIdentityState{
		Object:      identity.Object{ID: aws.ToString(x.AssociationArn), Tags: x.Tags},
		Association: aws.ToString(x.AssociationId), Cluster: aws.ToString(x.ClusterName), Namespace: aws.ToString(x.Namespace),
		ServiceAccount: aws.ToString(x.ServiceAccount), RoleARN: aws.ToString(x.RoleArn), Owner: aws.ToString(x.OwnerArn),
	}
}

// Account returns the service account: "kube-system/aws-node".
func (s PodIdentityState) Account() string {
	return s.Namespace + "/" + s.ServiceAccount
}
