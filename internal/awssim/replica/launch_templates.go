package replica

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// templates reads launch templates with the versions that the account has. Their user data
// stays behind: what is not a secret in it cannot be told from what is.
func (r *reader) templates(ctx context.Context) error {
	c, found := ec2.NewFromConfig(r.Config), sim.Table[*sim.LaunchTemplate]{}
	err := pages(ctx, ec2.NewDescribeLaunchTemplatesPaginator(c, &ec2.DescribeLaunchTemplatesInput{}), func(p *ec2.DescribeLaunchTemplatesOutput) {
		for _, t := range p.LaunchTemplates {
			own := &sim.LaunchTemplate{
				Thing: r.thing(t.LaunchTemplateId, tagsOf(t.Tags)), Name: aws.ToString(t.LaunchTemplateName), Default: aws.ToInt64(t.DefaultVersionNumber),
				Last: aws.ToInt64(t.LatestVersionNumber), Versions: map[string]*sim.LaunchTemplateVersion{},
			}
			own.Born = r.since(t.CreateTime)
			found[own.ID] = own
		}
	})
	if err != nil {
		return err
	}
	for id, t := range found {
		if !r.Asked.about(id, t.Name) {
			t.Versions[fmt.Sprint(t.Last)] = &sim.LaunchTemplateVersion{Number: t.Last, Born: t.Born}
			continue
		}
		p := ec2.NewDescribeLaunchTemplateVersionsPaginator(c, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id})
		if err := pages(ctx, p, func(p *ec2.DescribeLaunchTemplateVersionsOutput) { addVersions(t, p) }); err != nil {
			return err
		}
	}
	r.to.EC2.LaunchTemplates = found
	return nil
}

// addVersions adds versions of a launch template, without user data.
func addVersions(t *sim.LaunchTemplate, p *ec2.DescribeLaunchTemplateVersionsOutput) {
	for _, v := range p.LaunchTemplateVersions {
		own := &sim.LaunchTemplateVersion{Number: aws.ToInt64(v.VersionNumber), Description: aws.ToString(v.VersionDescription), Born: t.Born}
		if v.LaunchTemplateData != nil {
			data := *v.LaunchTemplateData
			data.UserData = nil
			own.Data = core.Recast[types.RequestLaunchTemplateData](data)
		}
		t.Versions[fmt.Sprint(own.Number)] = own
	}
}
