package ec2_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// recorder records the requests to EC2, and answers them.
type recorder struct {
	mu       sync.Mutex
	requests []any
	answer   func(in any) (any, error)
}

func (e *recorder) config() aws.Config {
	type key struct{}
	return aws.Config{
		Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "test"}, nil
		}),
		APIOptions: []func(*middleware.Stack) error{func(s *middleware.Stack) error {
			err := s.Initialize.Add(
				middleware.InitializeMiddlewareFunc(
					"Input",
					func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
						return next.HandleInitialize(middleware.WithStackValue(ctx, key{}, in.Parameters), in)
					},
				),
				middleware.After,
			)
			if err != nil {
				return err
			}
			return s.Finalize.Insert(
				middleware.FinalizeMiddlewareFunc(
					"Answer",
					func(ctx context.Context, _ middleware.FinalizeInput, _ middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
						in := middleware.GetStackValue(ctx, key{})
						if !cloud.Reads(awsmiddleware.GetOperationName(ctx)) {
							e.mu.Lock()
							e.requests = append(e.requests, in)
							e.mu.Unlock()
						}
						out.Result, err = e.answer(in)
						return out, md, err
					},
				),
				"Signing",
				middleware.After,
			)
		}},
	}
}

// answerLaunches answers RunInstances with MaxCount machines.
func answerLaunches(in any) (any, error) {
	switch in := in.(type) {
	case *awsec2.RunInstancesInput:
		out := &awsec2.RunInstancesOutput{}
		for n := range *in.MaxCount {
			out.Instances = append(
				out.Instances,
				types.Instance{InstanceId: aws.String(fmt.Sprintf("i-%s-%d", *in.ClientToken, n)), State: &types.InstanceState{Name: types.InstanceStateNameRunning}},
			)
		}
		return out, nil
	case *awsec2.CreateTagsInput:
		return &awsec2.CreateTagsOutput{}, nil
	}
	return nil, fmt.Errorf("%T was not expected", in)
}

// launchFixture contains the resources that a machine needs.
type launchFixture struct {
	*enginetest.Fixture
	subnet *graph.Ref[ec2.SubnetState]
	group  *graph.Ref[ec2.SecurityGroupState]
	image  *graph.Ref[ec2.ImageState]
}

func newLaunchFixture(t *testing.T, subnet ec2.SubnetState) *launchFixture {
	t.Helper()
	k := enginetest.NewFixture(t)
	subnet.Object = enginetest.Object("subnet-1")
	p := &launchFixture{
		k,
		enginetest.Existing(k, "subnet", subnet),
		k.Group("node"),
		enginetest.Existing(k, "image", ec2.ImageState{ID: "ami-1", RootDevice: "/dev/sda1", RootSize: 8}),
	}
	k.Observe()
	return p
}

func (p *launchFixture) machine(n int, spec infrav1.AWSMachineSpec) *ec2.Instance {
	own := cloud.Tags{"Name": fmt.Sprintf("md-%d", n), cloud.ResourceTag: fmt.Sprintf("machine/md/%d", n)}
	return &ec2.Instance{
		Spec:   spec,
		Subnet: p.subnet,
		Groups: []*graph.Ref[ec2.SecurityGroupState]{p.group},
		Image:  p.image,
		Key:    "default",
		Boot:   &bootdata.Data{Plain: []byte("#!/bin/sh\n")},
		Tags:   cloud.Tags{"role": "node"}.With(own),
		Batch:  own,
	}
}

// Each field of an AWSMachine sets the same field of RunInstances as in CAPA.
func TestLaunchRequest(t *testing.T) {
	type request = awsec2.RunInstancesInput
	for name, c := range map[string]struct {
		spec   infrav1.AWSMachineSpec
		subnet ec2.SubnetState
		check  func(t *testing.T, in *request)
	}{
		"nothing": {infrav1.AWSMachineSpec{InstanceType: "t3.large"}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, int32(1), *in.MinCount)
			require.Equal(t, int32(1), *in.MaxCount)
			require.NotEmpty(t, *in.ClientToken)
			require.Equal(t, "ami-1", *in.ImageId)
			require.Equal(t, types.InstanceType("t3.large"), in.InstanceType)
			require.Equal(t, "default", *in.KeyName)
			require.Equal(t, base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")), *in.UserData)
			require.Nil(t, in.IamInstanceProfile)
			require.Nil(t, in.Placement)
			require.Nil(t, in.InstanceMarketOptions)
			require.Nil(t, in.CapacityReservationSpecification)
			require.Nil(t, in.CpuOptions)
			require.Nil(t, in.PrivateDnsNameOptions)
			require.Empty(t, in.BlockDeviceMappings)
			require.Equal(t, []types.InstanceNetworkInterfaceSpecification{{
				DeviceIndex: aws.Int32(0), SubnetId: aws.String("subnet-1"), Groups: []string{"sg-node"}, DeleteOnTermination: aws.Bool(true),
			}}, in.NetworkInterfaces)
			require.Nil(t, in.MetadataOptions)
			var kinds []types.ResourceType
			for _, s := range in.TagSpecifications {
				kinds = append(kinds, s.ResourceType)
				require.Equal(t, cloud.Tags{"role": "node", "Name": "md-0", cloud.ResourceTag: "machine/md/0"}, cloud.FromEC2(s.Tags))
			}
			require.Equal(t, []types.ResourceType{"instance", "volume", "network-interface"}, kinds)
		}},
		"metadata options": {infrav1.AWSMachineSpec{InstanceMetadataOptions: &infrav1.InstanceMetadataOptions{}}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, types.InstanceMetadataOptionsRequest{HttpEndpoint: "enabled", HttpProtocolIpv6: "disabled", HttpTokens: "optional", HttpPutResponseHopLimit: aws.Int32(1), InstanceMetadataTags: "disabled"}, *in.MetadataOptions)
		}},
		"profile, public address, EFA": {infrav1.AWSMachineSpec{IAMInstanceProfile: "nodes", PublicIP: aws.Bool(true), NetworkInterfaceType: infrav1.NetworkInterfaceTypeEFAWithENAInterface}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, "nodes", *in.IamInstanceProfile.Name)
			require.True(t, *in.NetworkInterfaces[0].AssociatePublicIpAddress)
			require.Equal(t, "efa", *in.NetworkInterfaces[0].InterfaceType)
		}},
		"IPv6 subnet": {infrav1.AWSMachineSpec{}, ec2.SubnetState{IPv6CIDR: "2001:db8::/64"}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, int32(1), *in.NetworkInterfaces[0].Ipv6AddressCount)
			require.True(t, *in.NetworkInterfaces[0].PrimaryIpv6)
		}},
		"no primary IPv6": {infrav1.AWSMachineSpec{AssignPrimaryIPv6: new(infrav1.PrimaryIPv6AssignmentStateDisabled)}, ec2.SubnetState{IPv6CIDR: "2001:db8::/64"}, func(t *testing.T, in *request) {
			t.Helper()
			require.Nil(t, in.NetworkInterfaces[0].PrimaryIpv6)
		}},
		"existing interfaces": {infrav1.AWSMachineSpec{NetworkInterfaces: []string{"eni-1", "eni-2"}, PublicIP: aws.Bool(true)}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, []types.InstanceNetworkInterfaceSpecification{
				{DeviceIndex: aws.Int32(0), NetworkInterfaceId: aws.String("eni-1")}, {DeviceIndex: aws.Int32(1), NetworkInterfaceId: aws.String("eni-2")},
			}, in.NetworkInterfaces)
			require.Len(t, in.TagSpecifications, 2, "existing interfaces keep their tags")
		}},
		"volumes": {infrav1.AWSMachineSpec{
			RootVolume:     &infrav1.Volume{Size: 80, Type: "gp3", IOPS: 4000, Throughput: aws.Int64(200), EncryptionKey: "alias/k", DeviceName: "ignored"},
			NonRootVolumes: []infrav1.Volume{{DeviceName: "/dev/sdb", Size: 10, Encrypted: aws.Bool(false)}},
		}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, []types.BlockDeviceMapping{
				{DeviceName: aws.String("/dev/sda1"), Ebs: &types.EbsBlockDevice{
					DeleteOnTermination: aws.Bool(true), VolumeSize: aws.Int32(80), VolumeType: "gp3", Iops: aws.Int32(4000), Throughput: aws.Int32(200), Encrypted: aws.Bool(true), KmsKeyId: aws.String("alias/k"),
				}},
				{DeviceName: aws.String("/dev/sdb"), Ebs: &types.EbsBlockDevice{DeleteOnTermination: aws.Bool(true), VolumeSize: aws.Int32(10), Encrypted: aws.Bool(false)}},
			}, in.BlockDeviceMappings)
		}},
		"spot with a price": {infrav1.AWSMachineSpec{SpotMarketOptions: &infrav1.SpotMarketOptions{MaxPrice: aws.String("0.5")}}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, &types.InstanceMarketOptionsRequest{MarketType: "spot", SpotOptions: &types.SpotMarketOptions{
				InstanceInterruptionBehavior: "terminate", SpotInstanceType: "one-time", MaxPrice: aws.String("0.5"),
			}}, in.InstanceMarketOptions)
		}},
		"spot": {infrav1.AWSMachineSpec{MarketType: infrav1.MarketTypeSpot}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Nil(t, in.InstanceMarketOptions.SpotOptions.MaxPrice)
		}},
		"capacity": {infrav1.AWSMachineSpec{MarketType: infrav1.MarketTypeCapacityBlock, CapacityReservationID: aws.String("cr-1"), CapacityReservationPreference: infrav1.CapacityReservationPreferenceOnly}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, types.MarketTypeCapacityBlock, in.InstanceMarketOptions.MarketType)
			require.Equal(t, "cr-1", *in.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId)
			require.Equal(t, types.CapacityReservationPreferenceCapacityReservationsOnly, in.CapacityReservationSpecification.CapacityReservationPreference)
		}},
		"placement": {infrav1.AWSMachineSpec{Tenancy: "dedicated", PlacementGroupName: "pg", PlacementGroupPartition: 3}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, &types.Placement{Tenancy: "dedicated", GroupName: aws.String("pg"), PartitionNumber: aws.Int32(3)}, in.Placement)
		}},
		"host": {infrav1.AWSMachineSpec{Tenancy: "dedicated", PlacementGroupName: "pg", HostID: aws.String("h-1")}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, &types.Placement{Tenancy: "host", HostId: aws.String("h-1"), Affinity: aws.String("default")}, in.Placement, "with a host, tenancy and placement group have no effect")
		}},
		"metadata, names, processor": {infrav1.AWSMachineSpec{
			InstanceMetadataOptions: &infrav1.InstanceMetadataOptions{HTTPEndpoint: "enabled", HTTPProtocolIPv6: "enabled", HTTPTokens: "required", HTTPPutResponseHopLimit: 2, InstanceMetadataTags: "enabled"},
			PrivateDNSName:          &infrav1.PrivateDNSName{EnableResourceNameDNSARecord: aws.Bool(true), HostnameType: aws.String("resource-name")},
			CPUOptions:              infrav1.CPUOptions{ConfidentialCompute: infrav1.AWSConfidentialComputePolicySEVSNP},
		}, ec2.SubnetState{}, func(t *testing.T, in *request) {
			t.Helper()
			require.Equal(t, types.InstanceMetadataOptionsRequest{HttpEndpoint: "enabled", HttpProtocolIpv6: "enabled", HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(2), InstanceMetadataTags: "enabled"}, *in.MetadataOptions)
			require.Equal(t, &types.PrivateDnsNameOptionsRequest{EnableResourceNameDnsARecord: aws.Bool(true), HostnameType: "resource-name"}, in.PrivateDnsNameOptions)
			require.Equal(t, types.AmdSevSnpSpecificationEnabled, in.CpuOptions.AmdSevSnp)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newLaunchFixture(t, c.subnet)
			e := &recorder{answer: answerLaunches}
			_, err := p.machine(0, c.spec).Create(t.Context(), cloud.New(e.config(), "demo", cloud.Options{}))
			require.NoError(t, err)
			require.Len(t, e.requests, 1)
			c.check(t, e.requests[0].(*awsec2.RunInstancesInput))
		})
	}
}

// A root volume that is smaller than the image is an error before any call.
func TestRootVolumeTooSmall(t *testing.T) {
	p := newLaunchFixture(t, ec2.SubnetState{})
	e := &recorder{answer: answerLaunches}
	_, err := p.machine(0, infrav1.AWSMachineSpec{RootVolume: &infrav1.Volume{Size: 7}}).Create(t.Context(), cloud.New(e.config(), "demo", cloud.Options{}))
	require.EqualError(t, err, "rootVolume.size is 7 GiB, but image ami-1 needs 8")
	require.Empty(t, e.requests)
}

// createMachines launches n machines concurrently.
func createMachines(t *testing.T, p *launchFixture, e *recorder, n int) (states []*ec2.InstanceState, errs []error, machines []*ec2.Instance) {
	t.Helper()
	c := cloud.New(e.config(), "demo", cloud.Options{})
	states, errs = make([]*ec2.InstanceState, n), make([]error, n)
	for i := range n {
		machines = append(machines, p.machine(i, infrav1.AWSMachineSpec{InstanceType: "t3.large"}))
	}
	var all sync.WaitGroup
	for i, m := range machines {
		all.Go(func() { states[i], errs[i] = m.Create(t.Context(), c) })
	}
	all.Wait()
	return states, errs, machines
}

// If some machines of a launch fail, Create returns the others. Otherwise the next run
// would create duplicates.
func TestLaunchPartlyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newLaunchFixture(t, ec2.SubnetState{})
		ran := 0
		e := &recorder{}
		e.answer = func(in any) (any, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if ran++; ran > 2 {
				return nil, &smithy.GenericAPIError{Code: "VcpuLimitExceeded"}
			}
			return answerLaunches(in)
		}
		states, errs, _ := createMachines(t, p, e, 4)
		made := 0
		for i := range states {
			require.Equal(t, states[i] == nil, cloud.Quota(errs[i]))
			if states[i] != nil {
				made++
				require.Equal(t, fmt.Sprintf("machine/md/%d", i), states[i].Tags[cloud.ResourceTag])
			}
		}
		require.Equal(t, 2, made)
	})
}

// Many machines share a call and are tagged afterwards. If CreateTags does not know a new
// machine yet, it is not launched again: it is found by its ID until it has its tags.
func TestLaunchManyMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newLaunchFixture(t, ec2.SubnetState{})
		e, unnamed := &recorder{}, ""
		e.answer = func(in any) (any, error) {
			switch in := in.(type) {
			case *awsec2.CreateTagsInput:
				if cloud.FromEC2(in.Tags)["Name"] == "md-3" {
					return nil, &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound"}
				}
			case *awsec2.DescribeInstancesInput:
				return &awsec2.DescribeInstancesOutput{Reservations: []types.Reservation{{Instances: []types.Instance{
					{InstanceId: aws.String("i-other"), Tags: cloud.Tags{cloud.ResourceTag: "machine/md"}.EC2()},
					{InstanceId: &unnamed, Tags: cloud.Tags{cloud.ResourceTag: "machine/md"}.EC2()},
				}}}}, nil
			}
			return answerLaunches(in)
		}
		began := time.Now()
		states, errs, machines := createMachines(t, p, e, 250)
		require.Less(t, time.Since(began), time.Minute)
		ids := map[string]bool{}
		for i := range states {
			require.NoError(t, errs[i])
			require.False(t, ids[states[i].ID])
			ids[states[i].ID] = true
			d := machines[i].Diff(states[i])
			require.Equal(t, i == 3, d.HasTags(), i)
		}
		require.Equal(t, "machine/md", states[3].Tags[cloud.ResourceTag])
		unnamed = states[3].ID
		followed, err := machines[3].Follow(t.Context(), cloud.New(e.config(), "demo", cloud.Options{}), states[3])
		require.NoError(t, err)
		require.Equal(t, unnamed, followed.ID)
		require.Empty(t, machines[3].Claimed, "the desired machine is not changed")
		runs := 0
		for _, in := range e.requests {
			if run, ok := in.(*awsec2.RunInstancesInput); ok {
				runs++
				require.Equal(t, int32(1), *run.MinCount)
				require.LessOrEqual(t, *run.MaxCount, int32(100))
			}
		}
		require.Equal(t, 3, runs)
	})
}

// TerminateInstances fails for all machines if one ID does not exist. The others are
// terminated nevertheless.
func TestTerminateWithUnknownInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newLaunchFixture(t, ec2.SubnetState{})
		var mu sync.Mutex
		var gone []string
		e := &recorder{answer: func(in any) (any, error) {
			terminate := in.(*awsec2.TerminateInstancesInput)
			mu.Lock()
			defer mu.Unlock()
			if slices.Contains(terminate.InstanceIds, "i-1") {
				return nil, &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound"}
			}
			gone = append(gone, terminate.InstanceIds...)
			return &awsec2.TerminateInstancesOutput{}, nil
		}}
		c := cloud.New(e.config(), "demo", cloud.Options{})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				err := p.machine(i, infrav1.AWSMachineSpec{}).Delete(t.Context(), c, &ec2.InstanceState{Object: enginetest.Object(fmt.Sprintf("i-%d", i))})
				require.Equal(t, i == 1, cloud.NotFound(err), "%v", err)
			})
		}
		all.Wait()
		slices.Sort(gone)
		require.Equal(t, []string{"i-0", "i-2", "i-3"}, gone)
	})
}
