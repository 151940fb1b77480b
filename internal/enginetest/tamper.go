package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Plane returns the only EKS control plane.
func Plane(s *awssim.State) *awssim.EKSCluster {
	for _, c := range s.EKS.Clusters {
		return c
	}
	return nil
}

// NodeGroup returns a node group of the simulated EKS.
func NodeGroup(s *awssim.State, arn string) *awssim.EKSNodeGroup {
	for _, g := range Plane(s).NodeGroups {
		if g.ARN == arn {
			return g
		}
	}
	return nil
}

// Addon returns an add-on of the simulated EKS.
func Addon(s *awssim.State, arn string) *awssim.EKSAddon {
	for _, a := range Plane(s).Addons {
		if a.ARN == arn {
			return a
		}
	}
	return nil
}

// AccessEntry returns the entry with the ARN, or the one that was created in its place:
// the end of an ARN is random.
func AccessEntry(s *awssim.State, arn string) *awssim.EKSAccess {
	for _, e := range Plane(s).Access {
		if e.ARN[:strings.LastIndex(e.ARN, "/")] == arn[:strings.LastIndex(arn, "/")] {
			return e
		}
	}
	return nil
}

// PodIdentity returns the association with the ARN.
func PodIdentity(s *awssim.State, arn string) *awssim.EKSPodIdentity {
	return Plane(s).PodIdentities[arn[strings.LastIndex(arn, "/")+1:]]
}

// FargateProfile returns a Fargate profile of the simulated EKS.
func FargateProfile(s *awssim.State, arn string) *awssim.EKSFargate {
	for _, f := range Plane(s).Fargate {
		if f.ARN == arn {
			return f
		}
	}
	return nil
}

// IAMRole returns a role of the simulated IAM.
func IAMRole(s *awssim.State, arn string) *awssim.Role {
	return s.IAM.Roles[arn[strings.LastIndex(arn, "/")+1:]]
}

// EKSTagsOf returns the tags of a resource that only clusters of EKS have, by its ARN.
func EKSTagsOf(s *awssim.State, arn string) map[string]string {
	c := Plane(s)
	if q := s.SQS.Queues[arn[strings.LastIndex(arn, ":")+1:]]; q != nil && strings.HasPrefix(arn, "arn:aws:sqs:") {
		return q.Tags
	}
	if r := s.EventBridge.Rules[arn[strings.LastIndex(arn, "/")+1:]]; r != nil && strings.HasPrefix(arn, "arn:aws:events:") {
		return r.Tags
	}
	switch {
	case c.ARN == arn:
		return c.Tags
	case NodeGroup(s, arn) != nil:
		return NodeGroup(s, arn).Tags
	case Addon(s, arn) != nil:
		return Addon(s, arn).Tags
	case AccessEntry(s, arn) != nil:
		return AccessEntry(s, arn).Tags
	case FargateProfile(s, arn) != nil:
		return FargateProfile(s, arn).Tags
	case PodIdentity(s, arn) != nil:
		return PodIdentity(s, arn).Tags
	}
	if p := s.IAM.Providers[arn]; p != nil {
		return p.Tags
	}
	if r := IAMRole(s, arn); r != nil {
		return r.Tags
	}
	return nil
}

// Content is the data of the latest version of a launch template.
func Content(s *awssim.State, id string) *types.RequestLaunchTemplateData {
	t := s.EC2.LaunchTemplates[id]
	return &t.Versions[fmt.Sprint(t.Last)].Data
}

// TagsOf returns the tags of a resource of any kind.
func TagsOf(s *awssim.State, id string) map[string]string {
	if tags := s.EC2.Tags(id); tags != nil {
		return tags
	}
	if b := s.S3.Buckets[id]; b != nil {
		return b.Tags
	}
	if c := s.ELB.Classic[id]; c != nil {
		return c.Tags
	}
	if b := s.ELB.LoadBalancers[id]; b != nil {
		return b.Tags
	}
	if g := s.ELB.TargetGroups[id]; g != nil {
		return g.Tags
	}
	return s.ELB.Listeners[id].Tags
}

// RequireRefused requires that a difference is a conflict, and that an apply stops before
// its first write.
func RequireRefused(t *testing.T, m *manifest.Cluster, a *awssim.AWS, node plan.ID, field string) {
	t.Helper()
	calls := len(a.Calls())
	p, err := Open(m, a.Process()).Plan(t.Context())
	require.ErrorAs(t, err, new(*plan.RefusedError), "%s: %s", node, field)
	at := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Resource == node })
	require.Equal(t, plan.Conflict, p.Steps[at].Action, "%s: %s", node, field)
	require.True(t, p.Steps[at].Diff.Has(field), "%s: %s", node, field)
	_, err = Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
	require.ErrorAs(t, err, new(*plan.RefusedError), "%s: %s", node, field)
	require.NotErrorAs(t, err, new(*plan.HalfwayError))
	require.ErrorContains(t, err, field)
	require.Empty(t, Writes(Since(a, calls)))
}
