package bootdata

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The folders of objects with boot data in a bucket.
const (
	ControlPlaneFolder = "control-plane/"
	WorkersFolder      = "node/"
	PoolFolder         = WorkersFolder + "machine-pool/" // not machine-pool/, where a rule of CAPA deletes objects after a day
)

// Unused is stored boot data of machines and pools that the manifest does not have: a run has stored it, and was interrupted before it has launched them.
// It may contain passwords and keys.
type Unused struct {
	// Used is the boot data of the machines and pools that the manifest has, or that are deleted with their boot data.
	Used []Place
	// Prefixes are those of the names of secrets that runs have recorded and the manifest does not need.
	Prefixes []string
	// Parameters says that the manifest has machines whose boot data is in Parameter Store.
	Parameters bool
	Bucket     *graph.Ref[s3.BucketState] // nil if the manifest has none
}

// Place is where boot data is stored.
type Place struct {
	Backend boot.Backend
	Prefix  string // of the names of secrets or parameters
	Object  string // key in the bucket
}

// Place returns where the data is stored.
func (d *Data) Place() Place {
	return Place{Backend: d.Backend, Prefix: boot.Prefix(d.Backend, d.Prefix, d.ID), Object: d.Object}
}

// UnusedState is where the data is.
type UnusedState struct{ parts []*left }

// left is unused data that is stored in one place.
type left struct {
	data  *Data
	names []string
}

// CloudID implements graph.State.
func (s UnusedState) CloudID() string {
	var names []string
	for _, x := range s.parts {
		names = append(names, x.names...)
	}
	return strings.Join(names, ", ")
}

var (
	_ graph.Desired[UnusedState] = (*Unused)(nil)
	_ graph.Deleter[UnusedState] = (*Unused)(nil)
)

// Needs implements graph.Desired.
func (u *Unused) Needs() []graph.Edge { return graph.Exists(u.Bucket) }

// Diff implements graph.Desired.
func (u *Unused) Diff(*UnusedState) plan.Diff { return nil }

// Find implements graph.Desired.
func (u *Unused) Find(ctx context.Context, c *cloud.Clients) (*UnusedState, error) {
	s := &UnusedState{}
	for _, find := range []func(context.Context, *cloud.Clients, *UnusedState) error{u.findSecrets, u.findParameters, u.findObjects} {
		if err := find(ctx, c, s); err != nil {
			return nil, err
		}
	}
	if len(s.parts) == 0 {
		return nil, nil
	}
	return s, nil
}

// findSecrets finds the secrets that are in the record of names.
func (u *Unused) findSecrets(ctx context.Context, c *cloud.Clients, s *UnusedState) error {
	for _, prefix := range u.Prefixes {
		d := &Data{Backend: boot.SecretsManager, Prefix: prefix}
		names, err := d.stored(ctx, c)
		if err != nil {
			return fmt.Errorf("secret %s: %w", prefix, err)
		}
		s.add(d, names)
	}
	return nil
}

func (u *Unused) findParameters(ctx context.Context, c *cloud.Clients, s *UnusedState) error {
	if !u.Parameters {
		return nil
	}
	names, err := secrets.TaggedParameters(ctx, c)
	if err != nil {
		return err
	}
	s.add(&Data{Backend: boot.ParameterStore}, slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return u.uses(boot.ParameterStore, func(p Place) bool { return strings.HasPrefix(name, p.Prefix+"/") })
	}))
	return nil
}

func (u *Unused) findObjects(ctx context.Context, c *cloud.Clients, s *UnusedState) error {
	bucket, ok := u.Bucket.Found()
	if !ok {
		return nil
	}
	var keys []string
	for _, folder := range []string{ControlPlaneFolder, WorkersFolder} {
		for p := awss3.NewListObjectsV2Paginator(c.S3, &awss3.ListObjectsV2Input{Bucket: &bucket.Name, Prefix: &folder}); p.HasMorePages(); {
			page, err := p.NextPage(cloud.Listing(ctx))
			if err != nil {
				return cloud.IgnoreNotFound(err)
			}
			for _, o := range page.Contents {
				if key := aws.ToString(o.Key); !u.uses(boot.ObjectStore, func(p Place) bool { return p.Object == key }) {
					keys = append(keys, key)
				}
			}
		}
	}
	s.add(&Data{Backend: boot.ObjectStore, Bucket: u.Bucket}, keys)
	return nil
}

// uses reports whether boot data of the manifest matches.
func (u *Unused) uses(b boot.Backend, match func(p Place) bool) bool {
	return slices.ContainsFunc(u.Used, func(p Place) bool { return p.Backend == b && match(p) })
}

func (s *UnusedState) add(d *Data, names []string) {
	if len(names) > 0 {
		s.parts = append(s.parts, &left{d, names})
	}
}

// Delete implements graph.Deleter.
func (u *Unused) Delete(ctx context.Context, c *cloud.Clients, have *UnusedState) error {
	for _, x := range have.parts {
		if err := x.data.removeAll(ctx, c, x.names); err != nil {
			return err
		}
	}
	return nil
}
