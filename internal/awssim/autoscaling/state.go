package autoscaling

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// State is the state of EC2 Auto Scaling.
type State struct {
	Groups map[string]*Group // by name

	// RefreshEnds is how instance refreshes end after a minute: "Failed: reason", before they replace
	// any instance; "" if they replace them.
	RefreshEnds string `json:",omitempty"`
}

// Group is an Auto Scaling group.
type Group struct {
	Name, ARN         string
	Born              time.Time
	Looked            time.Time // time of the last step
	Retry             time.Time // no launch before
	Deleting          bool
	OfEKS             bool // a node group of EKS: EKS controls its size
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
	Deletion          types.DeletionProtection
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
	Propagate bool // to new instances
}

// Hook is a lifecycle hook.
type Hook struct {
	Name, Transition, Result, Target, Role, Metadata string
	Heartbeat                                        int32 // seconds
}

// Instance is an instance of a group. It is removed after termination.
type Instance struct {
	ID, Zone, Subnet, Type string
	Template               TemplateRef // with the version number
	State                  types.LifecycleState
	Since                  time.Time // start of the current state
	Until                  time.Time // when the time of the hook ends
	Lost                   time.Time // when the group noticed that it does not run; zero: it runs
	Spot, Protected        bool
	Activity               string // ID of the activity in progress
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
	Moved            time.Time // last progress
	Old              []string  // instances to replace, those that differ from the template first
	Min, Max, Warmup int32     // percent of the desired capacity; seconds
	MaxGiven         bool      // the call has a maximum
	Checkpoints      []int32   // percent of the instances, ascending; none: 100
	Delay            int32     // seconds at a checkpoint
	Reached          time.Time // when the current checkpoint was reached; zero: it was not
	SkipMatching     bool
}

// Durations in Auto Scaling. AWS does not document them.
const (
	// ScalingLooks is how long a group takes to notice a change.
	ScalingLooks = 5 * time.Second
	// ScalingNotices is how long a group takes to notice that an instance is not running.
	ScalingNotices = 30 * time.Second
	// ScalingRetries is how long a group waits after a failed launch.
	ScalingRetries = time.Minute
	// RefreshGivesUp is how long an instance refresh may be without progress before it
	// fails.
	RefreshGivesUp = time.Hour
)
