package autoscaling_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// account is a simulated account with a network, and the desired resources of a pool.
type account struct {
	t                 *testing.T
	aws               *awssim.AWS
	c                 *cloud.Clients
	subnets           [2]string
	vpc, group, image string

	lt       ec2.LaunchTemplate
	asg      autoscaling.Group
	duration time.Duration // of the last run
}

func withAccount(t *testing.T, test func(t *testing.T, w *account)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Lag: time.Second, LagRefs: 500 * time.Millisecond})
		w := &account{t: t, aws: a, c: cloud.New(a.Config(), "demo", cloud.Options{})}
		ctx := t.Context()
		vpc, err := w.c.EC2.CreateVpc(ctx, &awsec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		for n, zone := range []string{"us-east-1a", "us-east-1b"} {
			s, err := w.c.EC2.CreateSubnet(
				ctx,
				&awsec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String(fmt.Sprintf("10.0.%d.0/24", n)), AvailabilityZone: &zone},
			)
			require.NoError(t, err)
			w.subnets[n] = *s.Subnet.SubnetId
		}
		sg, err := w.c.EC2.CreateSecurityGroup(
			ctx,
			&awsec2.CreateSecurityGroupInput{VpcId: vpc.Vpc.VpcId, GroupName: aws.String("node"), Description: aws.String("node")},
		)
		require.NoError(t, err)
		images, err := w.c.EC2.DescribeImages(
			ctx,
			&awsec2.DescribeImagesInput{Filters: []types.Filter{cloud.Filter("name", "capa-ami-ubuntu-24.04-v1.34.2*"), cloud.Filter("architecture", "x86_64")}},
		)
		require.NoError(t, err)
		w.vpc, w.group, w.image = *vpc.Vpc.VpcId, *sg.GroupId, *images.Images[0].ImageId
		time.Sleep(time.Minute)
		tags := func(node string) cloud.Tags {
			return cloud.Tags{"Name": "pool", cloud.ClusterTagPrefix + "demo": cloud.Owned, cloud.ResourceTag: node}
		}
		w.lt = ec2.LaunchTemplate{
			Name:         "pool",
			Tags:         tags("launch-template/pool"),
			InstanceTags: cloud.Tags{"Name": "pool", cloud.ClusterTagPrefix + "demo": cloud.Owned},
			Boot:         &bootdata.Data{Plain: []byte("#!/bin/sh")},
			Spec: expinfrav1.AWSLaunchTemplate{
				InstanceType:            "t3.medium",
				RootVolume:              &infrav1.Volume{Size: 30, Type: infrav1.VolumeTypeGP3},
				IamInstanceProfile:      "nodes.cluster-api-provider-aws.sigs.k8s.io",
				InstanceMetadataOptions: &infrav1.InstanceMetadataOptions{HTTPTokens: infrav1.HTTPTokensStateRequired, HTTPPutResponseHopLimit: 2},
			},
		}
		w.asg = autoscaling.Group{
			Name: "pool", Tags: tags("auto-scaling-group/pool"), Desired: aws.Int32(3),
			Spec: expinfrav1.AWSMachinePoolSpec{MinSize: 1, MaxSize: 5, DefaultInstanceWarmup: metav1.Duration{Duration: time.Minute}},
		}
		test(t, w)
	})
}

// build creates a new graph, as every run does.
func (w *account) build() (*graph.Graph, *graph.Ref[ec2.LaunchTemplateState], *graph.Ref[autoscaling.GroupState]) {
	g, lt, asg := graph.New(), w.lt, w.asg
	vpc := graph.Use(g, "vpc", ec2.VPCByID(w.vpc))
	lt.Groups = []*graph.Ref[ec2.SecurityGroupState]{graph.Use(g, "security-group/node", ec2.SecurityGroupByID(vpc, w.group), graph.With(graph.On(vpc)))}
	lt.Image = graph.Use(g, "image", ec2.ImageByID(w.image))
	asg.Subnets = nil
	for n, id := range w.subnets {
		asg.Subnets = append(asg.Subnets, graph.Use(g, plan.ID(fmt.Sprintf("subnet/%d", n)), ec2.SubnetByID(vpc, id), graph.With(graph.On(vpc))))
	}
	template := graph.Add(g, "launch-template/pool", &lt)
	asg.Template, asg.Content = template, &lt
	return g, template, graph.Add(g, "auto-scaling-group/pool", &asg)
}

func (w *account) apply() (ec2.LaunchTemplateState, autoscaling.GroupState) {
	w.t.Helper()
	g, lt, asg := w.build()
	began := time.Now()
	require.NoError(w.t, w.run().Apply(w.t.Context(), g))
	w.duration = time.Since(began)
	template, _ := lt.Found()
	group, _ := asg.Found()
	return template, group
}

// run returns a new executor with new clients.
func (w *account) run() *graph.Executor {
	w.c = cloud.New(w.aws.Config(), "demo", cloud.Options{})
	return &graph.Executor{Cloud: w.c}
}

// plan returns the steps of a plan as text.
func (w *account) plan() (out []string) {
	w.t.Helper()
	g, _, _ := w.build()
	steps, err := w.run().Plan(w.t.Context(), g)
	require.NoError(w.t, err)
	for _, s := range steps.Steps {
		if s.Action != plan.Keep && s.Action != plan.Existing {
			for _, c := range s.Diff {
				out = append(out, fmt.Sprintf("%s %s: %s", s.Action, s.Resource, c))
			}
		}
	}
	return out
}

func versions(s autoscaling.GroupState) (out []string) {
	for _, i := range s.Instances {
		out = append(out, i.Version+" "+i.State)
	}
	return out
}

func TestPoolLifecycle(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		before := w.aws.Inventory()
		_, first := w.apply()
		require.Equal(t, []string{"1 InService", "1 InService", "1 InService"}, versions(first))
		require.Less(t, w.duration, time.Minute+20*time.Second)
		require.Empty(t, w.plan())
		machines, err := ec2.Instances(t.Context(), w.c)
		require.NoError(t, err)
		require.Empty(t, machines, "machines of a pool are not listed as machines")
		w.aws.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				raw, _ := base64.StdEncoding.DecodeString(i.UserData)
				require.Equal(t, "#!/bin/sh", string(raw))
				require.Equal(t, int32(2), i.Metadata.HopLimit)
				require.Equal(t, int32(30), s.EC2.Volumes[i.Volumes[0]].Size)
			}
		})

		// A change of the content creates a version and replaces the machines.
		w.lt.Spec.InstanceType = "t3.large"
		require.Equal(t, []string{
			`update launch-template/pool: instanceType from "t3.medium" to "t3.large"`,
			`update auto-scaling-group/pool: machines from "3 of 3 of version 1" to "all of version 2"`,
		}, w.plan())
		lt, asg := w.apply()
		require.Equal(t, int64(2), lt.Version)
		require.Equal(t, []string{"2 InService", "2 InService", "2 InService"}, versions(asg))
		require.Empty(t, w.plan())
		require.Greater(t, w.duration, 4*time.Minute+30*time.Second, "machines are replaced one by one, with a warmup of a minute each")

		// A change of the user data does the same. Three versions are kept.
		for n := range 3 {
			w.lt.Boot = &bootdata.Data{Plain: fmt.Appendf(nil, "#!/bin/sh\n# %d", n)}
			lt, _ = w.apply()
			require.Equal(t, int64(3+n), lt.Version)
		}
		kept, err := w.c.EC2.DescribeLaunchTemplateVersions(t.Context(), &awsec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &lt.ID})
		require.NoError(t, err)
		require.Len(t, kept.LaunchTemplateVersions, 3)

		g, _, _ := w.build()
		require.NoError(t, w.run().Delete(t.Context(), g))
		require.Equal(t, before, w.aws.Inventory())
	})
}

// One run applies each change that Update supports.
func TestPoolChanges(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		w.apply()
		result := expinfrav1.LifecycleHookDefaultResultContinue
		for _, c := range []struct {
			change func()
			want   []string
		}{
			{func() { w.asg.Spec.MaxSize, w.asg.Desired = 6, aws.Int32(4) }, []string{`maxSize from "5" to "6"`, `replicas from "3" to "4"`}},
			{func() { w.asg.Spec.MinSize, w.asg.Desired = 0, aws.Int32(1) }, []string{`minSize from "1" to "0"`, `replicas from "4" to "1"`}},
			{func() { w.asg.Spec.CapacityRebalance = true }, []string{`capacityRebalance from "false" to "true"`}},
			{func() { w.asg.Spec.DefaultCoolDown.Duration = time.Minute }, []string{`defaultCoolDown from "5m0s" to "1m0s"`}},
			{func() { w.asg.Spec.DefaultInstanceWarmup.Duration = time.Second }, []string{`defaultInstanceWarmup from "1m0s" to "1s"`}},
			{
				func() {
					w.asg.Spec.AWSLifecycleHooks = []expinfrav1.AWSLifecycleHook{{Name: "drain", LifecycleTransition: expinfrav1.LifecycleHookTransitionInstanceTerminating, HeartbeatTimeout: &metav1.Duration{Duration: time.Minute}}}
				},
				[]string{`lifecycleHook drain from "" to "TERMINATING, after 1m0s ABANDON"`},
			},
			{
				func() {
					h := &w.asg.Spec.AWSLifecycleHooks[0]
					h.LifecycleTransition, h.DefaultResult = expinfrav1.LifecycleHookTransitionInstanceLaunching, &result
				},
				[]string{`lifecycleHook drain from "TERMINATING, after 1m0s ABANDON" to "LAUNCHING, after 1m0s CONTINUE"`},
			},
			{func() { w.asg.Spec.AWSLifecycleHooks = nil }, []string{`lifecycleHook drain from "LAUNCHING, after 1m0s CONTINUE" to ""`}},
			{
				func() {
					w.asg.Spec.SuspendProcesses = &expinfrav1.SuspendProcessesTypes{Processes: &expinfrav1.Processes{AZRebalance: aws.Bool(true)}}
				},
				[]string{`suspendedProcess from "" to "AZRebalance"`},
			},
			{func() { w.asg.Spec.SuspendProcesses = nil }, []string{`suspendedProcess from "AZRebalance" to ""`}},
			{
				func() {
					w.asg.Spec.MixedInstancesPolicy = &expinfrav1.MixedInstancesPolicy{Overrides: []expinfrav1.Overrides{{InstanceType: "t3.large"}}}
				},
				[]string{`mixedInstancesPolicy from "" to "t3.large; on demand 0 and 100 % of the rest, prioritized; spot lowest-price"`},
			},
			{func() { w.asg.Spec.MixedInstancesPolicy = nil }, []string{`mixedInstancesPolicy from "t3.large; on demand 0 and 100 % of the rest, prioritized; spot lowest-price" to ""`}},
			{func() { w.asg.Tags = w.asg.Tags.With(cloud.Tags{"team": "red"}) }, []string{`tag team from "" to "red"`}},
			{func() { w.lt.Tags = w.lt.Tags.With(cloud.Tags{"team": "red"}) }, []string{`tag team from "" to "red"`}},
		} {
			c.change()
			var got []string
			for _, line := range w.plan() {
				_, line, _ = strings.Cut(line, ": ")
				got = append(got, line)
			}
			require.Equal(t, c.want, got)
			w.apply()
			require.Empty(t, w.plan(), c.want)
		}
	})
}

// The number of machines that an autoscaler sets is not changed.
func TestPoolWithAutoscaler(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		w.asg.Desired = nil
		_, asg := w.apply()
		require.Len(t, asg.Instances, 1)
		_, err := w.c.AutoScaling.SetDesiredCapacity(
			t.Context(),
			&awsautoscaling.SetDesiredCapacityInput{AutoScalingGroupName: &asg.ID, DesiredCapacity: aws.Int32(4)},
		)
		require.NoError(t, err)
		_, asg = w.apply()
		require.Len(t, asg.Instances, 4)
	})
}

// A run waits for an instance refresh that it did not start, and reports it.
func TestPoolWaitsForOtherRefresh(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		_, asg := w.apply()
		_, err := w.c.AutoScaling.StartInstanceRefresh(t.Context(), &awsautoscaling.StartInstanceRefreshInput{AutoScalingGroupName: &asg.ID})
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		w.lt.Spec.InstanceType = "t3.large"
		require.Contains(t, strings.Join(w.plan(), "\n"), `instanceRefresh from "`)
		_, asg = w.apply()
		require.Equal(t, []string{"2 InService", "2 InService", "2 InService"}, versions(asg))
	})
}

// The error of a failed launch is reported, and the pool can still be changed.
func TestPoolWithoutCapacity(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		w.aws.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = 4 })
		g, _, _ := w.build()
		err := w.run().Apply(t.Context(), g)
		require.ErrorContains(t, err, "2 in service")
		require.ErrorContains(t, err, "vCPU limit of 4")
		w.asg.Desired = aws.Int32(2)
		_, asg := w.apply()
		require.Len(t, asg.Instances, 2)
	})
}

// An instance refresh whose launches fail is cancelled at once, ends the run with AWS's reason, and
// is not started again.
func TestPoolRefreshFails(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		w.asg.Spec.RefreshPreferences = &expinfrav1.RefreshPreferences{MinHealthyPercentage: aws.Int64(50)}
		w.apply()
		w.lt.Spec.InstanceType = "t3.large"
		w.aws.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = 1 })
		g, _, _ := w.build()
		began := time.Now()
		err := w.run().Apply(t.Context(), g)
		require.Error(t, err)
		require.Less(t, time.Since(began), 10*time.Minute)
		for _, operation := range []string{"StartInstanceRefresh", "CancelInstanceRefresh"} {
			calls := slices.DeleteFunc(w.aws.Calls(), func(c awssim.Call) bool { return c.Operation != operation })
			require.Len(t, calls, 1, operation)
		}
		require.ErrorContains(t, err, "2 in service of 3, after instance refresh")
		require.ErrorContains(t, err, "vCPU limit of 1")
		w.asg.Spec.RefreshPreferences.Disable = true
		w.aws.Edit(func(s *awssim.State) { s.EC2.Limits.VCPUs = 100 })
		_, asg := w.apply()
		require.Len(t, asg.Instances, 3)
		require.Empty(t, w.plan(), "machines of two versions, and instance refresh is disabled")
	})
}

// A new template of a pool is a conflict if the manifest suspends a process that an instance refresh needs. It is not if no machine is
// outdated, or if the manifest turns refreshes off.
func TestPoolSuspendsRefresh(t *testing.T) {
	for _, process := range []string{"InstanceRefresh", "Launch", "Terminate"} {
		withAccount(t, func(t *testing.T, w *account) {
			w.apply()
			p := &expinfrav1.Processes{}
			*map[string]**bool{"InstanceRefresh": &p.InstanceRefresh, "Launch": &p.Launch, "Terminate": &p.Terminate}[process] = aws.Bool(true)
			w.asg.Spec.SuspendProcesses = &expinfrav1.SuspendProcessesTypes{Processes: p}
			w.apply()
			w.lt.Spec.InstanceType = "t3.large"
			require.Contains(t, w.plan(), `conflict auto-scaling-group/pool: machines from "3 of 3 of version 1" to "all of version 2"`)
			g, _, _ := w.build()
			require.ErrorContains(t, w.run().Apply(t.Context(), g), "the manifest suspends the process "+process)
			w.asg.Spec.RefreshPreferences = &expinfrav1.RefreshPreferences{Disable: true}
			w.apply()
		})
	}
}

// The leftovers of a pool are found by their tags.
func TestPoolLeftovers(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		w.apply()
		w.run()
		all, _, err := teardown.Search(t.Context(), w.c, kind.Owner{}, nil, false)
		require.NoError(t, err)
		var got []string
		for _, r := range all {
			got = append(got, r.Kind.Name+" "+r.Name)
		}
		require.Equal(t, []string{"launch-template pool", "auto-scaling-group pool"}, got)
	})
}

// A change of each field creates a version, and is the same in the request and in the
// response.
func TestTemplateChanges(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		w.asg.Desired, w.asg.Spec.MinSize = aws.Int32(0), 0
		w.aws.Edit(func(s *awssim.State) {
			s.EC2.KeyPairs["default"], s.EC2.Reservations["cr-0123456789abcdef0"] = true, &awssim.Reservation{}
		})
		w.apply()
		for n, c := range []struct {
			change func(*ec2.LaunchTemplate)
			want   string
		}{
			{func(l *ec2.LaunchTemplate) { l.Key = "default" }, `keyName from "" to "default"`},
			{func(l *ec2.LaunchTemplate) { l.Key = "" }, `keyName from "default" to ""`},
			{func(l *ec2.LaunchTemplate) { l.Spec.IamInstanceProfile = "" }, `iamInstanceProfile from "name nodes.cluster-api-provider-aws.sigs.k8s.io" to ""`},
			{func(l *ec2.LaunchTemplate) { l.Spec.RootVolume.Size = 40 }, `blockDeviceMappings from "deviceName /dev/sda1, ebs deleteOnTermination true, volumeSize 30, volumeType gp3" to "deviceName /dev/sda1, ebs deleteOnTermination true, volumeSize 40, volumeType gp3"`},
			{func(l *ec2.LaunchTemplate) { l.Spec.RootVolume = nil }, `blockDeviceMappings from "deviceName /dev/sda1, ebs deleteOnTermination true, volumeSize 40, volumeType gp3" to ""`},
			{func(l *ec2.LaunchTemplate) {
				l.Spec.SpotMarketOptions = &infrav1.SpotMarketOptions{MaxPrice: aws.String("0.1")}
			}, `instanceMarketOptions from "" to "marketType spot, spotOptions maxPrice 0.1"`},
			{func(l *ec2.LaunchTemplate) { l.Spec.SpotMarketOptions = &infrav1.SpotMarketOptions{} }, `instanceMarketOptions from "marketType spot, spotOptions maxPrice 0.1" to "marketType spot"`},
			{func(l *ec2.LaunchTemplate) { l.Spec.SpotMarketOptions = nil }, `instanceMarketOptions from "marketType spot" to ""`},
			{func(l *ec2.LaunchTemplate) { l.Spec.InstanceMetadataOptions = nil }, `metadataOptions from "httpEndpoint enabled, httpPutResponseHopLimit 2, httpTokens required, instanceMetadataTags disabled" to ""`},
			{func(l *ec2.LaunchTemplate) {
				l.Spec.PrivateDNSName = &infrav1.PrivateDNSName{EnableResourceNameDNSARecord: aws.Bool(true)}
			}, `privateDnsNameOptions from "" to "enableResourceNameDnsARecord true"`},
			{func(l *ec2.LaunchTemplate) { l.Spec.CapacityReservationID = aws.String("cr-0123456789abcdef0") }, `capacityReservationSpecification from "" to "capacityReservationTarget capacityReservationId cr-0123456789abcdef0"`},
			{func(l *ec2.LaunchTemplate) { l.Spec.InstanceType = "m5.xlarge" }, `instanceType from "t3.medium" to "m5.xlarge"`},
			{func(l *ec2.LaunchTemplate) {
				l.Spec.EnclaveOptions = &infrav1.EnclaveOptions{Enabled: aws.Bool(true)}
			}, `enclaveOptions from "" to "enabled true"`},
			{func(l *ec2.LaunchTemplate) { l.InstanceTags = l.InstanceTags.With(cloud.Tags{"team": "red"}) }, `launched tag team from "" to "red"`},
		} {
			c.change(&w.lt)
			require.Equal(t, []string{"update launch-template/pool: " + c.want}, w.plan())
			lt, _ := w.apply()
			require.Equal(t, int64(n+2), lt.Version)
			require.Empty(t, w.plan(), c.want)
		}
	})
}

// madeByCAPA adds versions to the launch template, as CAPA does for each bootstrap token.
func (w *account) madeByCAPA(times int) {
	w.aws.Edit(func(s *awssim.State) {
		for _, l := range s.EC2.LaunchTemplates {
			for range times {
				last := *l.Versions[fmt.Sprint(l.Last)]
				last.Number, last.Description, last.Data.UserData = l.Last+1, "", aws.String(fmt.Sprintf("%064d", l.Last))
				last.Data.TagSpecifications = []types.LaunchTemplateTagSpecificationRequest{{
					ResourceType: types.ResourceTypeInstance,
					Tags:         w.lt.InstanceTags.With(cloud.Tags{ec2.BootHashTag: fmt.Sprintf("%064x", l.Last)}).EC2(),
				}}
				l.Last++
				l.Versions[fmt.Sprint(l.Last)] = &last
			}
		}
	})
}

// Machines of a pool stay when CAPA has made versions for other tokens, and when a run makes one
// after that for its own boot data. Any other change replaces them.
func TestVersionsOfCAPAKeepMachines(t *testing.T) {
	withAccount(t, func(t *testing.T, w *account) {
		_, group := w.apply()
		require.Equal(t, []string{"1 InService", "1 InService", "1 InService"}, versions(group))
		w.madeByCAPA(4)
		plan := w.plan()
		require.Len(t, plan, 1)
		require.Regexp(t, "^update launch-template/pool: bootstrapData from ", plan[0])
		template, group := w.apply()
		require.Equal(t, int64(6), template.Version)
		require.Equal(t, []string{"1 InService", "1 InService", "1 InService"}, versions(group))
		require.Empty(t, w.plan())

		w.madeByCAPA(1)
		w.lt.Spec.InstanceType = "m5.large"
		require.Contains(t, w.plan(), `update auto-scaling-group/pool: machines from "3 of 3 of version 1" to "all of version 8"`)
		w.lt.Spec.InstanceType = "t3.medium"
		w.apply()
		require.Empty(t, w.plan())
		w.lt.Spec.InstanceType = "m5.large"
		template, group = w.apply()
		require.Equal(t, int64(9), template.Version)
		require.Subset(t, []string{"9 InService", "1 Terminating"}, versions(group))
		time.Sleep(5 * time.Minute)
		require.Empty(t, w.plan())
		w.aws.Edit(func(s *awssim.State) { // somebody else's version, of which nothing is known
			for _, l := range s.EC2.LaunchTemplates {
				last := *l.Versions[fmt.Sprint(l.Last)]
				last.Data.TagSpecifications = nil
				l.Last++
				last.Number = l.Last
				l.Versions[fmt.Sprint(l.Last)] = &last
			}
		})
		require.Contains(t, w.plan(), `update auto-scaling-group/pool: machines from "3 of 3 of version 9" to "all of version 11"`)
	})
}
