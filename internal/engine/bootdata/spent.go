package bootdata

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Spent is stored boot data that no machine needs any more, because all machines that
// share it have joined: it may contain passwords and keys, so a run deletes it. A run
// that launches another machine stores it again.
type Spent struct {
	Data  *Data
	Nodes []graph.Resource // of the machines
}

// SpentState are the names of the secrets or parameters, or the key of the object.
type SpentState struct{ Names []string }

// CloudID implements graph.State.
func (s SpentState) CloudID() string { return strings.Join(s.Names, ", ") }

var (
	_ graph.Desired[SpentState] = (*Spent)(nil)
	_ graph.Deleter[SpentState] = (*Spent)(nil)
)

// Needs implements graph.Desired.
func (s *Spent) Needs() []graph.Edge { return graph.Awaits(s.Nodes...) }

// Diff implements graph.Desired.
func (s *Spent) Diff(*SpentState) plan.Diff { return nil }

// Find implements graph.Desired. It returns nil until all machines have joined.
func (s *Spent) Find(ctx context.Context, c *cloud.Clients) (*SpentState, error) {
	if slices.ContainsFunc(s.Nodes, func(n graph.Resource) bool { return n.CloudID() == plan.Unknown }) {
		return nil, nil
	}
	names, err := s.Data.stored(ctx, c)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return &SpentState{names}, nil
}

// Delete implements graph.Deleter.
func (s *Spent) Delete(ctx context.Context, c *cloud.Clients, have *SpentState) error {
	return s.Data.removeAll(ctx, c, have.Names)
}

// stored returns the names under which the data is stored.
func (d *Data) stored(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	switch d.Backend {
	case boot.ObjectStore:
		_, err := c.S3.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: aws.String(d.Bucket.CloudID()), Key: &d.Object})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		return []string{d.Object}, nil
	case boot.ParameterStore:
		return d.storedParameters(ctx, c)
	case boot.SecretsManager:
		return d.storedSecrets(ctx, c)
	case boot.UserData:
	}
	return nil, nil
}

// Lost implements ec2.Losable. A caller who may not read the data does not know.
func (d *Data) Lost(ctx context.Context, c *cloud.Clients, userData []byte) (bool, error) {
	parts := d.partsIn(userData)
	if parts == 0 {
		return false, nil
	}
	names, err := d.stored(ctx, c)
	if cloud.Denied(err) {
		return false, nil
	}
	return err == nil && len(names) < parts, err
}

// partsIn returns how many parts user data loads from where the data is stored; 0 if it does not lead there.
func (d *Data) partsIn(userData []byte) int {
	plain, err := boot.Decompress(userData)
	if err != nil || d.Plain != nil {
		return 0
	}
	if f, is := boot.FetchOf(plain); is {
		if f.Backend == d.Backend && f.Prefix == boot.Prefix(d.Backend, d.Prefix, d.ID) {
			return f.Chunks
		}
		return 0
	}
	bucket, key, err := objectAt(boot.IgnitionSource(plain))
	if err == nil && d.Backend == boot.ObjectStore && key == d.Object && bucket == d.Bucket.CloudID() {
		return 1
	}
	return 0
}

// storedSecrets asks for each name, because ListSecrets may omit changes of the last five
// minutes (AWS Secrets Manager API reference, ListSecrets).
func (d *Data) storedSecrets(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	for {
		name := boot.ChunkName(d.Backend, boot.Prefix(d.Backend, d.Prefix, d.ID), len(names))
		out, err := c.Secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &name})
		if cloud.NotFound(err) || err == nil && out.DeletedDate != nil {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
}

func (d *Data) storedParameters(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	all, err := secrets.TaggedParameters(ctx, c)
	prefix := boot.Prefix(d.Backend, d.Prefix, d.ID) + "/"
	for _, name := range all {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// removeAll deletes the stored data. The first part is deleted last, because it is looked for first.
func (d *Data) removeAll(ctx context.Context, c *cloud.Clients, names []string) error {
	for _, name := range slices.Backward(names) {
		if err := d.remove(ctx, c, name); cloud.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// remove deletes a part of the stored data.
func (d *Data) remove(ctx context.Context, c *cloud.Clients, name string) (err error) {
	switch d.Backend {
	case boot.ObjectStore:
		_, err = c.S3.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: aws.String(d.Bucket.CloudID()), Key: &name})
	case boot.ParameterStore:
		_, err = c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &name})
	case boot.SecretsManager:
		_, err = c.Secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name, ForceDeleteWithoutRecovery: aws.Bool(true)})
	case boot.UserData:
	}
	return err
}

// Kinds lists the kinds of this package. Without its machines, boot data is found by its
// tags: see package secrets.
func Kinds() []*kind.Kind {
	return []*kind.Kind{{Name: "boot-data", Area: plan.AreaSecurity}}
}
