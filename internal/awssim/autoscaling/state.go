package autoscaling

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// State is what EC2 Auto Scaling holds.
type State struct {
	Groups map[string]*Group // by name
}

// Group is an Auto Scaling group.
type Group struct {
	Name, ARN         string
	Born              time.Time
	Looked            time.Time // up to when it has been brought
	Retry             time.Time // it launches nothing before
	Deleting          bool
	OfEKS             bool // EKS keeps it at its size; it does nothing itself
	Min, Max, Desired int32
	Subnets           []string
	Template          *TemplateRef                // nil when Mixed is set
	Mixed             *types.MixedInstancesPolicy // nil for one instance type
	Cooldown, Grace   int32                       // seconds
	Warmup            *int32                      // seconds; nil: not set
	Lifetime          int32                       // seconds; 0: no limit
	HealthCheck       string
	Policies          []string
	Rebalance         bool
	Protect           bool // new instances are protected from scale-in
	Suspended         map[string]bool
	Tags              map[string]Tag
	Hooks             map[string]*Hook
	Instances         []*Instance
	Activities        []*Activity        // the oldest first
	Refreshes         []*InstanceRefresh // the oldest first
}

// TemplateRef names a version of a launch template.
type TemplateRef struct{ ID, Version string }

// Tag is a tag of a group.
type Tag struct {
	Value     string
	Propagate bool // to instances that are launched
}

// Hook is a lifecycle hook.
type Hook struct {
	Name, Transition, Result, Target, Role, Metadata string
	Heartbeat                                        int32 // seconds
}

// Instance is an instance of a group. It is forgotten when it has
// terminated.
type Instance struct {
	ID, Zone, Subnet, Type string
	Template               TemplateRef // with the number of the version
	State                  types.LifecycleState
	Since                  time.Time // in that state
	Until                  time.Time // when a hook's time is over
	Lost                   time.Time // when it was first seen not to run; zero: it runs
	Spot, Protected        bool
	Activity               string // under way for it
}

// Activity is one action of a group.
type Activity struct {
	ID, Description, Cause, Message string
	Status                          types.ScalingActivityStatusCode
	Began, Ended                    time.Time
}

// InstanceRefresh replaces the instances of a group.
type InstanceRefresh struct {
	ID, Reason       string
	Status           types.InstanceRefreshStatus
	Began, Ended     time.Time
	Moved            time.Time // when it last got on
	Old              []string  // instances to replace
	Min, Max, Warmup int32     // percent of the desired capacity; seconds
	SkipMatching     bool
}

// Times of Auto Scaling. AWS promises none of them.
const (
	// ScalingLooks is how long a group takes to notice that there is something
	// to do.
	ScalingLooks = 5 * time.Second
	// ScalingNotices is how long it takes a group to find an instance
	// unhealthy that does not run any more.
	ScalingNotices = 30 * time.Second
	// ScalingRetries is how long a group waits after a launch that failed.
	ScalingRetries = time.Minute
	// RefreshGivesUp is how long an instance refresh goes on without getting
	// on.
	RefreshGivesUp = time.Hour
)
