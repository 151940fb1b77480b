package bootdata

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Left is the stored boot data of a pool that is not in the manifest any more. The launch template of the pool still exists, and its user data says
// where the boot data is.
type Left struct {
	Name     string                     // of the pool
	Template string                     // name of the launch template
	Bucket   *graph.Ref[s3.BucketState] // nil if the manifest has none
	Pool     graph.Resource             // deleted first: its machines read the data
}

// LeftState is where the data is.
type LeftState struct {
	SpentState
	data *Data
}

var (
	_ graph.Desired[LeftState] = (*Left)(nil)
	_ graph.Deleter[LeftState] = (*Left)(nil)
)

// Needs implements graph.Desired.
func (l *Left) Needs() []graph.Edge { return append(graph.Awaits(l.Pool), graph.Exists(l.Bucket)...) }

// Diff implements graph.Desired.
func (l *Left) Diff(*LeftState) plan.Diff { return nil }

// Find implements graph.Desired. It returns nil for data that is in the user data itself.
func (l *Left) Find(ctx context.Context, c *cloud.Clients) (*LeftState, error) {
	raw, err := ec2.LaunchTemplateUserData(ctx, c, l.Template)
	if err != nil {
		return nil, cloud.IgnoreNotFound(err)
	}
	data := l.storedAt(raw)
	if data == nil {
		return nil, nil
	}
	names, err := data.stored(ctx, c)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return &LeftState{SpentState{names}, data}, nil
}

// storedAt returns where user data says that the boot data is. It returns nil if the user data is the boot data itself, or if it names a bucket
// that is not the bucket of the cluster.
func (l *Left) storedAt(raw []byte) *Data {
	plain, err := boot.Decompress(raw)
	if err != nil {
		return nil
	}
	if f, is := boot.FetchOf(plain); is {
		return &Data{Backend: f.Backend, Prefix: f.Prefix}
	}
	bucket, key, err := objectAt(boot.IgnitionSource(plain))
	if err != nil || l.Bucket == nil || bucket != l.Bucket.CloudID() {
		return nil
	}
	return &Data{Backend: boot.ObjectStore, Object: key, Bucket: l.Bucket}
}

// Delete implements graph.Deleter.
func (l *Left) Delete(ctx context.Context, c *cloud.Clients, have *LeftState) error {
	return have.data.removeAll(ctx, c, have.Names)
}
