package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// FlowLog is a flow log of a VPC. AWS has no operation that changes one.
type FlowLog struct {
	Thing
	VPC      string
	Traffic  string
	LogGroup string // "" for a bucket
	Role     string
	Bucket   string
	Failed   string // why records are not delivered; "" if they are
}

// FlowLogDelivers is the time until the first records are delivered: "It can take several minutes to
// begin collecting and publishing data" (CreateFlowLogs, EC2 API reference). The duration is not measured.
const FlowLogDelivers = 5 * time.Minute

func (*FlowLog) kind() kind {
	return kind{
		prefix: "fl", name: "vpcFlowLog", missing: "InvalidFlowLogId.NotFound", tags: types.ResourceTypeVpcFlowLog, title: "FlowLog",
		simulate: (*Service).simulateFlowLogs,
	}
}

func (f *FlowLog) details(printer) []string {
	return []string{"of " + f.VPC, f.Traffic, "to " + f.place(), "as " + f.Role}
}

func (f *FlowLog) place() string { return cmp.Or(f.Bucket, f.LogGroup) }

func (svc *Service) simulateFlowLogs() {
	core.On(svc.Account, svc.createFlowLogs, "ResourceIds", "ResourceType", "TrafficType", "ClientToken", "LogDestinationType", "LogDestination",
		"LogGroupName", "DeliverLogsPermissionArn", "TagSpecifications")
	core.On(svc.Account, svc.describeFlowLogs, "FlowLogIds", "Filter", "NextToken", "MaxResults")
	core.On(svc.Account, svc.deleteFlowLogs, "FlowLogIds")
}

// newFlowLog checks the parameters of CreateFlowLogs. The rules are in its API reference; the codes
// of the errors are not verified.
func newFlowLog(in *ec2.CreateFlowLogsInput) (FlowLog, error) {
	f := FlowLog{Traffic: string(in.TrafficType), Role: aws.ToString(in.DeliverLogsPermissionArn)}
	group, destination := aws.ToString(in.LogGroupName), aws.ToString(in.LogDestination)
	switch {
	case len(in.ResourceIds) == 0:
		return f, core.Fail("MissingParameter", "the request must contain the parameter resourceId")
	case in.ResourceType != types.FlowLogsResourceTypeVpc:
		return f, core.NotSimulated("a flow log of a %s", in.ResourceType)
	case in.TrafficType == "": // "not required for transit gateways only"
		return f, core.Fail("MissingParameter", "the request must contain the parameter trafficType")
	case !slices.Contains(in.TrafficType.Values(), in.TrafficType):
		return f, core.Fail("InvalidParameterValue", "%s is no type of traffic", in.TrafficType)
	case group != "" && destination != "":
		return f, core.Fail("InvalidParameter", "only one of LogGroupName and LogDestination may be given")
	}
	switch in.LogDestinationType {
	case types.LogDestinationTypeCloudWatchLogs, "":
		if destination != "" {
			return f, core.NotSimulated("a log group by its ARN")
		}
		if f.LogGroup = group; group == "" || f.Role == "" {
			return f, core.Fail("InvalidParameter", "a log group needs LogGroupName and DeliverLogsPermissionArn")
		}
	case types.LogDestinationTypeS3:
		if f.Bucket = destination; !strings.HasPrefix(destination, "arn:") || f.Role != "" {
			return f, core.Fail("InvalidParameter", "a bucket needs its ARN in LogDestination, and takes no DeliverLogsPermissionArn")
		}
	case types.LogDestinationTypeKinesisDataFirehose:
		return f, core.NotSimulated("a delivery stream")
	}
	return f, nil
}

// createFlowLogs creates a flow log for each VPC. The call succeeds also for those that it refuses.
func (svc *Service) createFlowLogs(in *ec2.CreateFlowLogsInput) (*ec2.CreateFlowLogsOutput, error) {
	s := svc.state
	var refused []types.UnsuccessfulItem
	out, err := idempotent(svc, "CreateFlowLogs", in.ClientToken, in, func() (ids []string, err error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeVpcFlowLog)
		if err != nil {
			return nil, err
		}
		wanted, err := newFlowLog(in)
		if err != nil {
			return nil, err
		}
		for _, id := range in.ResourceIds {
			code, message, refusal := strings.Cut(s.FlowLogRefusal, ": ")
			if v, err := lookup(svc, s.VPCs, &id); err != nil {
				code, message, refusal = "InvalidVpcID.NotFound", err.Error(), true
			} else {
				wanted.VPC = v.ID
			}
			if refusal {
				refused = append(refused, types.UnsuccessfulItem{ResourceId: &id, Error: &types.UnsuccessfulItemError{Code: &code, Message: &message}})
				continue
			}
			for _, other := range s.FlowLogs {
				if other.VPC == wanted.VPC && other.Traffic == wanted.Traffic && other.place() == wanted.place() {
					return nil, core.Fail("FlowLogAlreadyExists", "Error. There is an existing Flow Log with the same configuration and log destination.")
				}
			}
			f := wanted
			f.Thing, f.Failed = svc.newThing("fl", tags), s.FlowLogFailure
			s.FlowLogs[f.ID] = &f
			ids = append(ids, f.ID)
		}
		return ids, nil
	}, func(ids []string) *ec2.CreateFlowLogsOutput {
		return &ec2.CreateFlowLogsOutput{FlowLogIds: ids, ClientToken: in.ClientToken, Unsuccessful: refused}
	})
	if len(refused) > 0 { // a request that was refused may be sent again
		delete(s.Tokens, "CreateFlowLogs "+aws.ToString(in.ClientToken))
	}
	return out, err
}

func (svc *Service) flowLogOut(f *FlowLog) types.FlowLog {
	out := types.FlowLog{
		FlowLogId: aws.String(f.ID), ResourceId: aws.String(f.VPC), TrafficType: types.TrafficType(f.Traffic), FlowLogStatus: aws.String("ACTIVE"),
		CreationTime: aws.Time(f.Born), LogDestinationType: types.LogDestinationTypeCloudWatchLogs, LogGroupName: core.Text(f.LogGroup),
		DeliverLogsPermissionArn: core.Text(f.Role), LogDestination: core.Text(f.Bucket), Tags: tagsOut(f.Tags),
	}
	if f.Bucket != "" {
		out.LogDestinationType = types.LogDestinationTypeS3
	}
	switch {
	case svc.Now().Sub(f.Born) < FlowLogDelivers:
	case f.Failed != "":
		out.DeliverLogsStatus, out.DeliverLogsErrorMessage = aws.String("FAILED"), aws.String(f.Failed)
	default:
		out.DeliverLogsStatus = aws.String("SUCCESS")
	}
	return out
}

func (svc *Service) describeFlowLogs(in *ec2.DescribeFlowLogsInput) (*ec2.DescribeFlowLogsOutput, error) {
	logs, next, err := describe(svc, svc.state.FlowLogs, query{in.FlowLogIds, in.Filter, in.NextToken, in.MaxResults}, fields[*FlowLog]{
		"flow-log-id":          func(f *FlowLog) []string { return []string{f.ID} },
		"resource-id":          func(f *FlowLog) []string { return []string{f.VPC} },
		"traffic-type":         func(f *FlowLog) []string { return []string{f.Traffic} },
		"log-group-name":       func(f *FlowLog) []string { return []string{f.LogGroup} },
		"log-destination-type": func(f *FlowLog) []string { return []string{string(svc.flowLogOut(f).LogDestinationType)} },
		"deliver-log-status":   func(f *FlowLog) []string { return []string{aws.ToString(svc.flowLogOut(f).DeliverLogsStatus)} },
	}, svc.flowLogOut)
	return &ec2.DescribeFlowLogsOutput{FlowLogs: logs, NextToken: next}, err
}

// deleteFlowLogs deletes flow logs. The call succeeds even if a flow log cannot be deleted: the response lists the flow
// logs that remain, and why.
func (svc *Service) deleteFlowLogs(in *ec2.DeleteFlowLogsInput) (*ec2.DeleteFlowLogsOutput, error) {
	if len(in.FlowLogIds) == 0 {
		return nil, core.Fail("MissingParameter", "the request must contain the parameter flowLogId")
	}
	out := &ec2.DeleteFlowLogsOutput{}
	for _, id := range in.FlowLogIds {
		f, err := lookup(svc, svc.state.FlowLogs, &id)
		if err != nil {
			out.Unsuccessful = append(out.Unsuccessful, types.UnsuccessfulItem{
				ResourceId: &id, Error: &types.UnsuccessfulItemError{Code: aws.String("InvalidFlowLogId.NotFound"), Message: aws.String(fmt.Sprint(err))},
			})
			continue
		}
		delete(svc.state.FlowLogs, f.ID)
	}
	return out, nil
}
