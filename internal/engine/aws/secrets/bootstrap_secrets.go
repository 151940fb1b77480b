package secrets

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secretstypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// BootstrapSecrets are the secrets or parameters with bootstrap data. Control plane
// machines delete theirs after they have read it. A run deletes those of workers after
// they have joined; those of pools exist as long as the cluster.
type BootstrapSecrets struct {
	Backend boot.Backend
	Names   *graph.Ref[BootstrapNamesState]
}

// BootstrapSecretsState are the secrets that exist.
type BootstrapSecretsState struct{ Names []string }

// CloudID implements graph.State.
func (s BootstrapSecretsState) CloudID() string {
	if n := len(s.Names); n > 1 {
		return fmt.Sprintf("%s and %d more", s.Names[0], n-1)
	}
	return s.Names[0]
}

var (
	_ graph.Desired[BootstrapSecretsState] = (*BootstrapSecrets)(nil)
	_ graph.Deleter[BootstrapSecretsState] = (*BootstrapSecrets)(nil)
)

// Needs implements graph.Desired.
func (b *BootstrapSecrets) Needs() []graph.Edge { return graph.Exists(b.Names) }

// Find implements graph.Desired.
func (b *BootstrapSecrets) Find(ctx context.Context, c *cloud.Clients) (*BootstrapSecretsState, error) {
	list := Secrets
	if b.Backend == boot.ParameterStore {
		list = TaggedParameters
	}
	names, err := list(ctx, c)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return &BootstrapSecretsState{names}, nil
}

// Diff implements graph.Desired.
func (b *BootstrapSecrets) Diff(*BootstrapSecretsState) plan.Diff { return nil }

// Delete implements graph.Deleter.
func (b *BootstrapSecrets) Delete(ctx context.Context, c *cloud.Clients, have *BootstrapSecretsState) error {
	for _, name := range have.Names {
		var err error
		if b.Backend == boot.ParameterStore {
			_, err = c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &name})
		} else {
			_, err = c.Secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name, ForceDeleteWithoutRecovery: aws.Bool(true)})
		}
		if cloud.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Secrets lists the names of the cluster's secrets in Secrets Manager: those that have its
// tag or are in the record of names, and exist.
func Secrets(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	return cloud.Remember(ctx, c, "secrets", func(ctx context.Context) ([]string, error) { return listSecrets(ctx, c) })
}

func listSecrets(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	candidates, err := taggedSecrets(ctx, c)
	if err != nil {
		return nil, err
	}
	record, err := bootstrapNames(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range candidates {
		if exists, err := secretExists(ctx, c, name); err != nil {
			return nil, err
		} else if exists {
			names = append(names, name)
		}
	}
	if record == nil {
		return names, nil
	}
	for _, prefix := range slices.Concat(record.Parts...) {
		for n := 0; ; n++ {
			name := boot.ChunkName(boot.SecretsManager, prefix, n)
			if slices.Contains(names, name) {
				continue
			}
			exists, err := secretExists(ctx, c, name)
			if err != nil {
				return nil, err
			}
			if !exists {
				break
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// secretExists reports whether a secret exists. Its answer is current, unlike that of a
// listing.
func secretExists(ctx context.Context, c *cloud.Clients, name string) (bool, error) {
	out, err := c.Secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &name})
	if err != nil {
		return false, cloud.IgnoreNotFound(err)
	}
	return out.DeletedDate == nil, nil
}

// taggedSecrets lists the names of the secrets with the cluster's tag.
func taggedSecrets(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	in := &secretsmanager.ListSecretsInput{Filters: []secretstypes.Filter{{Key: secretstypes.FilterNameStringTypeTagKey, Values: []string{c.OwnerTag()}}}}
	ctx = cloud.Listing(ctx)
	for p := secretsmanager.NewListSecretsPaginator(c.Secrets, in); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range page.SecretList {
			for _, t := range s.Tags { // the filter of ListSecrets matches prefixes
				if aws.ToString(t.Key) == c.OwnerTag() {
					names = append(names, aws.ToString(s.Name))
				}
			}
		}
	}
	return names, nil
}

// TaggedParameters lists the names of the cluster's bootstrap data in Parameter Store.
func TaggedParameters(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	return cloud.Remember(ctx, c, "parameters with boot data", func(ctx context.Context) ([]string, error) { return listParameters(ctx, c) })
}

func listParameters(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	in := &ssm.DescribeParametersInput{ParameterFilters: []ssmtypes.ParameterStringFilter{
		{Key: aws.String("tag:" + c.OwnerTag()), Option: aws.String("Equals"), Values: []string{cloud.Owned}},
	}}
	ctx = cloud.Listing(ctx)
	for p := ssm.NewDescribeParametersPaginator(c.SSM, in); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Parameters {
			names = append(names, aws.ToString(x.Name))
		}
	}
	return names, nil
}

// The names of the kinds of bootstrap data.
const (
	BootstrapSecretsKind    = "bootstrap-secrets"
	BootstrapParametersKind = "bootstrap-parameters"
)

// bootstrapSecretsKind declares bootstrap data in Secrets Manager.
func bootstrapSecretsKind() *kind.Kind {
	functions := bootstrapFunctions(boot.SecretsManager)
	functions.Refers = func(BootstrapSecretsState) []string { return []string{namesAlias} }
	return kind.Of(kind.Kind{
		Name: BootstrapSecretsKind, Area: plan.AreaSecurity, Secret: true, Single: true,
		ReadActions: []string{"secretsmanager:ListSecrets"}, Statement: kind.Secrets,
		Actions: []string{
			"secretsmanager:CreateSecret", "secretsmanager:DeleteSecret", "secretsmanager:DescribeSecret", "secretsmanager:PutSecretValue", "secretsmanager:TagResource",
		},
	}, functions)
}

// bootstrapParametersKind declares bootstrap data in Parameter Store.
func bootstrapParametersKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: BootstrapParametersKind, Area: plan.AreaSecurity, Secret: true, Single: true,
		ReadActions: []string{"ssm:DescribeParameters"}, Statement: kind.Parameters,
		Actions: []string{"ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:PutParameter"},
	}, bootstrapFunctions(boot.ParameterStore))
}

func bootstrapFunctions(backend boot.Backend) kind.Functions[BootstrapSecretsState] {
	b := &BootstrapSecrets{Backend: backend}
	return kind.Functions[BootstrapSecretsState]{
		Delete: b,
		Find: func(ctx context.Context, c *cloud.Clients, _ BootstrapSecretsState) (*BootstrapSecretsState, error) {
			return b.Find(ctx, c)
		},
		List: onlyOne(b.Find),
	}
}
