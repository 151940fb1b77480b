package iam

import (
	"cmp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateProfiles() {
	core.On(svc.Account, svc.getInstanceProfile, "InstanceProfileName")
	core.On(svc.Account, svc.listInstanceProfiles, "Marker", "MaxItems", "PathPrefix")
	core.On(svc.Account, svc.listInstanceProfilesForRole, "RoleName", "Marker", "MaxItems")
	core.On(svc.Account, svc.createInstanceProfile, "InstanceProfileName", "Path", "Tags")
	core.On(svc.Account, svc.deleteInstanceProfile, "InstanceProfileName")
	core.On(svc.Account, svc.addRoleToInstanceProfile, "InstanceProfileName", "RoleName")
	core.On(svc.Account, svc.removeRoleFromInstanceProfile, "InstanceProfileName", "RoleName")
}

// ProfileRole returns the name of the role whose credentials the machines with an instance profile get; "" if there is no profile or no role, or if
// EC2 may not assume it ("Using an IAM role to grant permissions to applications running on Amazon EC2 instances", IAM user guide: its trust policy
// names ec2.amazonaws.com).
func (svc *Service) ProfileRole(name string) string {
	p := svc.state.Profiles[name]
	if p == nil {
		return ""
	}
	if r := svc.state.Roles[p.Role]; r != nil && !svc.TrustsEC2(svc.roleARN(r)) {
		return ""
	}
	return p.Role
}

// TrustsEC2 reports whether EC2 may assume a role. In China, some roles have the name of the service there.
func (svc *Service) TrustsEC2(arn string) bool {
	return svc.Trusts(arn, "ec2.amazonaws.com") || svc.Trusts(arn, "ec2.amazonaws.com.cn")
}

// ProfileARN returns the ARN of an instance profile, which may have been deleted.
func (svc *Service) ProfileARN(name string) string {
	if p := svc.state.Profiles[name]; p != nil {
		return svc.ARN("instance-profile", p.Path, name)
	}
	return svc.ARN("instance-profile", "", name)
}

// ProfileExists reports whether an instance profile exists.
func (svc *Service) ProfileExists(name string) bool {
	_, ok := svc.state.Profiles[name]
	return ok
}

// ProfileHasRole reports whether an instance profile has a role.
func (svc *Service) ProfileHasRole(name string) bool {
	p := svc.state.Profiles[name]
	return p != nil && svc.state.Roles[p.Role] != nil
}

func (svc *Service) showProfile(p *InstanceProfile) types.InstanceProfile {
	out := types.InstanceProfile{
		InstanceProfileName: aws.String(
			p.Name,
		),
		Path:              aws.String(cmp.Or(p.Path, "/")),
		InstanceProfileId: aws.String(UniqueID("AIPA", p.Name)),
		CreateDate:        aws.Time(p.Born),
		Arn:               aws.String(svc.ARN("instance-profile", p.Path, p.Name)),
		Roles:             []types.Role{},
		Tags:              showTags(p.Tags),
	}
	if r, ok := svc.state.Roles[p.Role]; ok {
		out.Roles = append(out.Roles, svc.listedRole(r))
	}
	return out
}

// Profile returns the instance profile for a write.
func (svc *Service) Profile(name *string) (*InstanceProfile, error) {
	return named(svc.state.Profiles, "Instance Profile", name)
}

func (svc *Service) getInstanceProfile(in *iam.GetInstanceProfileInput) (*iam.GetInstanceProfileOutput, error) {
	p, err := svc.Profile(in.InstanceProfileName)
	if err != nil || !svc.Visible(p.Born) {
		return nil, NoEntity("Instance Profile", aws.ToString(in.InstanceProfileName))
	}
	shown := svc.showProfile(p)
	return &iam.GetInstanceProfileOutput{InstanceProfile: &shown}, nil
}

func (svc *Service) listInstanceProfiles(in *iam.ListInstanceProfilesInput) (*iam.ListInstanceProfilesOutput, error) {
	var list []types.InstanceProfile
	for _, p := range core.ByKey(svc.state.Profiles) {
		if svc.Visible(p.Born) && strings.HasPrefix(cmp.Or(p.Path, "/"), aws.ToString(in.PathPrefix)) {
			shown := svc.showProfile(p)
			shown.Tags = nil
			list = append(list, shown)
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.MaxItems, 100)
	return &iam.ListInstanceProfilesOutput{InstanceProfiles: part, Marker: next, IsTruncated: next != nil}, err
}

func (svc *Service) listInstanceProfilesForRole(in *iam.ListInstanceProfilesForRoleInput) (*iam.ListInstanceProfilesForRoleOutput, error) {
	r, err := svc.Role(in.RoleName)
	if err != nil {
		return nil, err
	}
	var list []types.InstanceProfile
	for _, p := range core.ByKey(svc.state.Profiles) {
		if p.Role == r.Name {
			list = append(list, svc.showProfile(p))
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.MaxItems, 100)
	return &iam.ListInstanceProfilesForRoleOutput{InstanceProfiles: part, Marker: next, IsTruncated: next != nil}, err
}

// MakeProfile creates an instance profile with a creation time.
func (svc *Service) MakeProfile(p *InstanceProfile, at time.Time) error {
	if err := checkNew(svc.state.Profiles, "instanceProfileName", "Instance Profile", p.Name, p.Path, 128); err != nil {
		return err
	}
	p.Born = at
	svc.state.Profiles[p.Name] = p
	return nil
}

// SetRole adds a role to a profile.
func (svc *Service) SetRole(p *InstanceProfile, role string) error {
	if _, err := svc.Role(&role); err != nil {
		return err
	}
	if p.Role != "" {
		return limitExceeded("InstanceSessionsPerInstanceProfile", "1")
	}
	p.Role = role
	return nil
}

func (svc *Service) createInstanceProfile(in *iam.CreateInstanceProfileInput) (*iam.CreateInstanceProfileOutput, error) {
	p := &InstanceProfile{Name: aws.ToString(in.InstanceProfileName), Path: aws.ToString(in.Path), Tags: readTags(in.Tags)}
	if err := checkTagKeys(in.Tags); err != nil {
		return nil, err
	}
	if err := svc.MakeProfile(p, svc.Now()); err != nil {
		return nil, err
	}
	shown := svc.showProfile(p)
	return &iam.CreateInstanceProfileOutput{InstanceProfile: &shown}, nil
}

func (svc *Service) deleteInstanceProfile(in *iam.DeleteInstanceProfileInput) (*iam.DeleteInstanceProfileOutput, error) {
	p, err := svc.Profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, deleteConflict("entity, must remove roles from instance profile first.")
	}
	delete(svc.state.Profiles, p.Name)
	return &iam.DeleteInstanceProfileOutput{}, nil
}

func (svc *Service) addRoleToInstanceProfile(in *iam.AddRoleToInstanceProfileInput) (*iam.AddRoleToInstanceProfileOutput, error) {
	p, err := svc.Profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	return &iam.AddRoleToInstanceProfileOutput{}, svc.SetRole(p, aws.ToString(in.RoleName))
}

func (svc *Service) removeRoleFromInstanceProfile(in *iam.RemoveRoleFromInstanceProfileInput) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	p, err := svc.Profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.Role != aws.ToString(in.RoleName) {
		return nil, NoEntity("The role with name", aws.ToString(in.RoleName))
	}
	p.Role = ""
	return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
}

// RemoveProfile removes an instance profile.
func (svc *Service) RemoveProfile(name string) { delete(svc.state.Profiles, name) }
