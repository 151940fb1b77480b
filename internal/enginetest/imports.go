package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// GraphDifferences lists the resources and edges that only one of two graphs has, and the
// desired fields of the first one that the second one lacks. The second one may have more:
// values that AWS has chosen. The tags with the template are not compared.
func GraphDifferences(want, have *graph.Graph) (out []string) {
	w, h := edges(want), edges(have)
	for _, e := range Without(w, h) {
		out = append(out, "- "+e)
	}
	for _, e := range Without(h, w) {
		out = append(out, "+ "+e)
	}
	for _, r := range want.Resources() {
		other := have.Resource(r.ID())
		if other == nil {
			continue
		}
		fields := other.Wanted()
		for _, c := range r.Wanted() {
			if !slices.Contains(fields, c) && !strings.HasPrefix(c.Field, "tag clusterawsadm/template") && c.Field != "template" {
				out = append(out, fmt.Sprintf("%s: %s %s", r.ID(), c.Field, c.Want))
			}
		}
	}
	return out
}

// edges prints the edges of a graph.
func edges(g *graph.Graph) (out []string) {
	for _, r := range g.Resources() {
		out = append(out, string(r.ID()))
		for _, e := range r.Needs() {
			out = append(out, fmt.Sprintf("%s needs %s %t %t", r.ID(), e.Resource.ID(), e.Existing, e.Loose))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Strangers removes the tags of Cluster API and of this program from all resources of an account. They look then as if another tool had
// created them.
func Strangers(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, tags := range AllTags(s) {
			maps.DeleteFunc(tags, func(key, _ string) bool {
				return strings.HasPrefix(key, "sigs.k8s.io/") || strings.HasPrefix(key, "clusterawsadm/") || strings.HasPrefix(key, "kubernetes.io/cluster/")
			})
		}
	})
}

// AllTags lists the tags of every resource of an account except for those that are part
// of another one, such as the volumes of instances.
func AllTags(s *awssim.State) (all []map[string]string) {
	for id, tags := range s.EC2.AllTags() {
		if !strings.HasPrefix(id, "vol-") {
			all = append(all, tags)
		}
	}
	for _, id := range slices.Concat(ids(s.ELB.Classic), ids(s.ELB.LoadBalancers), ids(s.ELB.TargetGroups), ids(s.ELB.Listeners), ids(s.S3.Buckets)) {
		all = append(all, TagsOf(s, id))
	}
	for _, c := range s.EKS.Clusters {
		all = append(all, c.Tags)
		for _, g := range c.NodeGroups {
			all = append(all, g.Tags)
		}
		for _, x := range c.Addons {
			all = append(all, x.Tags)
		}
		for _, f := range c.Fargate {
			all = append(all, f.Tags)
		}
		for _, x := range c.Access {
			all = append(all, x.Tags)
		}
		for _, x := range c.Providers {
			all = append(all, x.Tags)
		}
	}
	for _, x := range s.IAM.Providers {
		all = append(all, x.Tags)
	}
	for _, r := range s.IAM.Roles {
		all = append(all, r.Tags)
	}
	return all
}

func ids[T any](m map[string]T) []string { return slices.Collect(maps.Keys(m)) }

// lot returns names as in Cluster API: five random characters.
type lot struct{ drawn int }

func (l *lot) draw() string {
	l.drawn++
	return fmt.Sprintf("x%04d", l.drawn)
}

// AsClusterAPI makes a cluster look as if Cluster API had created it. It removes the identity tags and the parameters of this program, and gives
// machines and target groups random names.
func AsClusterAPI(m *manifest.Cluster, s *awssim.State) {
	var names lot
	set := names.draw()
	for _, i := range s.EC2.Instances {
		name := ""
		switch node := i.Tags[cloud.ResourceTag]; {
		case m.ControlPlane != nil && strings.HasPrefix(node, "machine/"+m.ControlPlane.Object.Name+"/"):
			name = m.ControlPlane.Object.Name + "-" + names.draw()
		case strings.HasPrefix(node, "machine/"):
			name = strings.Split(node, "/")[1] + "-" + set + "-" + names.draw()
		}
		if name != "" {
			i.Tags["Name"], i.Tags["MachineName"] = name, m.Namespace+"/"+name
		}
	}
	for _, g := range s.ELB.TargetGroups {
		if g.Tags[cloud.ResourceTag] != "" {
			g.Name = g.Name[:strings.LastIndex(g.Name, "-")+1] + names.draw()
		}
	}
	for _, tags := range AllTags(s) {
		delete(tags, cloud.ResourceTag)
		delete(tags, cloud.TemplateTag)
		delete(tags, cloud.TemplateFieldsTag)
	}
	maps.DeleteFunc(s.SSM.Parameters, func(name string, _ *awssim.Parameter) bool { return strings.HasPrefix(name, "/clusterawsadm/") })
}

// SelfManagedNodes adds an Auto Scaling group of self-managed nodes to an EKS cluster, as eksctl and the template of EKS make it: with the tag
// that nodes need ("Create self-managed Amazon Linux nodes", EKS user guide), and without those of Cluster API.
func SelfManagedNodes(t *testing.T, a *awssim.AWS, name string, count int32) {
	t.Helper()
	var image, cluster, group string
	var subnets []string
	a.Edit(func(s *awssim.State) {
		c := Plane(s)
		cluster, group = c.Name, c.Group
		for _, g := range c.NodeGroups {
			subnets = g.Subnets
		}
		for _, i := range s.EC2.Instances {
			image = i.Image
		}
	})
	_, err := ec2.NewFromConfig(a.Config()).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: &image, InstanceType: ec2types.InstanceTypeT3Medium, SecurityGroupIds: []string{group},
		},
	})
	require.NoError(t, err)
	_, err = autoscaling.NewFromConfig(a.Config()).CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name, MinSize: &count, MaxSize: &count, DesiredCapacity: &count, VPCZoneIdentifier: aws.String(strings.Join(subnets, ",")),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: &name},
		Tags:           []types.Tag{{Key: aws.String(cloud.CloudProviderTagPrefix + cluster), Value: aws.String(cloud.Owned), PropagateAtLaunch: aws.Bool(true)}},
	})
	require.NoError(t, err)
	time.Sleep(5 * time.Minute)
}
