package secrets

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// DeletionProtectionKind is the name of the kind of the deletion protection.
const DeletionProtectionKind = "deletion-protection"

// DeletionProtection is the SSM parameter that protects a cluster from deletion. While it exists, every deletion is
// refused, with any manifest and by name. "cluster create" deletes it if the annotation is "false".
type DeletionProtection struct{ Tags cloud.Tags }

// DeletionProtectionState is the path of the parameter. Its value does not matter.
type DeletionProtectionState struct{ Path string }

// CloudID implements graph.State.
func (s DeletionProtectionState) CloudID() string { return s.Path }

var (
	_ graph.Desired[DeletionProtectionState] = (*DeletionProtection)(nil)
	_ graph.Creator[DeletionProtectionState] = (*DeletionProtection)(nil)
	_ graph.Deleter[DeletionProtectionState] = (*DeletionProtection)(nil)
)

// Needs implements graph.Desired.
func (*DeletionProtection) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (*DeletionProtection) Find(ctx context.Context, c *cloud.Clients) (*DeletionProtectionState, error) {
	return ReadDeletionProtection(ctx, c)
}

// Diff implements graph.Desired.
func (*DeletionProtection) Diff(*DeletionProtectionState) plan.Diff { return nil }

// Create implements graph.Creator.
func (p *DeletionProtection) Create(ctx context.Context, c *cloud.Clients) (*DeletionProtectionState, error) {
	s := DeletionProtectionState{c.ParameterPath(DeletionProtectionKind)}
	in := &ssm.PutParameterInput{Name: &s.Path, Value: aws.String("true"), Type: types.ParameterTypeString}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(p.Tags[key])})
	}
	_, err := c.SSM.PutParameter(ctx, in)
	return &s, err
}

// Delete implements graph.Deleter.
func (*DeletionProtection) Delete(ctx context.Context, c *cloud.Clients, have *DeletionProtectionState) error {
	_, err := c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &have.Path})
	return err
}

// ReadDeletionProtection returns the deletion protection of the cluster; nil if it has none.
func ReadDeletionProtection(ctx context.Context, c *cloud.Clients) (*DeletionProtectionState, error) {
	value, err := Record(ctx, c, DeletionProtectionKind)
	if err != nil || value == "" {
		return nil, err
	}
	return &DeletionProtectionState{c.ParameterPath(DeletionProtectionKind)}, nil
}

// deletionProtectionKind declares the deletion protection.
func deletionProtectionKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: DeletionProtectionKind, Area: plan.AreaSecurity, Secret: true, Single: true,
		Statement: kind.Parameters, Actions: recordActions(),
	}, kind.Functions[DeletionProtectionState]{
		Delete: &DeletionProtection{},
		List:   onlyOne(ReadDeletionProtection),
	})
}
