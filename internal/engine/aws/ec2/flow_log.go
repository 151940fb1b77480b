package ec2

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// FlowLogKind is the name of the kind of flow logs.
const FlowLogKind = "flow-log"

// FlowLog records the traffic of a VPC in an existing log group or bucket. AWS permits to change
// its tags only ("Log IP traffic using VPC Flow Logs", Amazon VPC User Guide): an update of another
// setting deletes it, and the run creates another one. Nothing but records of some minutes is lost.
type FlowLog struct {
	VPC         *graph.Ref[VPCState]
	Destination FlowLogDestination
	Traffic     string // ALL, ACCEPT or REJECT
	Tags        cloud.Tags
}

// FlowLogDestination is where the records go: a bucket, or else a log group.
type FlowLogDestination struct {
	LogGroup string // name of a log group of CloudWatch Logs
	Role     string // ARN of the role with which AWS writes to the log group
	Bucket   string // ARN of a bucket, and a folder in it
}

// place returns the log group or the bucket.
func (d FlowLogDestination) place() string { return cmp.Or(d.Bucket, d.LogGroup) }

// FlowLogState is a flow log, as AWS describes it.
type FlowLogState struct {
	identity.Object
	VPC         string
	Destination FlowLogDestination
	Traffic     string // ALL, ACCEPT or REJECT
	Status      string // ACTIVE
	Delivery    string // SUCCESS or FAILED; "" before the first delivery
	Error       string // why the last delivery has failed
}

// Undelivered reports whether AWS could not deliver the last records. The log group, its role or the
// bucket is the cause, which no run changes.
func (s FlowLogState) Undelivered() bool { return s.Delivery == "FAILED" }

var _ graph.Managed[FlowLogState] = (*FlowLog)(nil)

// Needs implements graph.Desired.
func (f *FlowLog) Needs() []graph.Edge { return graph.Exists(f.VPC) }

// Find implements graph.Desired.
func (f *FlowLog) Find(ctx context.Context, c *cloud.Clients) (*FlowLogState, error) {
	return identity.FindListed(ctx, c, FlowLogs, f.Tags)
}

// Diff implements graph.Desired.
func (f *FlowLog) Diff(have *FlowLogState) (d plan.Diff) {
	d.Set("vpc", have.VPC, f.VPC.CloudID())
	d.Set("destination", have.Destination.place(), f.Destination.place())
	d.Set("role", have.Destination.Role, f.Destination.Role)
	d.Set("traffic", have.Traffic, f.Traffic)
	d.Tags(have.Tags, f.Tags)
	return d
}

// CheckCreation implements graph.CheckedCreation: a VPC has one flow log for a destination and a type of traffic (FlowLogAlreadyExists in "Error codes
// for the Amazon EC2 API").
func (f *FlowLog) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	other, err := f.Other(ctx, c)
	if other == nil || err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"%s records the same traffic to the same destination, and AWS takes one: %sdelete it (aws ec2 delete-flow-logs --region %s --flow-log-ids %s), "+
			"or remove the annotation",
		named(other.ID, other.Tags),
		kind.RestoreAdvice(other.ID, other.Tags, f.Tags),
		c.Region,
		other.ID,
	), nil
}

// Other returns a flow log of the VPC for the same traffic and destination that is not the cluster's, or nil.
func (f *FlowLog) Other(ctx context.Context, c *cloud.Clients) (*FlowLogState, error) {
	vpc, exists := f.VPC.Found()
	if !exists {
		return nil, nil
	}
	all, err := describeFlowLogs(ctx, c, "flow logs of "+vpc.ID, []types.Filter{cloud.Filter("resource-id", vpc.ID)})
	for _, s := range all {
		if !s.IsOwned(c) && s.Traffic == f.Traffic && s.Destination.place() == f.Destination.place() {
			return &s, err
		}
	}
	return nil, err
}

// Create implements graph.Creator.
func (f *FlowLog) Create(ctx context.Context, c *cloud.Clients) (*FlowLogState, error) {
	vpc := f.VPC.CloudID()
	in := &ec2.CreateFlowLogsInput{
		ResourceIds: []string{vpc}, ResourceType: types.FlowLogsResourceTypeVpc, TrafficType: types.TrafficType(f.Traffic),
		ClientToken:       c.Token(FlowLogKind, vpc, f.Destination.place(), f.Destination.Role, f.Traffic),
		TagSpecifications: f.Tags.On(types.ResourceTypeVpcFlowLog),
	}
	if f.Destination.Bucket != "" {
		in.LogDestinationType, in.LogDestination = types.LogDestinationTypeS3, &f.Destination.Bucket
	} else {
		in.LogDestinationType, in.LogGroupName = types.LogDestinationTypeCloudWatchLogs, &f.Destination.LogGroup
		in.DeliverLogsPermissionArn = &f.Destination.Role
	}
	out, err := c.EC2.CreateFlowLogs(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := unsuccessful(out.Unsuccessful); err != nil {
		return nil, err
	}
	if len(out.FlowLogIds) == 0 {
		return nil, nil
	}
	return &FlowLogState{Object: identity.Object{ID: out.FlowLogIds[0], Tags: f.Tags}, VPC: vpc, Destination: f.Destination, Traffic: f.Traffic}, nil
}

// Update implements graph.Updater.
func (f *FlowLog) Update(ctx context.Context, c *cloud.Clients, have *FlowLogState, d plan.Diff) (*FlowLogState, error) {
	for _, field := range []string{"vpc", "destination", "role", "traffic"} {
		if d.Has(field) {
			return nil, f.Delete(ctx, c, have)
		}
	}
	after, err := *have, error(nil)
	after.Object, err = changeTags(ctx, c, have.Object, f.Tags, d)
	return &after, err
}

// Delete implements graph.Deleter.
func (f *FlowLog) Delete(ctx context.Context, c *cloud.Clients, have *FlowLogState) error {
	out, err := c.EC2.DeleteFlowLogs(ctx, &ec2.DeleteFlowLogsInput{FlowLogIds: []string{have.ID}})
	if err != nil {
		return err
	}
	return unsuccessful(out.Unsuccessful)
}

// unsuccessful returns the error of a call that succeeds although it has refused a resource.
func unsuccessful(items []types.UnsuccessfulItem) error {
	for _, x := range items {
		if e := x.Error; e != nil {
			return &smithy.GenericAPIError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message)}
		}
	}
	return nil
}

// FlowLogs lists the flow logs of the cluster.
func FlowLogs(ctx context.Context, c *cloud.Clients) ([]FlowLogState, error) {
	return describeFlowLogs(ctx, c, "flow logs", c.OwnedFilters())
}

// describeFlowLogs lists the flow logs that match the filters; query is the key for cloud.Remember.
func describeFlowLogs(ctx context.Context, c *cloud.Clients, query string, filters []types.Filter) ([]FlowLogState, error) {
	return cloud.Remember(ctx, c, query, func(ctx context.Context) ([]FlowLogState, error) {
		p := ec2.NewDescribeFlowLogsPaginator(c.EC2, &ec2.DescribeFlowLogsInput{Filter: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeFlowLogsOutput) (out []FlowLogState) {
			for _, x := range o.FlowLogs {
				out = append(out, flowLogState(x))
			}
			return out
		})
	})
}

func flowLogState(x types.FlowLog) FlowLogState {
	s := FlowLogState{
		Object: identity.Object{ID: aws.ToString(x.FlowLogId), Tags: cloud.FromEC2(x.Tags)}, VPC: aws.ToString(x.ResourceId), Traffic: string(x.TrafficType),
		Status: aws.ToString(x.FlowLogStatus), Delivery: aws.ToString(x.DeliverLogsStatus), Error: aws.ToString(x.DeliverLogsErrorMessage),
	}
	if x.LogDestinationType == types.LogDestinationTypeCloudWatchLogs {
		s.Destination = FlowLogDestination{LogGroup: aws.ToString(x.LogGroupName), Role: aws.ToString(x.DeliverLogsPermissionArn)}
	} else {
		s.Destination.Bucket = aws.ToString(x.LogDestination)
	}
	return s
}

// flowLogKind declares flow logs.
func flowLogKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: FlowLogKind, Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeVpcFlowLog,
		ReadActions: []string{"ec2:DescribeFlowLogs"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateFlowLogs", "ec2:CreateTags", "ec2:DeleteFlowLogs", "ec2:DeleteTags"},
	}, kind.Functions[FlowLogState]{
		List: kind.Tagged(FlowLogs), Delete: &FlowLog{},
		Refers: func(s FlowLogState) []string { return []string{s.VPC} },
		Status: func(s FlowLogState) (state, detail string) {
			if s.Undelivered() {
				return s.Status, "records are not delivered" + text.Prefixed(": ", s.Error)
			}
			return s.Status, "to " + s.Destination.place()
		},
	})
}
