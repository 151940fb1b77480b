package replica

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

func (r *reader) askedProfiles() []string {
	names := sim.BootstrapProfiles()
	for _, in := range of[iam.GetInstanceProfileInput](r.Asked) {
		names = append(names, aws.ToString(in.InstanceProfileName))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *reader) profile(ctx context.Context, c *iam.Client, s *sim.State, name string) error {
	out, err := c.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p := out.InstanceProfile
	own := &sim.InstanceProfile{Name: aws.ToString(p.InstanceProfileName), Path: aws.ToString(p.Path), Tags: roleTags(p.Tags), Born: r.since(p.CreateDate)}
	s.Profiles[own.Name] = own
	for _, in := range p.Roles {
		own.Role = aws.ToString(in.RoleName)
		if err := r.role(ctx, c, s, own.Role); err != nil {
			return err
		}
	}
	return nil
}
