package secrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// BootstrapNames is the record of the names of the secrets with bootstrap data, in SSM
// parameters. It is written before the first secret, so that a deletion finds them all:
// "ListSecrets might not reflect changes from the last five minutes" (AWS Secrets Manager
// API reference).
type BootstrapNames struct {
	Prefixes []string // of the names of secrets
}

// Add adds the prefix of a machine's secrets to the record.
func (b *BootstrapNames) Add(prefix string) {
	if b != nil && !slices.Contains(b.Prefixes, prefix) {
		b.Prefixes = append(b.Prefixes, prefix)
	}
}

// BootstrapNamesState is the record.
type BootstrapNamesState struct {
	Path  string
	Parts [][]string // the prefixes in each parameter
}

// CloudID implements graph.State.
func (s BootstrapNamesState) CloudID() string { return s.Path }

var _ graph.Managed[BootstrapNamesState] = (*BootstrapNames)(nil)

// Needs implements graph.Desired.
func (b *BootstrapNames) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (b *BootstrapNames) Find(ctx context.Context, c *cloud.Clients) (*BootstrapNamesState, error) {
	s, err := bootstrapNames(ctx, c)
	if err == nil && s == nil && len(b.Prefixes) == 0 {
		s = &BootstrapNamesState{Path: c.ParameterPath(namesParameter)} // there is nothing to record
	}
	return s, err
}

// Identify implements graph.Identified.
func (b *BootstrapNames) Identify(ctx context.Context, c *cloud.Clients, _ *BootstrapNamesState) (*BootstrapNamesState, error) {
	return bootstrapNames(ctx, c)
}

// Diff implements graph.Desired. Prefixes that are not used any more stay: their secrets
// may still exist.
func (b *BootstrapNames) Diff(have *BootstrapNamesState) (d plan.Diff) {
	if n := len(b.missing(have)); n > 0 {
		d.Set("names", fmt.Sprintf("%d missing", n), "complete")
	}
	return d
}

func (b *BootstrapNames) missing(have *BootstrapNamesState) []string {
	known := slices.Concat(have.Parts...)
	return slices.DeleteFunc(slices.Clone(b.Prefixes), func(p string) bool { return slices.Contains(known, p) })
}

// Create implements graph.Creator.
func (b *BootstrapNames) Create(ctx context.Context, c *cloud.Clients) (*BootstrapNamesState, error) {
	return b.Update(ctx, c, &BootstrapNamesState{Path: c.ParameterPath(namesParameter)}, nil)
}

// Update implements graph.Updater. It fills the last parameter, and then creates others.
func (b *BootstrapNames) Update(ctx context.Context, c *cloud.Clients, have *BootstrapNamesState, _ plan.Diff) (*BootstrapNamesState, error) {
	after, missing := *have, b.missing(have)
	after.Parts = slices.Clone(have.Parts)
	last := max(len(after.Parts)-1, 0)
	for n := last; len(missing) > 0; n++ {
		if n == len(after.Parts) {
			after.Parts = append(after.Parts, nil)
		}
		part := slices.Clone(after.Parts[n])
		for len(missing) > 0 && len(strings.Join(append(part, missing[0]), "\n")) <= cloud.StandardParameter {
			part, missing = append(part, missing[0]), missing[1:]
		}
		if len(part) == len(after.Parts[n]) {
			continue
		}
		_, err := c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
			Name: aws.String(c.ParameterPath(namesParameter, fmt.Sprint(n))), Value: aws.String(strings.Join(part, "\n")),
			Type: types.ParameterTypeString, Overwrite: aws.Bool(true),
		})
		if err != nil {
			return nil, err
		}
		after.Parts[n] = part
	}
	return &after, nil
}

// Delete implements graph.Deleter.
func (b *BootstrapNames) Delete(ctx context.Context, c *cloud.Clients, have *BootstrapNamesState) error {
	for n := range slices.Backward(have.Parts) {
		_, err := c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(c.ParameterPath(namesParameter, fmt.Sprint(n)))})
		if cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// namesParameter is the last part of the path of the record; its parameters are numbered.
const namesParameter = "bootstrap"

// bootstrapNames reads the record; nil if there is none. Parameters are read by name,
// because a listing may be late.
func bootstrapNames(ctx context.Context, c *cloud.Clients) (*BootstrapNamesState, error) {
	s := &BootstrapNamesState{Path: c.ParameterPath(namesParameter)}
	for n := 0; ; n++ {
		text, err := Record(ctx, c, fmt.Sprintf("%s/%d", namesParameter, n))
		if err != nil {
			return nil, err
		}
		if text == "" {
			break
		}
		s.Parts = append(s.Parts, strings.Split(text, "\n"))
	}
	if len(s.Parts) == 0 {
		return nil, nil
	}
	return s, nil
}

// RecordedPrefixes lists the prefixes in the record.
func RecordedPrefixes(ctx context.Context, c *cloud.Clients) ([]string, error) {
	s, err := bootstrapNames(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	return slices.Concat(s.Parts...), nil
}

// RetireBootstrapNames adds the deletion of the record, which no machine of the manifest needs, after that of the secrets.
func RetireBootstrapNames(g *graph.Graph, after []graph.Edge) {
	kind.Retire(g, BootstrapNamesKind, bootstrapNames, &BootstrapNames{}, after)
}

// BootstrapNamesKind is the kind of the record of names.
const BootstrapNamesKind = "bootstrap-names"

// bootstrapNamesKind declares the record. The secrets are deleted before it.
func bootstrapNamesKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: BootstrapNamesKind, Area: plan.AreaSecurity, Secret: true, Single: true,
		Statement: kind.Parameters, Actions: recordActions(),
	}, kind.Functions[BootstrapNamesState]{
		Delete: &BootstrapNames{},
		Find: func(ctx context.Context, c *cloud.Clients, _ BootstrapNamesState) (*BootstrapNamesState, error) {
			return bootstrapNames(ctx, c)
		},
		List:    onlyOne(bootstrapNames),
		Aliases: func(BootstrapNamesState) []string { return []string{namesAlias} },
	})
}

// namesAlias is the alias by which the secrets refer to the record.
const namesAlias = "names of bootstrap secrets"
