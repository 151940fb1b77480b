package permission

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
)

// Lack is a need that IAM does not allow.
type Lack struct {
	Need
	Why Reason
	// Missing are condition keys with unknown values, on which the answer depends.
	Missing []string
}

// Reason says why IAM does not allow something.
type Reason string

// The reasons.
const (
	NotAllowed Reason = "no policy allows it"
	Denies     Reason = "a policy denies it"
	Boundary   Reason = "the permissions boundary does not allow it"
	Control    Reason = "a service control policy of the organization does not allow it"
)

// checking is how long a simulation may take.
const checking = 20 * time.Second

// Check asks IAM which of the needs a user or a role lacks. Usually it makes two calls: one for
// the needs of all resources, and one for those of specific resources.
func Check(ctx context.Context, c *cloud.Clients, principal string, in Place, needs []Need) ([]Lack, error) {
	ctx, cancel := c.Clock.WithTimeout(ctx, checking, errors.New("IAM has not answered in time"))
	defer cancel()
	found := map[iam.Simulated]iam.Decision{}
	ask := func(s iam.Simulation) (map[iam.Simulated]iam.Decision, error) {
		s.Principal, s.Context["aws:RequestedRegion"] = principal, c.Region
		return s.Run(ctx, c)
	}
	for _, s := range simulations(needs) {
		answer, err := ask(s)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, answer)
	}
	again := iam.Simulation{Context: map[string]string{}, Resources: in.examples(c)}
	for _, l := range lacks(needs, found) {
		if l.Resource == "*" {
			again.Actions = append(again.Actions, l.Action)
		}
	}
	if len(again.Actions) > 0 { // policies may allow it on some resources
		answer, err := ask(again)
		if err != nil {
			return nil, err
		}
		for of, d := range answer {
			if d.Allowed {
				found[iam.Simulated{Action: of.Action, Resource: "*"}] = d
			}
		}
	}
	return lacks(needs, found), nil
}

// simulations returns one simulation for needs on any resource, one for those on some, and one
// more for each further service that roles are passed to: that is a condition of the whole call.
func simulations(needs []Need) (out []iam.Simulation) {
	service := ""
	for _, n := range needs {
		service = cmp.Or(service, n.PassedTo)
	}
	var order []string
	of := map[string]iam.Simulation{}
	for _, n := range needs {
		key := n.Resource
		if key != "*" {
			key = "for " + cmp.Or(n.PassedTo, service)
		}
		s, known := of[key]
		if !known {
			order = append(order, key)
			s.Context = map[string]string{}
		}
		if passed := cmp.Or(n.PassedTo, service); n.Resource != "*" && passed != "" {
			s.Context["iam:PassedToService"] = passed
		}
		if !slices.Contains(s.Actions, n.Action) {
			s.Actions = append(s.Actions, n.Action)
		}
		if n.Resource != "*" && !slices.Contains(s.Resources, n.Resource) {
			s.Resources = append(s.Resources, n.Resource)
		}
		of[key] = s
	}
	for _, key := range order {
		out = append(out, of[key])
	}
	return out
}

// lacks lists the needs that are not allowed. What depends on conditions with unknown values is
// only maybe lacking.
func lacks(needs []Need, found map[iam.Simulated]iam.Decision) (out []Lack) {
	for _, n := range needs {
		d, answered := found[iam.Simulated{Action: n.Action, Resource: n.Resource}]
		if d.Allowed || !answered {
			continue
		}
		l := Lack{Need: n, Why: NotAllowed, Missing: d.Missing}
		switch {
		case d.Control:
			l.Why = Control
		case d.Boundary:
			l.Why = Boundary
		case d.Explicit:
			l.Why = Denies
		}
		l.Maybe = l.Maybe || len(d.Missing) > 0
		out = append(out, l)
	}
	return out
}

// Only returns the statements that allow what is lacking, and no more.
func (d Document) Only(lacking []Lack) Document {
	out := Document{Version: d.Version}
	for _, s := range d.Statement {
		s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(action string) bool {
			return !slices.ContainsFunc(lacking, func(l Lack) bool { return l.Sid == s.Sid && l.Action == action && l.Why == NotAllowed })
		})
		if len(s.Action) > 0 {
			out.Statement = append(out.Statement, s)
		}
	}
	return out
}

// examples lists ARNs of resources of a cluster, one of each type that policies may name.
func (p Place) examples(c *cloud.Clients) (arns []string) {
	add := func(service, resource string) {
		arns = append(arns, "arn:"+p.Partition+":"+service+":"+c.Region+":"+p.Account+":"+resource)
	}
	for _, k := range aws.Kinds() {
		if k.Type != "" && k.Name != "subnet-tags" {
			add("ec2", string(k.Type)+"/"+cmp.Or(k.IDPrefix, string(k.Type)+"-")+"0123456789abcdef0")
		}
	}
	for _, of := range []string{"cluster/%", "nodegroup/%/%/0", "addon/%/%/0", "fargateprofile/%/%/0", "access-entry/%/%", "podidentityassociation/%/%", "identityproviderconfig/%/oidc/%/0"} {
		add("eks", strings.ReplaceAll(of, "%", c.Cluster))
	}
	for _, of := range []string{"loadbalancer/%", "loadbalancer/net/%/0", "targetgroup/%/0", "listener/net/%/0/0"} {
		add("elasticloadbalancing", strings.ReplaceAll(of, "%", c.Cluster))
	}
	add("autoscaling", "autoScalingGroup:0:autoScalingGroupName/"+c.Cluster)
	return arns
}
