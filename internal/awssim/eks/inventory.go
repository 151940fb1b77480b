package eks

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// inventory lists the parts of a cluster except for add-ons and pod identities.
func (c *Cluster) inventory() (lines []string) {
	for _, g := range core.ByKey(c.NodeGroups) {
		line := "EKSNodeGroup " + c.Name + "/" + g.Name
		if !g.Deleted.IsZero() {
			line += " DELETING"
		}
		lines = append(lines, line)
	}
	for _, f := range core.ByKey(c.Fargate) {
		lines = append(lines, "EKSFargateProfile "+c.Name+"/"+f.Name)
	}
	for _, e := range core.ByKey(c.Access) {
		lines = append(lines, "EKSAccessEntry "+c.Name+"/"+e.Principal)
	}
	for _, p := range core.ByKey(c.Providers) {
		lines = append(lines, "EKSIdentityProvider "+c.Name+"/"+p.Name)
	}
	return lines
}

// detailedNodes is inventory with attributes.
func (svc *Service) detailedNodes(c *Cluster) (lines []string) {
	for _, g := range core.ByKey(c.NodeGroups) {
		lines = append(lines, core.LineOf("EKSNodeGroup "+c.Name+"/"+g.Name, "version", g.Version, "kind", g.Kind, "capacity", g.Capacity, "role", g.RoleARN,
			"types", strings.Join(g.InstanceTypes, ","), "subnets", svc.ec2.Labels(g.Subnets), "size", fmt.Sprintf("%d..%d..%d", g.Least, g.Desired, g.Most),
			"labels", core.Flat(g.Labels), "taints", fmt.Sprint(g.Taints), "tags", core.Flat(g.Tags)))
	}
	for _, f := range core.ByKey(c.Fargate) {
		lines = append(lines, core.LineOf("EKSFargateProfile "+c.Name+"/"+f.Name, "role", f.RoleARN, "subnets", svc.ec2.Labels(f.Subnets),
			"selectors", fmt.Sprint(f.Selectors), "tags", core.Flat(f.Tags)))
	}
	for _, e := range core.ByKey(c.Access) {
		line := core.LineOf(
			"EKSAccessEntry "+c.Name+"/"+e.Principal,
			"type",
			e.Type,
			"user",
			e.User,
			"groups",
			strings.Join(e.Groups, ","),
			"tags",
			core.Flat(e.Tags),
		)
		for _, p := range e.Policies {
			line += " policy=" + p.ARN + "@" + strings.Join(p.Namespaces, ",")
		}
		lines = append(lines, line)
	}
	for _, p := range core.ByKey(c.Providers) {
		lines = append(lines, core.LineOf("EKSIdentityProvider "+c.Name+"/"+p.Name, "issuer", p.Issuer, "client", p.Client, "tags", core.Flat(p.Tags)))
	}
	return lines
}
