package awssim

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// IAMState is what IAM and STS hold.
type IAMState struct {
	Roles    map[string]*Role            // by name
	Profiles map[string]*InstanceProfile // by name
	Assumed  []AssumedRole               // in the order of the calls
}

// Role is a role of the account.
type Role struct {
	Name       string
	Path       string // "/" when empty
	Service    string // who may assume it: ec2.amazonaws.com when empty
	MaxSession int32  // seconds; an hour when zero
	Born       time.Time
}

// InstanceProfile is an instance profile, which has one role at most.
type InstanceProfile struct {
	Name, Role string
	Born       time.Time
}

// AssumedRole is one call of AssumeRole.
type AssumedRole struct {
	RoleARN, Session, ExternalID string
	Duration                     int32 // seconds
	AccessKey                    string
	By                           string // ARN of the assumed role that the call was made in; "" for the account's user
	At                           time.Time
}

// newIAMState has the roles and instance profiles that CAPA's bootstrap stack
// makes.
func newIAMState() IAMState {
	s := IAMState{Roles: map[string]*Role{}, Profiles: map[string]*InstanceProfile{}}
	for _, name := range stockProfiles() {
		s.Roles[name] = &Role{Name: name}
		s.Profiles[name] = &InstanceProfile{Name: name, Role: name}
	}
	return s
}

func stockProfiles() []string {
	const suffix = ".cluster-api-provider-aws.sigs.k8s.io"
	return []string{"control-plane" + suffix, "controllers" + suffix, "nodes" + suffix}
}

func (a *AWS) simulateIAM() {
	on(a, a.getInstanceProfile, "InstanceProfileName")
	on(a, a.listInstanceProfiles, "Marker", "MaxItems", "PathPrefix")
	on(a, a.getRole, "RoleName")
	a.simulateSTS()
}

// instanceProfileExists reports whether there is an instance profile of that
// name.
func (a *AWS) instanceProfileExists(name string) bool {
	_, ok := a.state.IAM.Profiles[name]
	return ok
}

// roleExists reports whether there is a role of that ARN in the account.
func (a *AWS) roleExists(arn string) bool {
	for _, r := range a.state.IAM.Roles {
		if a.roleARN(r) == arn {
			return true
		}
	}
	return false
}

func (a *AWS) roleARN(r *Role) string {
	return "arn:" + a.partition() + ":iam::" + Account + ":role" + first(r.Path, "/") + r.Name
}

func noEntity(what, name string) error {
	return &types.NoSuchEntityException{Message: aws.String(what + " " + name + " cannot be found.")}
}

// iamID makes the ID of something of IAM, always the same for a name.
func iamID(prefix, name string) string {
	return prefix + strings.ToUpper(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return 'x'
	}, (name + "xxxxxxxxxxxxxxxxx")[:17]))
}

func (a *AWS) showRole(r *Role) types.Role {
	trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + first(r.Service, "ec2.amazonaws.com") + `"},"Action":"sts:AssumeRole"}]}`
	return types.Role{
		RoleName: aws.String(r.Name), Arn: aws.String(a.roleARN(r)), Path: aws.String(first(r.Path, "/")), RoleId: aws.String(iamID("AROA", r.Name)),
		CreateDate: aws.Time(r.Born), AssumeRolePolicyDocument: aws.String(url.QueryEscape(trust)), MaxSessionDuration: aws.Int32(r.maxSession()),
	}
}

func (r *Role) maxSession() int32 {
	if r.MaxSession == 0 {
		return 3600
	}
	return r.MaxSession
}

func (a *AWS) showProfile(p *InstanceProfile) types.InstanceProfile {
	out := types.InstanceProfile{
		InstanceProfileName: aws.String(p.Name), Path: aws.String("/"), InstanceProfileId: aws.String(iamID("AIPA", p.Name)), CreateDate: aws.Time(p.Born),
		Arn: aws.String("arn:" + a.partition() + ":iam::" + Account + ":instance-profile/" + p.Name), Roles: []types.Role{},
	}
	if r, ok := a.state.IAM.Roles[p.Role]; ok {
		out.Roles = append(out.Roles, a.showRole(r))
	}
	return out
}

func (a *AWS) getInstanceProfile(in *iam.GetInstanceProfileInput) (*iam.GetInstanceProfileOutput, error) {
	p, ok := a.state.IAM.Profiles[aws.ToString(in.InstanceProfileName)]
	if !ok {
		return nil, noEntity("Instance Profile", aws.ToString(in.InstanceProfileName))
	}
	shown := a.showProfile(p)
	return &iam.GetInstanceProfileOutput{InstanceProfile: &shown}, nil
}

func (a *AWS) listInstanceProfiles(in *iam.ListInstanceProfilesInput) (*iam.ListInstanceProfilesOutput, error) {
	var list []types.InstanceProfile
	for _, p := range byKey(a.state.IAM.Profiles) {
		if prefix := aws.ToString(in.PathPrefix); prefix == "" || prefix == "/" {
			list = append(list, a.showProfile(p))
		}
	}
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListInstanceProfilesOutput{InstanceProfiles: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) getRole(in *iam.GetRoleInput) (*iam.GetRoleOutput, error) {
	r, ok := a.state.IAM.Roles[aws.ToString(in.RoleName)]
	if !ok {
		return nil, noEntity("The role with name", aws.ToString(in.RoleName))
	}
	shown := a.showRole(r)
	return &iam.GetRoleOutput{Role: &shown}, nil
}

// inventoryIAM lists what IAM holds, but for what the account began with.
func (a *AWS) inventoryIAM() (lines []string) {
	for _, r := range byKey(a.state.IAM.Roles) {
		if !slices.Contains(stockProfiles(), r.Name) {
			lines = append(lines, "Role "+r.Name)
		}
	}
	for _, p := range byKey(a.state.IAM.Profiles) {
		if !slices.Contains(stockProfiles(), p.Name) {
			lines = append(lines, "InstanceProfile "+p.Name)
		}
	}
	slices.Sort(lines)
	return lines
}

// detailedIAM is inventoryIAM with what the things are like.
func (a *AWS) detailedIAM() (lines []string) {
	for _, r := range byKey(a.state.IAM.Roles) {
		if !slices.Contains(stockProfiles(), r.Name) {
			lines = append(lines, lineOf("Role "+r.Name, "path", first(r.Path, "/"), "service", r.Service))
		}
	}
	for _, p := range byKey(a.state.IAM.Profiles) {
		if !slices.Contains(stockProfiles(), p.Name) {
			lines = append(lines, lineOf("InstanceProfile "+p.Name, "role", p.Role))
		}
	}
	slices.Sort(lines)
	return lines
}
