package cloud

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"
)

// refusal is an answer that is likely to change: AWS has not noticed an earlier call yet,
// or has no capacity at the moment.
type refusal struct {
	operation string // or the service, for all its operations
	code      string
	message   string // a part of the message; "" for any
	patience  time.Duration
}

// refusals are the answers that Terraform's AWS provider waits out, or that Cluster API
// Provider AWS survives because it tries everything again.
func refusals() []refusal {
	const propagation, capacity, busy = 2 * time.Minute, 15 * time.Minute, time.Hour
	const invalid = "InvalidParameterException" // of EKS
	return []refusal{
		{"RegisterTargets", "InvalidTarget", "", 10 * time.Minute}, // the instance is not running
		{"RegisterInstancesWithLoadBalancer", "InvalidInstance", "", 10 * time.Minute},
		{"RunInstances", "InvalidParameterValue", "Instance Profile", propagation},
		{"RunInstances", "InsufficientInstanceCapacity", "", capacity},
		{"RunInstances", "InsufficientHostCapacity", "", capacity},
		{"RunInstances", "InsufficientReservedInstanceCapacity", "", capacity},
		{"RunInstances", "PendingVerification", "", capacity}, // of the account in a new region
		{"CreateRoute", "InvalidParameterValue", "", propagation},
		{"CreateRoute", "InvalidParameterCombination", "", propagation},
		{"CreateLoadBalancer", "InvalidSubnet", "internet gateway", propagation}, // attached a moment ago
		{"CreateLoadBalancer", "DependencyThrottle", "", propagation},
		{"CreateAutoScalingGroup", "ValidationError", "Instance Profile", propagation},
		{"CreateTargetGroup", "ValidationError", "is not found", propagation}, // the VPC
		{"EKS", invalid, "role", propagation},                                 // it or its policies are new
		{"EKS", invalid, "does not exist", propagation},                       // a subnet or launch template
		{"EKS", invalid, "invalid principal", propagation},
		{"EKS", "InvalidRequestException", "role", propagation},
		{"EKS", "InvalidRequestException", "active", busy},                              // another operation on the cluster is in progress
		{"CreateQueue", "AWS.SimpleQueueService.QueueDeletedRecently", "", propagation}, // a minute ago
		{"CreateQueue", "QueueDeletedRecently", "", propagation},
		{"EKS", "ResourceInUseException", "", busy}, // as above, or one with the same name is being deleted
	}
}

// Patience returns for how long the refused call of err is worth repeating; 0 if its
// answer is final.
func Patience(err error) time.Duration {
	var op *smithy.OperationError
	var api smithy.APIError
	if !errors.As(err, &op) || !errors.As(err, &api) {
		return 0
	}
	all := refusals()
	at := slices.IndexFunc(all, func(r refusal) bool {
		return (r.operation == op.Operation() || r.operation == op.Service()) && r.code == api.ErrorCode() &&
			strings.Contains(strings.ToLower(api.ErrorMessage()), strings.ToLower(r.message))
	})
	if at < 0 {
		return 0
	}
	return all[at].patience
}
