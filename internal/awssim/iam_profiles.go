package awssim

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

func (a *AWS) simulateProfiles() {
	on(a, a.getInstanceProfile, "InstanceProfileName")
	on(a, a.listInstanceProfiles, "Marker", "MaxItems", "PathPrefix")
	on(a, a.listInstanceProfilesForRole, "RoleName", "Marker", "MaxItems")
	on(a, a.createInstanceProfile, "InstanceProfileName", "Path", "Tags")
	on(a, a.deleteInstanceProfile, "InstanceProfileName")
	on(a, a.addRoleToInstanceProfile, "InstanceProfileName", "RoleName")
	on(a, a.removeRoleFromInstanceProfile, "InstanceProfileName", "RoleName")
}

// ProfileRole returns the name of the role of an instance profile; "" where
// there is no such profile, or it has no role.
func (a *AWS) ProfileRole(name string) string {
	if p := a.state.IAM.Profiles[name]; p != nil {
		return p.Role
	}
	return ""
}

// instanceProfileExists reports whether there is an instance profile of that
// name.
func (a *AWS) instanceProfileExists(name string) bool {
	_, ok := a.state.IAM.Profiles[name]
	return ok
}

func (a *AWS) showProfile(p *InstanceProfile) types.InstanceProfile {
	out := types.InstanceProfile{
		InstanceProfileName: aws.String(p.Name), Path: aws.String(first(p.Path, "/")), InstanceProfileId: aws.String(iamID("AIPA", p.Name)), CreateDate: aws.Time(p.Born),
		Arn: aws.String(a.iamARN("instance-profile", p.Path, p.Name)), Roles: []types.Role{}, Tags: showIAMTags(p.Tags),
	}
	if r, ok := a.state.IAM.Roles[p.Role]; ok {
		shown := a.showRole(r)
		shown.Tags, shown.PermissionsBoundary = nil, nil
		out.Roles = append(out.Roles, shown)
	}
	return out
}

// profile looks up an instance profile for a call that changes it.
func (a *AWS) profile(name *string) (*InstanceProfile, error) {
	p, ok := a.state.IAM.Profiles[aws.ToString(name)]
	if !ok {
		return nil, noEntity("Instance Profile", aws.ToString(name))
	}
	return p, nil
}

func (a *AWS) getInstanceProfile(in *iam.GetInstanceProfileInput) (*iam.GetInstanceProfileOutput, error) {
	p, err := a.profile(in.InstanceProfileName)
	if err != nil || !a.visible(p.Born) {
		return nil, noEntity("Instance Profile", aws.ToString(in.InstanceProfileName))
	}
	shown := a.showProfile(p)
	return &iam.GetInstanceProfileOutput{InstanceProfile: &shown}, nil
}

func (a *AWS) listInstanceProfiles(in *iam.ListInstanceProfilesInput) (*iam.ListInstanceProfilesOutput, error) {
	var list []types.InstanceProfile
	for _, p := range byKey(a.state.IAM.Profiles) {
		if a.visible(p.Born) && strings.HasPrefix(first(p.Path, "/"), aws.ToString(in.PathPrefix)) {
			shown := a.showProfile(p)
			shown.Tags = nil
			list = append(list, shown)
		}
	}
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListInstanceProfilesOutput{InstanceProfiles: part, Marker: next, IsTruncated: next != nil}, err
}

func (a *AWS) listInstanceProfilesForRole(in *iam.ListInstanceProfilesForRoleInput) (*iam.ListInstanceProfilesForRoleOutput, error) {
	r, err := a.role(in.RoleName)
	if err != nil {
		return nil, err
	}
	var list []types.InstanceProfile
	for _, p := range byKey(a.state.IAM.Profiles) {
		if p.Role == r.Name {
			list = append(list, a.showProfile(p))
		}
	}
	part, next, err := page(a, list, in.Marker, in.MaxItems, 100)
	return &iam.ListInstanceProfilesForRoleOutput{InstanceProfiles: part, Marker: next, IsTruncated: next != nil}, err
}

// makeProfile makes an instance profile, born at that time.
func (a *AWS) makeProfile(p *InstanceProfile, at time.Time) error {
	if err := checkIAMName("instanceProfileName", p.Name, p.Path, 128); err != nil {
		return err
	}
	if nameTaken(a.state.IAM.Profiles, p.Name) {
		return entityExists("Instance Profile", p.Name)
	}
	p.Born = at
	a.state.IAM.Profiles[p.Name] = p
	return nil
}

// setRole puts a role into a profile.
func (a *AWS) setRole(p *InstanceProfile, role string) error {
	if _, err := a.role(&role); err != nil {
		return err
	}
	if p.Role != "" {
		return limitExceeded("InstanceSessionsPerInstanceProfile", "1")
	}
	p.Role = role
	return nil
}

func (a *AWS) createInstanceProfile(in *iam.CreateInstanceProfileInput) (*iam.CreateInstanceProfileOutput, error) {
	p := &InstanceProfile{Name: aws.ToString(in.InstanceProfileName), Path: aws.ToString(in.Path), Tags: iamTags(in.Tags)}
	if err := a.makeProfile(p, a.now()); err != nil {
		return nil, err
	}
	shown := a.showProfile(p)
	return &iam.CreateInstanceProfileOutput{InstanceProfile: &shown}, nil
}

func (a *AWS) deleteInstanceProfile(in *iam.DeleteInstanceProfileInput) (*iam.DeleteInstanceProfileOutput, error) {
	p, err := a.profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, deleteConflict("entity, must remove roles from instance profile first.")
	}
	delete(a.state.IAM.Profiles, p.Name)
	return &iam.DeleteInstanceProfileOutput{}, nil
}

func (a *AWS) addRoleToInstanceProfile(in *iam.AddRoleToInstanceProfileInput) (*iam.AddRoleToInstanceProfileOutput, error) {
	p, err := a.profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	return &iam.AddRoleToInstanceProfileOutput{}, a.setRole(p, aws.ToString(in.RoleName))
}

func (a *AWS) removeRoleFromInstanceProfile(in *iam.RemoveRoleFromInstanceProfileInput) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	p, err := a.profile(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if p.Role != aws.ToString(in.RoleName) {
		return nil, noEntity("The role with name", aws.ToString(in.RoleName))
	}
	p.Role = ""
	return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
}

// RemoveProfile removes an instance profile.
func (a *AWS) RemoveProfile(name string) { delete(a.state.IAM.Profiles, name) }
