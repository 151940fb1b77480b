package eks

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Deletion is the deletion of a cluster or one of its parts.
type Deletion struct {
	Deleted       time.Time // its start; zero: none
	DeleteFailure string    // see Faults
}

func (d *Deletion) over(now time.Time, takes time.Duration) bool {
	return !d.Deleted.IsZero() && now.Sub(d.Deleted) >= takes
}

// gone reports whether a deletion that takes some time is complete.
func (d *Deletion) gone(now time.Time, takes time.Duration) bool {
	return d.over(now, takes) && d.DeleteFailure == ""
}

func (d *Deletion) deletionFailed(now time.Time, takes time.Duration) bool {
	return d.over(now, takes) && d.DeleteFailure != ""
}

// part returns a cluster and one of its parts. If there is no such part, missing is the error.
func part[T any](find func(*string) (*Cluster, error), cluster *string, parts func(*Cluster) map[string]*T, name *string, missing error) (*Cluster, *T, error) {
	c, err := find(cluster)
	if err != nil {
		return nil, nil, err
	}
	if x, ok := parts(c)[aws.ToString(name)]; ok {
		return c, x, nil
	}
	return nil, nil, missing
}

// visible returns the names of the parts that list calls already show.
func visible[T any](svc *Service, all map[string]T, born func(T) time.Time) (names []string) {
	for _, name := range core.SortedKeys(all) {
		if svc.Visible(born(all[name])) {
			names = append(names, name)
		}
	}
	return names
}
