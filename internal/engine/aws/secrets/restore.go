package secrets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// RestoreRecordKind is the name of the kind of the record of a restore.
const RestoreRecordKind = "restore"

// Restore is the SSM parameter that records that the control plane begins with a snapshot of etcd,
// and the object in a bucket from which the first machine loads it. It is written before that
// machine is launched, so that a run which continues never begins with an empty etcd.
type Restore struct {
	Want  RestoreState
	PKI   *graph.Ref[PKIState]
	Seal  func(w io.Writer, keys *PKIState) error // writes the object; nil: an earlier run has stored it
	After []graph.Edge
}

// RestoreState is the value of the parameter, a JSON object.
type RestoreState struct {
	Began    time.Time `json:"began"`
	Snapshot string    `json:"snapshot"` // SHA-256 of the snapshot
	Database string    `json:"database"` // SHA-256 of the database that is made of it
	Revision int64     `json:"revision"`
	Taken    time.Time `json:"taken"`
	Bucket   string    `json:"bucket"`
	Object   string    `json:"object"` // key
	// NoMachines says that no machine of the cluster was left when the restore began, so that all Nodes
	// of the snapshot are lost.
	NoMachines bool `json:"noMachines,omitempty"`
	Done       bool `json:"done,omitempty"` // the control plane runs with it, and the object is deleted

	Stored    bool   `json:"-"` // the object is there
	parameter string // only in listings
}

// CloudID implements graph.State.
func (s RestoreState) CloudID() string { return cmp.Or(s.parameter, s.Bucket+"/"+s.Object) }

var (
	_ graph.Desired[RestoreState] = (*Restore)(nil)
	_ graph.Creator[RestoreState] = (*Restore)(nil)
	_ graph.Updater[RestoreState] = (*Restore)(nil)
	_ graph.Deleter[RestoreState] = (*Restore)(nil)
)

// Needs implements graph.Desired.
func (r *Restore) Needs() []graph.Edge { return append(graph.On(r.PKI), r.After...) }

// Find implements graph.Desired.
func (r *Restore) Find(ctx context.Context, c *cloud.Clients) (*RestoreState, error) {
	s, err := ReadRestore(ctx, c)
	if s == nil || err != nil || s.Done {
		return s, err
	}
	s.Stored, err = s.stored(ctx, c)
	return s, err
}

func (s *RestoreState) stored(ctx context.Context, c *cloud.Clients) (bool, error) {
	_, err := c.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.Bucket, Key: &s.Object})
	if cloud.NotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Diff implements graph.Desired.
func (r *Restore) Diff(have *RestoreState) (d plan.Diff) {
	if !have.Began.Equal(r.Want.Began) || have.Snapshot != r.Want.Snapshot {
		d.Set("snapshot", have.Snapshot, r.Want.Snapshot)
	} else if !have.Done && !have.Stored {
		d.Set("object", "", r.Want.Bucket+"/"+r.Want.Object)
	}
	return d
}

// Create implements graph.Creator.
func (r *Restore) Create(ctx context.Context, c *cloud.Clients) (*RestoreState, error) {
	return r.Update(ctx, c, nil, nil)
}

// Update implements graph.Updater.
func (r *Restore) Update(ctx context.Context, c *cloud.Clients, _ *RestoreState, _ plan.Diff) (*RestoreState, error) {
	keys, ok := r.PKI.Found()
	if r.Seal == nil || !ok {
		return nil, errors.New("the snapshot that an earlier run has stored is gone: run again with --restore")
	}
	s := r.Want
	if err := s.put(ctx, c); err != nil {
		return nil, err
	}
	f, err := files.NewTemporary()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a temporary file
	if err := r.Seal(f, &keys); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	_, err = c.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.Bucket, Key: &s.Object, Body: f.File}) // encrypted as the bucket says, also with a KMS key
	if err != nil {
		return nil, fmt.Errorf("s3://%s/%s: %w", s.Bucket, s.Object, err)
	}
	s.Stored = true
	return &s, nil
}

func (s *RestoreState) put(ctx context.Context, c *cloud.Clients) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = c.SSM.PutParameter(cloud.NeverLate(ctx), &ssm.PutParameterInput{ // a late one would begin the restore again
		Name: aws.String(c.ParameterPath(restoreParameter)), Value: aws.String(string(value)), Type: types.ParameterTypeString, Overwrite: aws.Bool(true),
	})
	return err
}

// Delete implements graph.Deleter.
func (r *Restore) Delete(ctx context.Context, c *cloud.Clients, have *RestoreState) error {
	if !have.Done {
		if err := have.removeObject(ctx, c); err != nil {
			return err
		}
	}
	_, err := c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(c.ParameterPath(restoreParameter))})
	return err
}

func (s *RestoreState) removeObject(ctx context.Context, c *cloud.Clients) error {
	_, err := c.S3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.Bucket, Key: &s.Object})
	if err = cloud.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("s3://%s/%s: %w", s.Bucket, s.Object, err)
	}
	return nil
}

const restoreParameter = "restore"

// ReadRestore returns the record of the last restore of the cluster; nil if there was none.
func ReadRestore(ctx context.Context, c *cloud.Clients) (*RestoreState, error) {
	value, err := Record(ctx, c, restoreParameter)
	if err != nil || value == "" {
		return nil, err
	}
	var s RestoreState
	if err := json.Unmarshal([]byte(value), &s); err != nil || s.Snapshot == "" {
		return nil, fmt.Errorf("parameter %s: the value is not one of this program: %q", c.ParameterPath(restoreParameter), value)
	}
	return &s, nil
}

// Restored is the end of a restore: the control plane runs, so its object is deleted.
type Restored struct {
	Record *graph.Ref[RestoreState]
	After  []graph.Edge // the Nodes of the control plane
}

var (
	_ graph.Desired[RestoreState] = (*Restored)(nil)
	_ graph.Updater[RestoreState] = (*Restored)(nil)
)

// Needs implements graph.Desired.
func (r *Restored) Needs() []graph.Edge { return append(graph.On(r.Record), r.After...) }

// Find implements graph.Desired.
func (r *Restored) Find(ctx context.Context, c *cloud.Clients) (*RestoreState, error) {
	return ReadRestore(ctx, c)
}

// Diff implements graph.Desired.
func (r *Restored) Diff(have *RestoreState) (d plan.Diff) {
	if !have.Done {
		d.Set("state", "restoring", "done")
	}
	return d
}

// Update implements graph.Updater.
func (r *Restored) Update(ctx context.Context, c *cloud.Clients, have *RestoreState, _ plan.Diff) (*RestoreState, error) {
	s := *have
	if err := s.removeObject(ctx, c); err != nil {
		return nil, err
	}
	s.Done = true
	return &s, s.put(ctx, c)
}

// restoreKind declares the record of a restore.
func restoreKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: RestoreRecordKind, Area: plan.AreaControlPlane, Secret: true, Single: true,
		Statement: kind.Parameters, Actions: recordActions(),
	}, kind.Functions[RestoreState]{
		List: listRestore, Delete: &Restore{},
		Find: func(ctx context.Context, c *cloud.Clients, _ RestoreState) (*RestoreState, error) {
			return ReadRestore(ctx, c)
		},
	})
}

func listRestore(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]RestoreState, error) {
	s, err := ReadRestore(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	s.parameter = c.ParameterPath(restoreParameter)
	return []RestoreState{*s}, nil
}

// Check implements graph.Checked.
func (r *Restore) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if r.Seal != nil {
		return "", nil
	}
	if stored, err := r.Want.stored(ctx, c); stored || err != nil {
		return "", err
	}
	return "a restore was begun, and its snapshot is not stored any more: continue it with --restore FILE", nil
}
