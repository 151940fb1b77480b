package permission

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Need is an action that a plan needs.
type Need struct {
	Action   string
	Resource string // ARN of what it acts on, or one with a made-up name; "*" for any
	PassedTo string // with iam:PassRole: the service that gets the role
	Sid      string // the statement of the policy that allows it
	Step     plan.Step
	Maybe    bool // it depends on what the run finds
}

// Needs lists the actions that a plan needs in an account, each with the first step that needs
// it. Not among them: iam:PassRole, because the plan does not contain the roles;
// iam:CreateServiceLinkedRole, which only the first resource of its type in an account needs;
// and the actions on KMS keys, which the policy of a key may allow, too.
func Needs(g *graph.Graph, p plan.Plan, d Document, in Place) (out []Need) {
	kinds := map[string]*kind.Kind{}
	for _, k := range aws.Kinds() {
		kinds[k.Name] = k
	}
	for _, s := range p.Steps {
		name, desired := s.Resource.Kind(), g.Resource(s.Resource).Desired()
		if name == ec2.BastionKind {
			name = ec2.MachineKind // a bastion is a machine that a cluster has beside its own
		}
		of := []*kind.Kind{kinds[name]}
		if stores, ok := desired.(ec2.Storer); ok && s.Action == plan.Create {
			of = append(of, kinds[stores.StoredAs()])
		}
		if name == autoscaling.GroupKind || name == eks.NodeGroupKind {
			of = append(of, kinds[autoscaling.HookKind])
		}
		if n, ok := desired.(*eks.NodeGroup); ok && len(n.NodeTags)+len(n.FormerNodeTags) > 0 {
			of = append(of, kinds[autoscaling.NodeTagsKind])
		}
		for _, k := range of {
			if k == nil {
				continue // a resource in the cluster
			}
			for _, n := range needsOf(k, s) {
				if n.Resource, n.Sid = d.resource(n.Action, k, in); n.Sid != "" { // else no cluster like this one needs it
					out = add(out, n)
				}
			}
		}
	}
	return out
}

// add adds a need unless it is known.
func add(all []Need, n Need) []Need {
	at := slices.IndexFunc(all, func(x Need) bool { return x.Action == n.Action && x.Resource == n.Resource })
	switch {
	case at < 0:
		return append(all, n)
	case all[at].Maybe && !n.Maybe:
		all[at] = n
	}
	return all
}

// needsOf lists the actions of one step.
func needsOf(k *kind.Kind, s plan.Step) (out []Need) {
	if s.Action != plan.Create && s.Action != plan.Update && s.Action != plan.Remove {
		return nil
	}
	if s.Action == plan.Create {
		for _, action := range k.ReadActions {
			out = append(out, Need{Action: action, Step: s})
		}
	}
	for _, action := range k.Actions {
		if k.Name == s3.BucketKind && k.Name != s.Resource.Kind() && action != "s3:PutObject" { // a machine puts its boot data into it
			continue
		}
		if sure, maybe := needed(k, s, action); sure || maybe {
			out = append(out, Need{Action: action, Step: s, Maybe: maybe})
		}
	}
	for i, n := range out {
		out[i].Maybe = n.Maybe || depends(k, n)
	}
	return out
}

// removesTags reports whether an action removes tags.
func removesTags(action string) bool {
	_, name, _ := strings.Cut(action, ":")
	return strings.HasPrefix(name, "Untag") || name == "DeleteTags" || name == "RemoveTags"
}

// untagged reports whether a step removes tags.
func untagged(s plan.Step) bool {
	return len(s.Diff.Untagged()) > 0 || slices.ContainsFunc(s.Diff, func(c plan.Change) bool { return autoscaling.IsNodeTag(c) && c.Want == "" })
}

// needed reports whether a step of a kind needs an action of that use: for sure, or depending
// on what differs.
func needed(k *kind.Kind, s plan.Step, action string) (sure, maybe bool) {
	if removesTags(action) && k.Name != ec2.SubnetTagsKind {
		return untagged(s), false
	}
	u := useOf(action)
	switch s.Action {
	case plan.Create:
		return u == makes || u == sets, u == changes || k.Name == ec2.DefaultGroupKind
	case plan.Remove:
		return u == unmakes, u == undoes
	case plan.Update:
		return false, u == sets || u == changes || u == undoes
	case plan.Keep, plan.Existing, plan.Settle, plan.Conflict, plan.Leave, plan.Await:
	}
	return false, false
}

// depends reports whether not every new resource of a kind needs an action.
func depends(k *kind.Kind, n Need) bool {
	switch {
	case k.Name == autoscaling.HookKind, strings.Contains(n.Action, ":List"), slices.Contains(sometimes(), n.Action):
		return true
	case n.Action == "ec2:AuthorizeSecurityGroupIngress": // a group without rules
		return len(n.Step.Diff) == 0
	}
	return k.Name != n.Step.Resource.Kind() && strings.Contains(n.Action, ":Describe") // it is in the state of the resource
}

// use says for what a step calls an action.
type use int

const (
	makes   use = iota // creates a resource
	sets               // completes a new resource, or changes one
	changes            // changes one, and completes some new ones
	undoes             // takes back a change, also before a resource is deleted
	unmakes            // deletes it
)

// useOf returns the use of an action, by its first words.
func useOf(action string) use {
	_, name, _ := strings.Cut(action, ":")
	begins := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(name, w) })
	}
	switch {
	case begins("DeleteTags", "DeleteParameters", "DeleteObject", "DeleteLaunchTemplateVersions", "Detach", "Disassociate", "Deregister", "Revoke"):
		return undoes
	case begins("Delete", "Terminate", "Release"):
		return unmakes
	case begins("CreateTags", "CreateOrUpdateTags", "AddTags", "Tag", "Put", "Attach", "Authorize", "Register"):
		return sets
	case name == "CreateRoute", name == "CreateLaunchTemplateVersion":
		return changes
	case begins("Create", "Run", "Allocate"):
		return makes
	}
	return changes
}

// sometimes lists the actions that only some new resources of a kind need.
func sometimes() []string {
	return []string{
		"autoscaling:DescribeInstanceRefreshes", "autoscaling:DescribeScalingActivities", "eks:DescribeUpdate", "eks:ListUpdates", // while it is changed, or fails
		"eks:DescribeInsight", "eks:ListInsights", // before an upgrade
		"eks:DescribeAddonConfiguration",                                        // for a configuration
		"eks:DescribePodIdentityAssociation", "eks:ListPodIdentityAssociations", // with their agent
		"ec2:DescribeAccountAttributes",                    // for the first load balancer of an account
		"elasticloadbalancing:AttachLoadBalancerToSubnets", // when they change
		"ssm:DescribeParameters",                           // for the keys of the cluster only with --kms-key
		"iam:GetRolePolicy", "iam:PutRolePolicy",           // for the controller of Karpenter
		"iam:PutRolePermissionsBoundary", // when that of an existing role changes
		"secretsmanager:PutSecretValue",  // when the boot data is stored again
	}
}

// resource returns what an action of a kind acts on, and the statement that allows it.
func (d Document) resource(action string, k *kind.Kind, in Place) (arn, sid string) {
	service, name, _ := strings.Cut(action, ":")
	for _, s := range d.Statement {
		if !slices.Contains(s.Action, action) {
			continue
		}
		for _, pattern := range s.Resource {
			switch {
			case pattern == "*":
				return pattern, s.Sid
			case service == "ssm" && strings.Contains(pattern, keptParameters) == (k.Name == secrets.BootstrapParametersKind):
			case service != "s3", strings.Contains(name, "Object") == strings.HasSuffix(pattern, "/*"):
				return in.example(pattern), s.Sid
			}
		}
	}
	return "*", ""
}

// Place names the account in which a plan is carried out.
type Place struct {
	Partition  string // "aws"
	Account    string // ID
	Parameters string // path of the cluster's parameters: "/clusterawsadm/demo/"
}

// example returns an ARN that a pattern matches.
func (p Place) example(pattern string) string {
	of := strings.SplitN(pattern, ":", 6)
	if of[4] == "*" {
		of[4] = p.Account
	}
	of[5] = strings.Replace(of[5], "parameter/clusterawsadm/", "parameter"+p.Parameters, 1)
	of[5] = strings.ReplaceAll(strings.Replace(of[5], "role/*", "role/", 1), "*", "example")
	return strings.Join(of, ":")
}
