package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// InstanceProfileByName looks up an instance profile. Without permission to read it, the
// lookup assumes that it exists.
func InstanceProfileByName(name string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		n := Named{Name: name}
		out, err := InstanceProfile(ctx, c, name)
		switch {
		case err == nil && len(out.InstanceProfile.Roles) == 0: // RunInstances answers InvalidParameterValue
			return nil, fmt.Errorf(
				"instance profile %s has no role: add one (aws iam add-role-to-instance-profile --instance-profile-name %[1]s --role-name ROLE), or use another one",
				name,
			)
		case cloud.NotFound(err):
			if near := suggest.Nearest(name, stockProfiles()); near != "" && near != name {
				return nil, fmt.Errorf("instance profile %s does not exist: did you mean %s?", name, near)
			}
			return nil, fmt.Errorf(
				"instance profile %s does not exist: `clusterawsadm bootstrap iam create-cloudformation-stack` creates those of Cluster API Provider AWS",
				name,
			)
		case cloud.Denied(err):
			return &n, nil
		}
		return &n, err
	}
}

// stockProfiles are the instance profiles for machines in the stack of CAPA's bootstrap.
func stockProfiles() []string {
	return []string{"control-plane.cluster-api-provider-aws.sigs.k8s.io", "nodes.cluster-api-provider-aws.sigs.k8s.io"}
}

// InstanceProfile returns an instance profile with its role.
func InstanceProfile(ctx context.Context, c *cloud.Clients, name string) (*iam.GetInstanceProfileOutput, error) {
	return cloud.Remember(ctx, c, "instance profile "+name, func(ctx context.Context) (*iam.GetInstanceProfileOutput, error) {
		return c.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	})
}

// RoleOfProfile returns the ARN of the role of an instance profile; "" if there is none,
// or without permission to read it.
func RoleOfProfile(ctx context.Context, c *cloud.Clients, name string) (string, error) {
	out, err := InstanceProfile(ctx, c, name)
	switch {
	case cloud.NotFound(err) || cloud.Denied(err):
		return "", nil
	case err != nil:
		return "", err
	}
	for _, r := range out.InstanceProfile.Roles {
		return aws.ToString(r.Arn), nil
	}
	return "", nil
}

// InstanceProfileKind is the name of the kind of instance profiles.
const InstanceProfileKind = "instance-profile"

// instanceProfileKind declares instance profiles. A cluster uses existing ones and never
// creates any.
func instanceProfileKind() *kind.Kind {
	return &kind.Kind{Name: InstanceProfileKind, Area: plan.AreaPrerequisites, ReadActions: []string{"iam:GetInstanceProfile"}}
}
