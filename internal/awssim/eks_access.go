package awssim

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSAccess is an access entry: what an IAM principal is in a cluster.
type EKSAccess struct {
	Principal, ARN, Type, User, Token string
	Groups                            []string
	Policies                          []EKSAccessPolicy
	Tags                              map[string]string
	Born, Modified                    time.Time
}

// EKSAccessPolicy is a policy of EKS's that an access entry has.
type EKSAccessPolicy struct {
	ARN        string
	Namespaces []string // none: the whole cluster
	Born       time.Time
}

func (a *AWS) simulateEKSAccess() {
	on(a, a.createAccessEntry, "ClusterName", "PrincipalArn", "KubernetesGroups", "Tags", "Type", "Username", "ClientRequestToken")
	on(a, a.describeAccessEntry, "ClusterName", "PrincipalArn")
	on(a, a.listAccessEntries, "ClusterName", "MaxResults", "NextToken")
	on(a, a.updateAccessEntry, "ClusterName", "PrincipalArn", "KubernetesGroups", "Username", "ClientRequestToken")
	on(a, a.deleteAccessEntry, "ClusterName", "PrincipalArn")
	on(a, a.associateAccessPolicy, "ClusterName", "PrincipalArn", "PolicyArn", "AccessScope")
	on(a, a.disassociateAccessPolicy, "ClusterName", "PrincipalArn", "PolicyArn")
	on(a, a.listAccessPolicies, "ClusterName", "PrincipalArn", "MaxResults", "NextToken")
}

// accessible returns the cluster of a name, if it takes access entries.
func (a *AWS) accessible(name *string) (*EKSCluster, error) {
	c, err := a.eksCluster(name)
	switch {
	case err != nil:
		return nil, err
	case c.status(a.now()) == types.ClusterStatusCreating || c.status(a.now()) == types.ClusterStatusDeleting:
		return a.activeEKSCluster(name)
	case c.Authentication == string(types.AuthenticationModeConfigMap):
		return nil, &types.InvalidRequestException{Message: aws.String("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."), ClusterName: name}
	}
	return c, nil
}

// accessEntry returns the entry that a call names.
func (a *AWS) accessEntry(cluster, principal *string) (*EKSCluster, *EKSAccess, error) {
	c, err := a.accessible(cluster)
	if err != nil {
		return nil, nil, err
	}
	e, ok := c.Access[aws.ToString(principal)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{Message: aws.String("The specified principalArn could not be found: " + aws.ToString(principal)), ClusterName: cluster}
	}
	return c, e, nil
}

func (a *AWS) createAccessEntry(in *eks.CreateAccessEntryInput) (*eks.CreateAccessEntryOutput, error) {
	c, err := a.accessible(in.ClusterName)
	if err != nil {
		return nil, err
	}
	e := &EKSAccess{
		Principal: aws.ToString(in.PrincipalArn), Type: first(aws.ToString(in.Type), "STANDARD"), User: aws.ToString(in.Username),
		Groups: slices.Clone(in.KubernetesGroups), Token: aws.ToString(in.ClientRequestToken), Born: a.now(), Modified: a.now(),
	}
	if old, ok := c.Access[e.Principal]; ok {
		if old.Token == e.Token {
			return &eks.CreateAccessEntryOutput{AccessEntry: a.accessOut(c, old)}, nil
		}
		return nil, busyEKS("The specified access entry resource is already in use on this cluster.")
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	if e.User == "" {
		e.User = e.Principal
		if e.Type != "STANDARD" {
			e.User, e.Groups = "system:node:{{EC2PrivateDNSName}}", []string{"system:nodes"}
		}
	}
	if e.Tags, err = eksTags(in.Tags); err != nil {
		return nil, err
	}
	kind, name, _ := strings.Cut(e.Principal[strings.LastIndex(e.Principal, ":")+1:], "/")
	e.ARN = a.regionalARN("eks", "access-entry/"+c.Name+"/"+kind+"/"+Account+"/"+name+"/"+a.hash()[:8])
	c.Access[e.Principal] = e
	return &eks.CreateAccessEntryOutput{AccessEntry: a.accessOut(c, e)}, nil
}

// letIn makes the access entry that EKS makes for the nodes it runs. That it
// stays when they go, and has no tags, is not verified.
func (a *AWS) letIn(c *EKSCluster, role, kind string) {
	if c.Authentication == string(types.AuthenticationModeConfigMap) || c.Access[role] != nil {
		return
	}
	c.Access[role] = &EKSAccess{
		Principal: role, Type: kind, User: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:nodes"}, Born: a.now(), Modified: a.now(),
		ARN: a.regionalARN("eks", "access-entry/"+c.Name+"/role/"+Account+"/"+role[strings.LastIndex(role, "/")+1:]+"/"+a.hash()[:8]),
	}
}

// check looks at what an entry is to be. Types for nodes have their user and
// groups from EKS.
func (e *EKSAccess) check() error {
	switch {
	case !regexp.MustCompile(`^arn:aws[a-z-]*:(iam::\d{12}:(role|user)/.+|sts::\d{12}:assumed-role/.+)$`).MatchString(e.Principal):
		return invalidEKS("The principalArn parameter format is not valid")
	case !slices.Contains([]string{"STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"}, e.Type):
		return invalidEKS("The access entry type %s is not valid", e.Type)
	case e.Type != "STANDARD" && (e.User != "" || len(e.Groups) > 0):
		return invalidEKS("userName and kubernetesGroups cannot be set for access entries of type %s", e.Type)
	}
	return e.checkNames(e.User, e.Groups)
}

func (e *EKSAccess) checkNames(user string, groups []string) error {
	for _, prefix := range []string{"system:", "eks:", "aws:", "amazon:", "iam:"} {
		if strings.HasPrefix(user, prefix) {
			return invalidEKS("The username must not begin with '%s'", prefix)
		}
		for _, g := range groups {
			if strings.HasPrefix(g, prefix) {
				return invalidEKS("The kubernetes group name %s is invalid, it cannot start with %s", g, prefix)
			}
		}
	}
	return nil
}

func (a *AWS) accessOut(c *EKSCluster, e *EKSAccess) *types.AccessEntry {
	return &types.AccessEntry{
		ClusterName: aws.String(c.Name), PrincipalArn: aws.String(e.Principal), AccessEntryArn: aws.String(e.ARN), Type: aws.String(e.Type),
		Username: aws.String(e.User), KubernetesGroups: slices.Clone(e.Groups), Tags: maps.Clone(e.Tags), CreatedAt: aws.Time(e.Born), ModifiedAt: aws.Time(e.Modified),
	}
}

func (a *AWS) describeAccessEntry(in *eks.DescribeAccessEntryInput) (*eks.DescribeAccessEntryOutput, error) {
	c, e, err := a.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeAccessEntryOutput{AccessEntry: a.accessOut(c, e)}, nil
}

func (a *AWS) listAccessEntries(in *eks.ListAccessEntriesInput) (*eks.ListAccessEntriesOutput, error) {
	c, err := a.accessible(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var arns []string
	for _, e := range byKey(c.Access) {
		if a.visible(e.Born) {
			arns = append(arns, e.Principal)
		}
	}
	part, next, err := eksPage(a, arns, in.NextToken, in.MaxResults)
	return &eks.ListAccessEntriesOutput{AccessEntries: part, NextToken: next}, err
}

func (a *AWS) updateAccessEntry(in *eks.UpdateAccessEntryInput) (*eks.UpdateAccessEntryOutput, error) {
	c, e, err := a.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	if e.Type != "STANDARD" {
		return nil, invalidEKS("access entries of type %s cannot be updated", e.Type)
	}
	if err := e.checkNames(aws.ToString(in.Username), in.KubernetesGroups); err != nil {
		return nil, err
	}
	set(&e.User, in.Username)
	if in.KubernetesGroups != nil {
		e.Groups = slices.Clone(in.KubernetesGroups)
	}
	e.Modified = a.now()
	return &eks.UpdateAccessEntryOutput{AccessEntry: a.accessOut(c, e)}, nil
}

func (a *AWS) deleteAccessEntry(in *eks.DeleteAccessEntryInput) (*eks.DeleteAccessEntryOutput, error) {
	c, e, err := a.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	delete(c.Access, e.Principal)
	return &eks.DeleteAccessEntryOutput{}, nil
}

func (a *AWS) associateAccessPolicy(in *eks.AssociateAccessPolicyInput) (*eks.AssociateAccessPolicyOutput, error) {
	c, e, err := a.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	scope := in.AccessScope
	switch {
	case e.Type != "STANDARD":
		return nil, invalidEKS("access policies cannot be associated with access entries of type %s", e.Type)
	case !regexp.MustCompile(`^arn:aws[a-z-]*:eks::aws:cluster-access-policy/AmazonEKS\w+$`).MatchString(aws.ToString(in.PolicyArn)):
		return nil, invalidEKS("The policyArn parameter format is not valid")
	case scope == nil || scope.Type != types.AccessScopeTypeCluster && scope.Type != types.AccessScopeTypeNamespace:
		return nil, invalidEKS("The access scope type is not valid")
	case (scope.Type == types.AccessScopeTypeNamespace) != (len(scope.Namespaces) > 0):
		return nil, invalidEKS("namespaces are required for the namespace scope, and only for it")
	}
	e.Policies = slices.DeleteFunc(e.Policies, func(p EKSAccessPolicy) bool { return p.ARN == *in.PolicyArn })
	e.Policies = append(e.Policies, EKSAccessPolicy{*in.PolicyArn, slices.Clone(scope.Namespaces), a.now()})
	shown := e.Policies[len(e.Policies)-1].out(a.now())
	return &eks.AssociateAccessPolicyOutput{ClusterName: &c.Name, PrincipalArn: &e.Principal, AssociatedAccessPolicy: &shown}, nil
}

func (p EKSAccessPolicy) out(now time.Time) types.AssociatedAccessPolicy {
	scope := &types.AccessScope{Type: types.AccessScopeTypeCluster}
	if len(p.Namespaces) > 0 {
		scope = &types.AccessScope{Type: types.AccessScopeTypeNamespace, Namespaces: slices.Clone(p.Namespaces)}
	}
	return types.AssociatedAccessPolicy{PolicyArn: aws.String(p.ARN), AccessScope: scope, AssociatedAt: aws.Time(p.Born), ModifiedAt: aws.Time(now)}
}

func (a *AWS) disassociateAccessPolicy(in *eks.DisassociateAccessPolicyInput) (*eks.DisassociateAccessPolicyOutput, error) {
	_, e, err := a.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	before := len(e.Policies)
	e.Policies = slices.DeleteFunc(e.Policies, func(p EKSAccessPolicy) bool { return p.ARN == aws.ToString(in.PolicyArn) })
	if len(e.Policies) == before {
		return nil, &types.ResourceNotFoundException{Message: aws.String("The policyArn could not be found: " + aws.ToString(in.PolicyArn)), ClusterName: in.ClusterName}
	}
	return &eks.DisassociateAccessPolicyOutput{}, nil
}

func (a *AWS) listAccessPolicies(in *eks.ListAssociatedAccessPoliciesInput) (*eks.ListAssociatedAccessPoliciesOutput, error) {
	c, e, err := a.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	list := each(e.Policies, func(p EKSAccessPolicy) types.AssociatedAccessPolicy { return p.out(p.Born) })
	part, next, err := eksPage(a, list, in.NextToken, in.MaxResults)
	return &eks.ListAssociatedAccessPoliciesOutput{AssociatedAccessPolicies: part, ClusterName: &c.Name, PrincipalArn: &e.Principal, NextToken: next}, err
}
