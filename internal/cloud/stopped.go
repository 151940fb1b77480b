package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Stopped is the part of a record for a cluster whose machines are stopped, or whose machines a run has begun to stop or to start.
type Stopped struct {
	Since    time.Time           `json:"since"`
	Starting bool                `json:"starting,omitempty"` // a run has begun to start them
	Pools    map[string]PoolSize `json:"pools,omitempty"`    // the sizes before, by the kind and the name of the pool
	Members  int                 `json:"members,omitempty"`  // machines of the control plane, each with a member of etcd; 0 if a run of an older version has stopped them
}

// PoolSize is the size of an Auto Scaling group or of a node group.
type PoolSize struct {
	Min     int32 `json:"min"`
	Max     int32 `json:"max"`
	Desired int32 `json:"desired"`
}

// mostStopped is how many characters of a record are left for Stopped.
const mostStopped = StandardParameter - 1024

// ErrTooManyPools says that a record of the lock has no room for the sizes of all pools.
var ErrTooManyPools = errors.New("the cluster has too many pools: the record of the lock has no room for their sizes")

// Fits returns ErrTooManyPools if a record has no room for s.
func (s *Stopped) Fits() error {
	text, err := json.Marshal(s)
	if err == nil && len(text) > mostStopped {
		err = ErrTooManyPools
	}
	return err
}

// Stopped returns the part of the record about stopped machines; nil if the cluster is not stopped.
func (l *Lock) Stopped() *Stopped { return l.self.Stopped }

// SetStopped records that the machines are stopped; nil if they run.
func (l *Lock) SetStopped(ctx context.Context, s *Stopped) error {
	return l.record(ctx, func(h *Holder) { h.Stopped = s })
}
