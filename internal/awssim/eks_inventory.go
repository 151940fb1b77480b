package awssim

import (
	"fmt"
	"strings"
)

// inventory lists what hangs on a cluster, beside add-ons and pod identities.
func (c *EKSCluster) inventory() (lines []string) {
	for _, g := range byKey(c.NodeGroups) {
		line := "EKSNodeGroup " + c.Name + "/" + g.Name
		if !g.Deleted.IsZero() {
			line += " DELETING"
		}
		lines = append(lines, line)
	}
	for _, f := range byKey(c.Fargate) {
		lines = append(lines, "EKSFargateProfile "+c.Name+"/"+f.Name)
	}
	for _, e := range byKey(c.Access) {
		lines = append(lines, "EKSAccessEntry "+c.Name+"/"+e.Principal)
	}
	for _, p := range byKey(c.Providers) {
		lines = append(lines, "EKSIdentityProvider "+c.Name+"/"+p.Name)
	}
	return lines
}

// detailedNodes is inventory with what the things are like.
func (a *AWS) detailedNodes(c *EKSCluster) (lines []string) {
	for _, g := range byKey(c.NodeGroups) {
		lines = append(lines, lineOf("EKSNodeGroup "+c.Name+"/"+g.Name, "version", g.Version, "kind", g.Kind, "capacity", g.Capacity, "role", g.RoleARN,
			"types", strings.Join(g.InstanceTypes, ","), "subnets", a.allCalled(g.Subnets), "size", fmt.Sprintf("%d..%d..%d", g.Least, g.Desired, g.Most),
			"labels", flat(g.Labels), "taints", fmt.Sprint(g.Taints), "tags", flat(g.Tags)))
	}
	for _, f := range byKey(c.Fargate) {
		lines = append(lines, lineOf("EKSFargateProfile "+c.Name+"/"+f.Name, "role", f.RoleARN, "subnets", a.allCalled(f.Subnets),
			"selectors", fmt.Sprint(f.Selectors), "tags", flat(f.Tags)))
	}
	for _, e := range byKey(c.Access) {
		line := lineOf("EKSAccessEntry "+c.Name+"/"+e.Principal, "type", e.Type, "user", e.User, "groups", strings.Join(e.Groups, ","), "tags", flat(e.Tags))
		for _, p := range e.Policies {
			line += " policy=" + p.ARN + "@" + strings.Join(p.Namespaces, ",")
		}
		lines = append(lines, line)
	}
	for _, p := range byKey(c.Providers) {
		lines = append(lines, lineOf("EKSIdentityProvider "+c.Name+"/"+p.Name, "issuer", p.Issuer, "client", p.Client, "tags", flat(p.Tags)))
	}
	return lines
}
