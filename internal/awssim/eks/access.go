package eks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Access is an access entry, which gives an IAM principal access to a cluster.
type Access struct {
	Principal, ARN, Type, User, Token string
	Groups                            []string
	Policies                          []AccessPolicy
	Tags                              map[string]string
	Born, Modified                    time.Time
}

// AccessPolicy is an access policy of an entry.
type AccessPolicy struct {
	ARN        string
	Namespaces []string // empty: the whole cluster
	Born       time.Time
}

func (svc *Service) simulateAccess() {
	core.On(svc.Account, svc.createAccessEntry, "ClusterName", "PrincipalArn", "KubernetesGroups", "Tags", "Type", "Username", "ClientRequestToken")
	core.On(svc.Account, svc.describeAccessEntry, "ClusterName", "PrincipalArn")
	core.On(svc.Account, svc.listAccessEntries, "ClusterName", "MaxResults", "NextToken")
	core.On(svc.Account, svc.updateAccessEntry, "ClusterName", "PrincipalArn", "KubernetesGroups", "Username", "ClientRequestToken")
	core.On(svc.Account, svc.deleteAccessEntry, "ClusterName", "PrincipalArn")
	core.On(svc.Account, svc.associateAccessPolicy, "ClusterName", "PrincipalArn", "PolicyArn", "AccessScope")
	core.On(svc.Account, svc.disassociateAccessPolicy, "ClusterName", "PrincipalArn", "PolicyArn")
	core.On(svc.Account, svc.listAssociatedAccessPolicies, "ClusterName", "PrincipalArn", "MaxResults", "NextToken")
	core.On(svc.Account, svc.listAccessPolicies, "MaxResults", "NextToken")
}

// accessible returns the cluster with that name, if its authentication mode has access
// entries.
func (svc *Service) accessible(name *string) (*Cluster, error) {
	c, err := svc.cluster(name)
	switch {
	case err != nil:
		return nil, err
	case c.status(svc.Now()) == types.ClusterStatusCreating || c.status(svc.Now()) == types.ClusterStatusDeleting:
		return svc.activeCluster(name)
	case c.Authentication == string(types.AuthenticationModeConfigMap):
		return nil, &types.InvalidRequestException{
			Message:     aws.String("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."),
			ClusterName: name,
		}
	}
	return c, nil
}

// accessEntry returns an access entry.
func (svc *Service) accessEntry(cluster, principal *string) (*Cluster, *Access, error) {
	return part(svc.accessible, cluster, func(c *Cluster) map[string]*Access { return c.Access }, principal,
		&types.ResourceNotFoundException{Message: aws.String("The specified principalArn could not be found: " + aws.ToString(principal)), ClusterName: cluster})
}

func (svc *Service) createAccessEntry(in *eks.CreateAccessEntryInput) (*eks.CreateAccessEntryOutput, error) {
	c, err := svc.accessible(in.ClusterName)
	if err != nil {
		return nil, err
	}
	e := &Access{
		Principal: aws.ToString(in.PrincipalArn), Type: cmp.Or(aws.ToString(in.Type), "STANDARD"), User: aws.ToString(in.Username),
		Groups: slices.Clone(in.KubernetesGroups), Token: aws.ToString(in.ClientRequestToken), Born: svc.Now(), Modified: svc.Now(),
	}
	if old, ok := c.Access[e.Principal]; ok {
		if old.Token == e.Token {
			return &eks.CreateAccessEntryOutput{AccessEntry: svc.accessOut(c, old)}, nil
		}
		return nil, busy("The specified access entry resource is already in use on this cluster.")
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
	if e.Tags, err = checkTags(in.Tags); err != nil {
		return nil, err
	}
	if parts := strings.Split(e.Principal, ":"); parts[1] != svc.Partition() {
		return nil, invalid("The principalArn parameter is in another partition")
	}
	if !svc.iam.IsPrincipal(e.Principal) { // seen by others: https://github.com/terraform-aws-modules/terraform-aws-eks/issues/2969
		return nil, invalid("The specified principalArn is invalid: invalid principal.")
	}
	kind, name, _ := strings.Cut(e.Principal[strings.LastIndex(e.Principal, ":")+1:], "/")
	e.ARN = svc.accessARN(c, kind, name)
	c.Access[e.Principal] = e
	return &eks.CreateAccessEntryOutput{AccessEntry: svc.accessOut(c, e)}, nil
}

// accessARN returns the ARN of a new access entry.
func (svc *Service) accessARN(c *Cluster, kind, name string) string {
	return svc.RegionalARN("eks", "access-entry/"+c.Name+"/"+kind+"/"+svc.Number()+"/"+name+"/"+svc.Hash()[:8])
}

// principal returns the ARN of the user or the role that sends a call.
func (svc *Service) principal(ctx context.Context) string {
	if r := svc.iam.AssumedWith(core.AccessKey(ctx)); r != nil {
		return r.RoleARN
	}
	return svc.iam.ARN("user", "", iam.Caller)
}

// letInCreator creates the access entry of the creator of a cluster, an administrator
// ("bootstrapClusterCreatorAdminPermissions", CreateCluster; "Grant IAM users access to Kubernetes
// with EKS access entries", EKS user guide). That it has no tags is not verified.
func (svc *Service) letInCreator(c *Cluster) {
	creator := c.Creator
	if c.Authentication == string(types.AuthenticationModeConfigMap) || !c.CreatorIsAdmin || creator == "" || c.Access[creator] != nil {
		return
	}
	c.Access[creator] = &Access{
		Principal: creator, Type: "STANDARD", User: creator, Born: svc.Now(), Modified: svc.Now(),
		ARN:      svc.accessARN(c, "creator", creator[strings.LastIndex(creator, "/")+1:]),
		Policies: []AccessPolicy{{"arn:" + svc.Partition() + ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy", nil, svc.Now()}},
	}
}

// entryOf returns the entry that EKS looks up for a role; nil if there is none, or the cluster has
// no entries. An entry takes precedence over the ConfigMap aws-auth.
func (c *Cluster) entryOf(role string) *Access {
	if c.Authentication == string(types.AuthenticationModeConfigMap) {
		return nil
	}
	return c.Access[role]
}

// LocksOut returns why the API server answers the kubelets of nodes with a role with 401: the role
// has an access entry that is not for nodes (https://github.com/aws/karpenter-provider-aws/issues/7558).
func (c *Cluster) LocksOut(role string) string {
	e := c.entryOf(role)
	if e == nil || slices.Contains([]string{"EC2_LINUX", "EC2_WINDOWS", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"}, e.Type) {
		return ""
	}
	return fmt.Sprintf("401 Unauthorized: the access entry of %s has the type %s", role, e.Type)
}

// letIn creates the access entry that EKS creates for its own nodes, unless the role has one of
// whatever type. That it stays when they are deleted, and has no tags, is not verified.
func (svc *Service) letIn(c *Cluster, role, kind string) {
	if c.Authentication == string(types.AuthenticationModeConfigMap) || c.Access[role] != nil {
		return
	}
	c.Access[role] = &Access{
		Principal: role, Type: kind, User: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:nodes"}, Born: svc.Now(), Modified: svc.Now(),
		ARN: svc.accessARN(c, "role", role[strings.LastIndex(role, "/")+1:]),
	}
}

// entryType returns the type of the access entry that lets the nodes of a group in.
func (g *NodeGroup) entryType() string {
	if strings.HasPrefix(g.Kind, "WINDOWS") {
		return "EC2_WINDOWS"
	}
	return "EC2_LINUX"
}

// check validates a new entry. For the node types, EKS sets the user name and groups.
func (e *Access) check() error {
	switch {
	case !regex.Of(`^arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+$`).MatchString(e.Principal):
		return invalid("The principalArn parameter format is not valid")
	case strings.Contains(e.Principal, ":role/aws-service-role/"): // "Create access entries", EKS user guide
		return invalid("The caller is not allowed to modify access entries with a principalArn value of a Service Linked Role")
	case !slices.Contains([]string{"STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX"}, e.Type):
		return invalid("The access entry type %s is not valid", e.Type)
	case e.Type != "STANDARD" && strings.Contains(e.Principal, ":user/"): // principalArn of CreateAccessEntry
		return invalid("The principalArn of an access entry of type %s must be an IAM role", e.Type)
	case e.Type != "STANDARD" && (e.User != "" || len(e.Groups) > 0):
		return invalid("userName and kubernetesGroups cannot be set for access entries of type %s", e.Type)
	}
	return e.checkNames(e.User, e.Groups)
}

func (e *Access) checkNames(user string, groups []string) error {
	if before, _, session := strings.Cut(user, "{{SessionName"); session && !strings.Contains(before, ":") { // "Set a custom username", EKS user guide
		return invalid("The username must include a colon (:) before {{SessionName}} or {{SessionNameRaw}}")
	}
	for _, prefix := range []string{"system:", "eks:", "aws:", "amazon:", "iam:"} {
		if strings.HasPrefix(user, prefix) {
			return invalid("The username must not begin with '%s'", prefix)
		}
		for _, g := range groups {
			if strings.HasPrefix(g, prefix) {
				return invalid("The kubernetes group name %s is invalid, it cannot start with %s", g, prefix)
			}
		}
	}
	return nil
}

func (svc *Service) accessOut(c *Cluster, e *Access) *types.AccessEntry {
	return &types.AccessEntry{
		ClusterName:    aws.String(c.Name),
		PrincipalArn:   aws.String(e.Principal),
		AccessEntryArn: aws.String(e.ARN),
		Type:           aws.String(e.Type),
		Username: aws.String(
			e.User,
		),
		KubernetesGroups: slices.Clone(e.Groups),
		Tags:             maps.Clone(e.Tags),
		CreatedAt:        aws.Time(e.Born),
		ModifiedAt:       aws.Time(e.Modified),
	}
}

func (svc *Service) describeAccessEntry(in *eks.DescribeAccessEntryInput) (*eks.DescribeAccessEntryOutput, error) {
	c, e, err := svc.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeAccessEntryOutput{AccessEntry: svc.accessOut(c, e)}, nil
}

func (svc *Service) listAccessEntries(in *eks.ListAccessEntriesInput) (*eks.ListAccessEntriesOutput, error) {
	c, err := svc.accessible(in.ClusterName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(svc, visible(svc, c.Access, func(e *Access) time.Time { return e.Born }), in.NextToken, in.MaxResults)
	return &eks.ListAccessEntriesOutput{AccessEntries: part, NextToken: next}, err
}

func (svc *Service) updateAccessEntry(in *eks.UpdateAccessEntryInput) (*eks.UpdateAccessEntryOutput, error) {
	c, e, err := svc.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	if e.Type != "STANDARD" {
		return nil, invalid("access entries of type %s cannot be updated", e.Type)
	}
	if err := e.checkNames(aws.ToString(in.Username), in.KubernetesGroups); err != nil {
		return nil, err
	}
	core.Set(&e.User, in.Username)
	if in.KubernetesGroups != nil {
		e.Groups = slices.Clone(in.KubernetesGroups)
	}
	e.Modified = svc.Now()
	return &eks.UpdateAccessEntryOutput{AccessEntry: svc.accessOut(c, e)}, nil
}

func (svc *Service) deleteAccessEntry(in *eks.DeleteAccessEntryInput) (*eks.DeleteAccessEntryOutput, error) {
	c, e, err := svc.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	delete(c.Access, e.Principal)
	return &eks.DeleteAccessEntryOutput{}, nil
}

func (svc *Service) associateAccessPolicy(in *eks.AssociateAccessPolicyInput) (*eks.AssociateAccessPolicyOutput, error) {
	c, e, err := svc.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	scope := in.AccessScope
	switch {
	case e.Type != "STANDARD" && e.Type != "EC2": // for EC2 see "Create a Node Class for Amazon EKS", EKS user guide
		return nil, invalid("access policies cannot be associated with access entries of type %s", e.Type)
	case !regex.Of(`^arn:aws[a-z-]*:eks::aws:cluster-access-policy/\w+$`).MatchString(aws.ToString(in.PolicyArn)):
		return nil, invalid("The policyArn parameter format is not valid")
	case !slices.ContainsFunc(svc.accessPolicies(), func(p types.AccessPolicy) bool { return *p.Arn == *in.PolicyArn }):
		return nil, &types.ResourceNotFoundException{Message: aws.String("The specified policyArn could not be found: " + *in.PolicyArn)}
	case scope == nil || scope.Type != types.AccessScopeTypeCluster && scope.Type != types.AccessScopeTypeNamespace:
		return nil, invalid("The access scope type is not valid")
	case (scope.Type == types.AccessScopeTypeNamespace) != (len(scope.Namespaces) > 0):
		return nil, invalid("namespaces are required for the namespace scope, and only for it")
	}
	e.Policies = slices.DeleteFunc(e.Policies, func(p AccessPolicy) bool { return p.ARN == *in.PolicyArn })
	e.Policies = append(e.Policies, AccessPolicy{*in.PolicyArn, slices.Clone(scope.Namespaces), svc.Now()})
	shown := e.Policies[len(e.Policies)-1].out(svc.Now())
	return &eks.AssociateAccessPolicyOutput{ClusterName: &c.Name, PrincipalArn: &e.Principal, AssociatedAccessPolicy: &shown}, nil
}

func (p AccessPolicy) out(now time.Time) types.AssociatedAccessPolicy {
	scope := &types.AccessScope{Type: types.AccessScopeTypeCluster}
	if len(p.Namespaces) > 0 {
		scope = &types.AccessScope{Type: types.AccessScopeTypeNamespace, Namespaces: slices.Clone(p.Namespaces)}
	}
	return types.AssociatedAccessPolicy{PolicyArn: aws.String(p.ARN), AccessScope: scope, AssociatedAt: aws.Time(p.Born), ModifiedAt: aws.Time(now)}
}

func (svc *Service) disassociateAccessPolicy(in *eks.DisassociateAccessPolicyInput) (*eks.DisassociateAccessPolicyOutput, error) {
	_, e, err := svc.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	before := len(e.Policies)
	e.Policies = slices.DeleteFunc(e.Policies, func(p AccessPolicy) bool { return p.ARN == aws.ToString(in.PolicyArn) })
	if len(e.Policies) == before {
		return nil, &types.ResourceNotFoundException{
			Message:     aws.String("The policyArn could not be found: " + aws.ToString(in.PolicyArn)),
			ClusterName: in.ClusterName,
		}
	}
	return &eks.DisassociateAccessPolicyOutput{}, nil
}

func (svc *Service) listAssociatedAccessPolicies(in *eks.ListAssociatedAccessPoliciesInput) (*eks.ListAssociatedAccessPoliciesOutput, error) {
	c, e, err := svc.accessEntry(in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	list := core.Each(e.Policies, func(p AccessPolicy) types.AssociatedAccessPolicy { return p.out(p.Born) })
	part, next, err := page(svc, list, in.NextToken, in.MaxResults)
	return &eks.ListAssociatedAccessPoliciesOutput{AssociatedAccessPolicies: part, ClusterName: &c.Name, PrincipalArn: &e.Principal, NextToken: next}, err
}

// listAccessPolicies lists the policies that entries may have.
func (svc *Service) listAccessPolicies(in *eks.ListAccessPoliciesInput) (*eks.ListAccessPoliciesOutput, error) {
	part, next, err := page(svc, svc.accessPolicies(), in.NextToken, in.MaxResults)
	return &eks.ListAccessPoliciesOutput{AccessPolicies: part, NextToken: next}, err
}

// accessPolicies are those of EKS ("Review access policy permissions", EKS user guide).
func (svc *Service) accessPolicies() []types.AccessPolicy {
	return core.Each([]string{
		"AmazonAIOpsAssistantPolicy",
		"AmazonARCRegionSwitchScalingPolicy",
		"AmazonEKSAdminPolicy",
		"AmazonEKSAdminViewPolicy",
		"AmazonEKSAutoNodePolicy",
		"AmazonEKSBlockStorageClusterPolicy",
		"AmazonEKSBlockStoragePolicy",
		"AmazonEKSClusterAdminPolicy",
		"AmazonEKSClusterInsightsPolicy",
		"AmazonEKSComputeClusterPolicy",
		"AmazonEKSComputePolicy",
		"AmazonEKSEditPolicy",
		"AmazonEKSHybridPolicy",
		"AmazonEKSLoadBalancingClusterPolicy",
		"AmazonEKSLoadBalancingPolicy",
		"AmazonEKSNetworkingClusterPolicy",
		"AmazonEKSNetworkingPolicy",
		"AmazonEKSSecretReaderPolicy",
		"AmazonEKSViewPolicy",
	}, func(name string) types.AccessPolicy {
		return types.AccessPolicy{Name: &name, Arn: aws.String("arn:" + svc.Partition() + ":eks::aws:cluster-access-policy/" + name)}
	})
}
