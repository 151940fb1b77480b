package plan

import (
	"fmt"
	"time"
)

// StoppedError says that the machines of a cluster are stopped. It is the reason of a RefusedError.
type StoppedError struct {
	Cluster, Region string
	Since           time.Time
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf(
		"cluster %s has been stopped since %s: start it first with 'clusterawsadm cluster start %[1]s --region %[3]s'",
		e.Cluster, e.Since.UTC().Format(time.RFC3339), e.Region,
	)
}
