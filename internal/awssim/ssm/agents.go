package ssm

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Machine is an instance as Systems Manager sees it.
type Machine struct {
	ID, IP string
	// Reports says that the agent of the machine runs, that its role lets it report, and that it
	// reaches Systems Manager.
	Reports bool
}

// Agent is the agent of an instance that has reported to Systems Manager.
type Agent struct {
	Last   time.Time // when it reported last
	Online bool
}

// update notes which agents report. An instance that does not exist any more is forgotten: AWS
// does not document when it does so.
func (svc *Service) update() (ips map[string]string) {
	core.Fill(&svc.state.Agents)
	ips = map[string]string{}
	for _, m := range svc.Machines() {
		ips[m.ID] = m.IP
		a := svc.state.Agents[m.ID]
		if a == nil && m.Reports {
			a = &Agent{}
			svc.state.Agents[m.ID] = a
		}
		if a != nil {
			a.Online = m.Reports
		}
		if m.Reports {
			a.Last = svc.Now()
		}
	}
	for id := range svc.state.Agents {
		if _, there := ips[id]; !there {
			delete(svc.state.Agents, id)
		}
	}
	return ips
}

// online reports whether the agent of an instance reports at the moment.
func (svc *Service) online(id string) bool {
	a := svc.state.Agents[id]
	return a != nil && a.Online
}

// describeInstanceInformation supports one filter: InstanceIds. Instances whose agents have never
// reported are not listed.
func (svc *Service) describeInstanceInformation(in *ssm.DescribeInstanceInformationInput) (*ssm.DescribeInstanceInformationOutput, error) {
	if n := aws.ToInt32(in.MaxResults); in.MaxResults != nil && (n < 5 || n > 50) {
		return nil, core.Fail("ValidationException", "maxResults has to be from 5 to 50")
	}
	if len(in.Filters) > 1 {
		return nil, core.NotSimulated("several filters")
	}
	var only []string
	for _, f := range in.Filters {
		switch {
		case aws.ToString(f.Key) != "InstanceIds":
			return nil, core.NotSimulated("filter %s", aws.ToString(f.Key))
		case len(f.Values) == 0 || len(f.Values) > 100:
			return nil, core.Fail("ValidationException", "a filter has 1 to 100 values")
		}
		only = f.Values
	}
	ips := svc.update()
	var found []types.InstanceInformation
	for _, id := range core.SortedKeys(svc.state.Agents) {
		a, status := svc.state.Agents[id], types.PingStatusConnectionLost
		if svc.online(id) {
			status = types.PingStatusOnline
		}
		if len(in.Filters) == 0 || slices.Contains(only, id) {
			found = append(found, types.InstanceInformation{
				InstanceId: aws.String(id), IPAddress: aws.String(ips[id]), PingStatus: status, LastPingDateTime: aws.Time(a.Last), PlatformType: types.PlatformTypeLinux,
				AgentVersion: aws.String("3.3.987.0"), ResourceType: types.ResourceTypeEc2Instance,
			})
		}
	}
	part, next, err := core.Page(svc.Account, found, in.NextToken, in.MaxResults, 10)
	return &ssm.DescribeInstanceInformationOutput{InstanceInformationList: part, NextToken: next}, err
}
