package iam

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// State is the state of IAM and STS.
type State struct {
	Roles    map[string]*Role            // by name
	Profiles map[string]*InstanceProfile // by name
	Policies map[string]*Policy          // customer managed policies, by name
	Users    map[string]*User            // by name
	Groups   map[string]*Group           // by name
	Assumed  []AssumedRole               // in the order of the calls

	Providers map[string]*OIDCProvider // OpenID Connect providers by ARN

	// ServiceControl is the document of the service control policy of the account's
	// organization; "": the account is in none. Only simulations of policies obey it.
	ServiceControl string
}

// Role is a role of the account.
type Role struct {
	Name        string
	Path        string // "/" if empty
	Service     string // principal if Trust is empty; ec2.amazonaws.com if both are
	Trust       string // trust policy
	Description string
	Boundary    string // ARN of the permissions boundary
	MaxSession  int32  // seconds; an hour if zero
	Tags        map[string]string
	Born        time.Time
	Holder
}

// InstanceProfile is an instance profile, which has at most one role.
type InstanceProfile struct {
	Name, Role string
	Path       string // "/" if empty
	Tags       map[string]string
	Born       time.Time
}

// AssumedRole is an AssumeRole call.
type AssumedRole struct {
	RoleARN, Session, ExternalID string
	Duration                     int32 // seconds
	AccessKey                    string
	By                           string // ARN of the assumed role of the caller; "" for the account's user
	At                           time.Time
}

// fill initializes maps that are missing in files of older versions.
func (s *State) fill() {
	core.Fill(&s.Roles)
	core.Fill(&s.Profiles)
	core.Fill(&s.Policies)
	core.Fill(&s.Users)
	core.Fill(&s.Groups)
	core.Fill(&s.Providers)
}

// BootstrapSuffix ends the names of the roles of CAPA's bootstrap stack.
const BootstrapSuffix = ".cluster-api-provider-aws.sigs.k8s.io"

// BootstrapProfiles lists the roles and instance profiles of CAPA's bootstrap stack.
func BootstrapProfiles() []string {
	return []string{"control-plane" + BootstrapSuffix, "controllers" + BootstrapSuffix, "nodes" + BootstrapSuffix}
}

// BootstrapRolesOfEKS lists the roles that Options.EKSRoles adds.
func BootstrapRolesOfEKS() []string {
	return []string{"eks-controlplane" + BootstrapSuffix, "eks-nodegroup" + BootstrapSuffix, "eks-fargate" + BootstrapSuffix}
}

// DriverRole is the name of the role of the EBS CSI driver that Options.EKSRoles adds.
const DriverRole = "ebs-csi"

// AppRole is the name of the role of the pods of an application that Options.EKSRoles adds, for pod identity
// associations.
const AppRole = "shop-orders"

// PeopleRoles are the roles of people that Options.EKSRoles adds, for access entries.
func PeopleRoles() []string { return []string{"developers", "operators", "pipeline"} }

// NewDriverRole returns the role of the EBS CSI driver. Pods get it by EKS Pod Identity.
func NewDriverRole(partition string, born time.Time) *Role {
	return &Role{
		Name: DriverRole, Path: "/", Service: PodService, Born: born,
		Holder: Holder{Attached: []string{"arn:" + partition + ":iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"}},
	}
}

// The names of the roles for which the console of IAM has templates for EKS Auto Mode, and that Options.EKSRoles adds.
const (
	AutoClusterRole = "AmazonEKSAutoClusterRole"
	AutoNodeRole    = "AmazonEKSAutoNodeRole"
)

// MakeAutoCluster gives a role what EKS Auto Mode needs of that of a control plane ("Amazon EKS Auto Mode cluster IAM role", EKS user
// guide).
func (r *Role) MakeAutoCluster(partition string) {
	r.Trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`
	for _, name := range []string{
		"AmazonEKSBlockStoragePolicy", "AmazonEKSClusterPolicy", "AmazonEKSComputePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy",
	} {
		r.Attached = append(r.Attached, "arn:"+partition+":iam::aws:policy/"+name)
	}
}

// MakeAutoNode gives a role what EKS Auto Mode needs of that of nodes ("Amazon EKS Auto Mode node IAM role").
func (r *Role) MakeAutoNode(partition string) {
	for _, name := range []string{"AmazonEC2ContainerRegistryPullOnly", "AmazonEKSWorkerNodeMinimalPolicy"} {
		r.Attached = append(r.Attached, "arn:"+partition+":iam::aws:policy/"+name)
	}
}

// AutoRoles returns both roles.
func AutoRoles(partition string, born time.Time) []*Role {
	cluster, node := &Role{Name: AutoClusterRole, Path: "/", Born: born}, &Role{Name: AutoNodeRole, Path: "/", Born: born}
	cluster.MakeAutoCluster(partition)
	node.MakeAutoNode(partition)
	return []*Role{cluster, node}
}

// given reports whether an account begins with a role.
func (svc *Service) given(name string) bool {
	return slices.Contains(BootstrapProfiles(), name) ||
		svc.EKSRoles &&
			(name == DriverRole || name == AutoClusterRole || name == AutoNodeRole || name == AppRole ||
				slices.Contains(PeopleRoles(), name) || slices.Contains(BootstrapRolesOfEKS(), name))
}

func (svc *Service) simulate() {
	svc.simulateRoles()
	svc.simulateProfiles()
	svc.simulatePolicies()
	svc.simulateUsers()
	svc.simulateOIDC()
	svc.simulateSimulation()
}

// ARN returns the ARN of an IAM resource.
func (svc *Service) ARN(kind, path, name string) string {
	return "arn:" + svc.Partition() + ":iam::" + svc.Number() + ":" + kind + cmp.Or(path, "/") + name
}

// RootARN returns the ARN of the root user of the account.
func (svc *Service) RootARN() string {
	return "arn:" + svc.Partition() + ":iam::" + svc.Number() + ":root"
}

// UniqueID returns the unique ID of an IAM resource, the same for the same name.
func UniqueID(prefix, name string) string {
	return prefix + strings.ToUpper(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return 'x'
	}, (name + "xxxxxxxxxxxxxxxxx")[:17]))
}

// NoEntity is the error for an IAM resource that does not exist.
func NoEntity(what, name string) error {
	return &types.NoSuchEntityException{Message: aws.String(what + " " + name + " cannot be found.")}
}

func entityExists(what, name string) error {
	return &types.EntityAlreadyExistsException{Message: aws.String(what + " " + name + " already exists.")}
}

func deleteConflict(text string) error {
	return &types.DeleteConflictException{Message: aws.String("Cannot delete " + text)}
}

func limitExceeded(quota string, most string) error {
	return &types.LimitExceededException{Message: aws.String("Cannot exceed quota for " + quota + ": " + most)}
}

// named returns the resource with a name.
func named[T any](all map[string]*T, what string, name *string) (*T, error) {
	if x, ok := all[aws.ToString(name)]; ok {
		return x, nil
	}
	return nil, NoEntity(what, aws.ToString(name))
}

// checkNew validates the name and the path of a new resource, and that no other has the name.
func checkNew[T any](all map[string]*T, field, what, name, path string, most int) error {
	if err := checkName(field, name, path, most); err != nil {
		return err
	}
	if nameTaken(all, name) {
		return entityExists(what, name)
	}
	return nil
}

// nameTaken reports whether a name exists. Names in IAM are not case-sensitive.
func nameTaken[T any](m map[string]T, name string) bool {
	for k := range m {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}

// checkName validates the name and the path of a new resource.
func checkName(field, name, path string, most int) error {
	valid := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_+=,.@-", r)
	}
	if name == "" || len(name) > most || strings.IndexFunc(name, func(r rune) bool { return !valid(r) }) >= 0 {
		return core.Fail(
			"ValidationError",
			"The specified value for %s is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-, and at most %d of them",
			field,
			most,
		)
	}
	if path != "" && (path[0] != '/' || path[len(path)-1] != '/' || len(path) > 512) {
		return core.Fail(
			"ValidationError",
			"The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.",
		)
	}
	return nil
}

// checkTagKeys rejects keys that differ by case only ("Tags for AWS Identity and Access Management
// resources", IAM user guide: keys are not case-sensitive).
func checkTagKeys(tags []types.Tag) error {
	seen := map[string]bool{}
	for _, t := range tags {
		key := strings.ToLower(aws.ToString(t.Key))
		if seen[key] {
			return &types.InvalidInputException{Message: aws.String("Duplicate tag keys found. Please note that Tag keys are case insensitive.")}
		}
		seen[key] = true
	}
	return nil
}

func readTags(tags []types.Tag) map[string]string {
	var m map[string]string
	if len(tags) > 0 {
		putTags(&m, tags)
	}
	return m
}

func showTags(m map[string]string) []types.Tag {
	return core.WriteTags(m, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} })
}

// putTags adds tags.
func putTags(to *map[string]string, tags []types.Tag) {
	core.Fill(to)
	for _, t := range tags {
		(*to)[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
}

// escaped returns a document URL-encoded, as IAM does.
func escaped(document string) *string {
	return aws.String(strings.ReplaceAll(url.QueryEscape(document), "+", "%20"))
}

// Inventory lists the resources of IAM except for those of the bootstrap stack.
func (svc *Service) Inventory() (lines []string) {
	s := svc.state
	list := func(kind string, names []string) {
		for _, name := range names {
			if kind == "Role" && svc.given(name) || kind == "InstanceProfile" && slices.Contains(BootstrapProfiles(), name) {
				continue
			}
			lines = append(lines, kind+" "+name)
		}
	}
	list("Role", core.SortedKeys(s.Roles))
	list("InstanceProfile", core.SortedKeys(s.Profiles))
	list("Policy", core.SortedKeys(s.Policies))
	list("User", core.SortedKeys(s.Users))
	list("Group", core.SortedKeys(s.Groups))
	for _, p := range core.ByKey(svc.state.Providers) {
		lines = append(lines, "OIDCProvider "+p.URL)
	}
	slices.Sort(lines)
	return lines
}

// Detailed is Inventory with the attributes of the resources.
func (svc *Service) Detailed() (lines []string) {
	holds := func(h Holder) []string {
		return []string{"attached", strings.Join(slices.Sorted(slices.Values(h.Attached)), ","), "inline", core.Pairs(h.Inline)}
	}
	line := func(title string, pairs ...string) { lines = append(lines, core.LineOf(title, pairs...)) }
	for _, r := range core.ByKey(svc.state.Roles) {
		if !svc.given(r.Name) {
			line(
				"Role "+r.Name,
				append(holds(r.Holder), "path", cmp.Or(r.Path, "/"), "service", r.Service, "trust", r.Trust, "boundary", r.Boundary, "tags", core.Pairs(r.Tags))...)
		}
	}
	for _, p := range core.ByKey(svc.state.Profiles) {
		if !slices.Contains(BootstrapProfiles(), p.Name) {
			line("InstanceProfile "+p.Name, "role", p.Role, "tags", core.Pairs(p.Tags))
		}
	}
	for _, p := range core.ByKey(svc.state.Policies) {
		line("Policy "+p.Name, "path", cmp.Or(p.Path, "/"), "document", p.Document(), "tags", core.Pairs(p.Tags))
	}
	for _, u := range core.ByKey(svc.state.Users) {
		line(
			"User "+u.Name,
			append(holds(u.Holder), "path", cmp.Or(u.Path, "/"), "groups", strings.Join(slices.Sorted(slices.Values(u.Groups)), ","), "tags", core.Pairs(u.Tags))...)
	}
	for _, g := range core.ByKey(svc.state.Groups) {
		line("Group "+g.Name, append(holds(g.Holder), "path", cmp.Or(g.Path, "/"))...)
	}
	slices.Sort(lines)
	return lines
}
