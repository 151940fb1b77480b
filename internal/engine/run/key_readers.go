package run

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// readAllParameters are AWS managed policies that allow ssm:GetParameter for all parameters
// of the account ("AWS managed policy reference"). The first one is attached to the machines
// of many accounts, for Session Manager.
func readAllParameters() []string {
	return []string{
		"AmazonSSMManagedInstanceCore",
		"AmazonEC2RoleforSSM",
		"AmazonSSMReadOnlyAccess",
		"AmazonSSMFullAccess",
		"ReadOnlyAccess",
		"PowerUserAccess",
		"AdministratorAccess",
	}
}

// warnOfKeyReaders warns if machines of the cluster can read the keys of its certificate
// authorities, which this run is about to store. It looks at the names of policies only, and
// not without permission to list them.
func (p *planning) warnOfKeyReaders(ctx context.Context) {
	stores := slices.ContainsFunc(p.Plan.Steps, func(s plan.Step) bool {
		return s.Resource.Kind() == secrets.PKIKind && s.Action == plan.Create
	})
	if !stores || p.Cloud.KMSKey != "" {
		return
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	for _, n := range p.Built.Resources() {
		profile, is := n.Observed().(*ec2.Named)
		if !is || n.ID().Kind() != ec2.InstanceProfileKind {
			continue
		}
		arn, err := ec2.RoleOfProfile(ctx, p.Cloud, profile.Name)
		if err != nil || arn == "" {
			continue
		}
		role := cloud.LastPart(arn)
		attached, err := iam.AttachedPolicies(ctx, p.Cloud, role)
		if err != nil {
			continue
		}
		var because []string
		for _, policy := range attached {
			if name := cloud.LastPart(policy); slices.Contains(readAllParameters(), name) {
				because = append(because, name)
			}
		}
		if len(because) > 0 {
			p.Warn(
				"machines with the role %s can read the keys of the cluster in SSM Parameter Store, because of %s: encrypt them with a key of your own (--kms-key), or deny the role ssm:GetParameter* for parameter%s",
				role,
				text.Several(because),
				p.Cloud.ParameterPath("*"),
			)
		}
	}
}
