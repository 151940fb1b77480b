package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// warnOfNodeClasses warns of node classes in the manifest with which Karpenter or EKS Auto Mode would make no node: those whose
// selectors match nothing that the run makes or that exists, and those whose role does not exist. Sources:
// https://karpenter.sh/docs/concepts/nodeclasses, and "Create a Node Class for Amazon EKS" in the EKS user guide.
func (p *planning) warnOfNodeClasses(ctx context.Context) {
	if !p.Cluster.IsEKS() {
		return
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	for _, set := range p.Cluster.Manifest.ResourceSets {
		for _, d := range set.Documents {
			switch d.Group() + "/" + d.Kind() {
			case "karpenter.k8s.aws/EC2NodeClass", "eks.amazonaws.com/NodeClass":
				p.checkNodeClass(ctx, d)
			}
		}
	}
}

func (p *planning) checkNodeClass(ctx context.Context, d *manifest.Document) {
	spec, _ := d.Object["spec"].(map[string]any)
	warn := func(field, what, fix string) {
		at := d.At
		at.What, at.Fix = fmt.Sprintf("spec.%s of the %s %s %s, so that it makes no node", field, d.Kind(), d.Metadata("name"), what), fix
		p.Warn("%s", at)
	}
	for _, x := range []struct {
		field, what string
		kind        string
		exists      func(context.Context, []types.Filter) (bool, error)
	}{
		{"subnetSelectorTerms", "subnet", ec2.SubnetKind, p.subnetExists},
		{"securityGroupSelectorTerms", "security group", ec2.SecurityGroupKind, p.groupExists},
	} {
		terms, _ := spec[x.field].([]any)
		if len(terms) == 0 || slices.ContainsFunc(terms, func(t any) bool { return p.isMade(x.kind, t) }) {
			continue
		}
		found, err := anyExists(ctx, terms, x.exists)
		if err == nil && !found {
			warn(x.field, "match no "+x.what+" that this run makes or that exists", "correct the tags, or set them with the tags of the "+x.what+" in the manifest")
		}
	}
	role, _ := spec["role"].(string)
	if role == "" || p.Built.Resource(plan.ID("role/"+role)) != nil || p.Cluster.Manifest.EKS.HasKarpenter() { // of the annotation, validation tells
		return
	}
	if found, err := iam.GetRole(ctx, p.Cloud, role); err == nil && found == nil {
		warn("role", "is "+role+", which this run does not make and which does not exist", "create the role, or correct the name")
	}
}

// isMade reports whether a resource of the plan has the tags of a term. EKS makes the security group of the cluster
// ("View Amazon EKS security group requirements for clusters", EKS user guide).
func (p *planning) isMade(kind string, term any) bool {
	wanted := tagsOf(term)
	if len(wanted) == 0 {
		return false
	}
	name := p.Cluster.Manifest.EKS.ControlPlane.Spec.EKSClusterName
	var made []cloud.Tags
	if kind == ec2.SecurityGroupKind {
		made = append(made, cloud.Tags{"aws:eks:cluster-name": name, "kubernetes.io/cluster/" + name: "owned"})
	}
	for _, s := range p.Plan.Steps {
		if s.Resource.Kind() != kind {
			continue
		}
		switch r := p.Built.Graph.Resource(s.Resource).Desired().(type) {
		case *ec2.Subnet:
			made = append(made, r.Tags)
		case *ec2.SecurityGroup:
			made = append(made, r.Tags)
		}
	}
	return slices.ContainsFunc(made, func(tags cloud.Tags) bool {
		for key, value := range wanted {
			if has, is := tags[key]; !is || value != "*" && value != has {
				return false
			}
		}
		return true
	})
}

// tagsOf are the tags of a term.
func tagsOf(term any) map[string]string {
	of, _ := term.(map[string]any)
	tags, _ := of["tags"].(map[string]any)
	out := map[string]string{}
	for key, value := range tags {
		out[key] = fmt.Sprint(value)
	}
	return out
}

// anyExists asks AWS for what the terms match.
func anyExists(ctx context.Context, terms []any, exists func(context.Context, []types.Filter) (bool, error)) (bool, error) {
	for _, term := range terms {
		var filters []types.Filter
		tags := tagsOf(term)
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			if tags[key] == "*" {
				filters = append(filters, cloud.Filter("tag-key", key))
			} else {
				filters = append(filters, cloud.Filter("tag:"+key, tags[key]))
			}
		}
		of, _ := term.(map[string]any)
		if id, _ := of["id"].(string); strings.HasPrefix(id, "subnet-") {
			filters = append(filters, cloud.Filter("subnet-id", id))
		} else if id != "" {
			filters = append(filters, cloud.Filter("group-id", id))
		}
		if name, _ := of["name"].(string); name != "" {
			filters = append(filters, cloud.Filter("group-name", name))
		}
		if len(filters) == 0 {
			return true, nil // a term of another kind, which is not known here
		}
		if found, err := exists(ctx, filters); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (p *planning) subnetExists(ctx context.Context, filters []types.Filter) (bool, error) {
	out, err := p.Cloud.EC2.DescribeSubnets(ctx, &awsec2.DescribeSubnetsInput{Filters: filters})
	return err == nil && len(out.Subnets) > 0, err
}

func (p *planning) groupExists(ctx context.Context, filters []types.Filter) (bool, error) {
	out, err := p.Cloud.EC2.DescribeSecurityGroups(ctx, &awsec2.DescribeSecurityGroupsInput{Filters: filters})
	return err == nil && len(out.SecurityGroups) > 0, err
}
