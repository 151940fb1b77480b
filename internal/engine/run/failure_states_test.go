package run_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// states are the enums of states in the API models of AWS, of all that this program waits for.
func states() map[string][]string {
	return map[string][]string{
		"autoscaling.InstanceRefreshStatus":     texts(astypes.InstanceRefreshStatus("").Values()),
		"autoscaling.LifecycleState":            texts(astypes.LifecycleState("").Values()),
		"autoscaling.ScalingActivityStatusCode": texts(astypes.ScalingActivityStatusCode("").Values()),
		"cloudformation.ChangeSetStatus":        texts(cfntypes.ChangeSetStatus("").Values()),
		"cloudformation.ResourceStatus":         texts(cfntypes.ResourceStatus("").Values()),
		"cloudformation.StackStatus":            texts(cfntypes.StackStatus("").Values()),
		"ec2.CarrierGatewayState":               texts(ec2types.CarrierGatewayState("").Values()),
		"ec2.ImageState":                        texts(ec2types.ImageState("").Values()),
		"ec2.InstanceStateName":                 texts(ec2types.InstanceStateName("").Values()),
		"ec2.NatGatewayState":                   texts(ec2types.NatGatewayState("").Values()),
		"ec2.NetworkInterfaceStatus":            texts(ec2types.NetworkInterfaceStatus("").Values()),
		"ec2.PlacementGroupState":               texts(ec2types.PlacementGroupState("").Values()),
		"ec2.RouteState":                        texts(ec2types.RouteState("").Values()),
		"ec2.SpotInstanceState":                 texts(ec2types.SpotInstanceState("").Values()),
		"ec2.State":                             texts(ec2types.State("").Values()), // of VPC endpoints
		"ec2.SubnetCidrBlockStateCode":          texts(ec2types.SubnetCidrBlockStateCode("").Values()),
		"ec2.SubnetState":                       texts(ec2types.SubnetState("").Values()),
		"ec2.VolumeState":                       texts(ec2types.VolumeState("").Values()),
		"ec2.VpcCidrBlockStateCode":             texts(ec2types.VpcCidrBlockStateCode("").Values()),
		"eks.AddonStatus":                       texts(ekstypes.AddonStatus("").Values()),
		"eks.ClusterStatus":                     texts(ekstypes.ClusterStatus("").Values()),
		"eks.ConfigStatus":                      texts(ekstypes.ConfigStatus("").Values()),
		"eks.FargateProfileStatus":              texts(ekstypes.FargateProfileStatus("").Values()),
		"eks.NodegroupStatus":                   texts(ekstypes.NodegroupStatus("").Values()),
		"eks.UpdateStatus":                      texts(ekstypes.UpdateStatus("").Values()),
		"elb.LoadBalancerStateEnum":             texts(elbtypes.LoadBalancerStateEnum("").Values()),
		"elb.TargetHealthStateEnum":             texts(elbtypes.TargetHealthStateEnum("").Values()),
		"ssm.CommandInvocationStatus":           texts(ssmtypes.CommandInvocationStatus("").Values()),
	}
}

func texts[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// notStates are types whose names look like those of states: settings, properties of zones and versions, and a structure;
// and the states of existing resources, which a plan looks at and no run waits for.
func notStates() []string {
	return []string{
		"AllocationState", // of Dedicated Hosts
		"CapacityReservationState",
		"InsightStatusValue",
		"KeyState",
		"HttpTokensState",
		"InstanceMetadataEndpointState",
		"InstanceMetadataProtocolState",
		"InstanceMetadataTagsState",
		"LaunchTemplateHttpTokensState",
		"RuleState", // of EventBridge
		"VpcCidrBlockState",
		"LaunchTemplateInstanceMetadataEndpointState",
		"LaunchTemplateInstanceMetadataTagsState",
		"AvailabilityZoneOptInStatus",
		"VersionStatus",
		"PingStatus",
	}
}

// fails reports whether a state is one of failure, or an end that nobody has asked for.
func fails(state string) bool {
	return regexp.MustCompile(`(?i)fail|error|degraded|impaired|reject|expired|partial|cancel|rollback|invalid|terminat|shutting|stop|unavailable|unhealthy|timedout|quarantine|deregister|disabled|closed|blackhole|transient`).
		MatchString(state)
}

// tested are the states of failure that end a wait, or a deletion, in a test.
func tested() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"autoscaling.InstanceRefreshStatus Cancelled":          TestInstanceRefreshesThatFail,
		"autoscaling.InstanceRefreshStatus Failed":             TestInstanceRefreshesThatFail,
		"autoscaling.InstanceRefreshStatus RollbackFailed":     TestInstanceRefreshesThatFail,
		"autoscaling.InstanceRefreshStatus RollbackSuccessful": TestInstanceRefreshesThatFail,
		"autoscaling.ScalingActivityStatusCode Failed":         TestFailureStatesEndWaits,
		"ec2.InstanceStateName stopped":                        TestStoppedControlPlane,
		"ec2.State Expired":                                    TestFailureStatesEndWaits,
		"ec2.State Rejected":                                   TestFailureStatesEndWaits,
		"ec2.SubnetCidrBlockStateCode failing":                 TestSubnetsThatFail,
		"ec2.VpcCidrBlockStateCode failing":                    TestFailureStatesEndWaits,
		"eks.AddonStatus DEGRADED":                             TestFailureStatesEndWaits,
		"ec2.InstanceStateName shutting-down":                  TestLaunchFails,
		"ec2.InstanceStateName terminated":                     TestLaunchFails,
		"ec2.NatGatewayState failed":                           TestNATGatewayFails,
		"ec2.State Failed":                                     TestFailureStatesEndWaits,
		"ec2.SubnetCidrBlockStateCode failed":                  TestSubnetsThatFail,
		"ec2.SubnetState failed":                               TestSubnetsThatFail,
		"ec2.SubnetState failed-insufficient-capacity":         TestSubnetsThatFail,
		"ec2.VpcCidrBlockStateCode failed":                     TestFailureStatesEndWaits,
		"eks.AddonStatus CREATE_FAILED":                        TestEKSFails,
		"eks.AddonStatus UPDATE_FAILED":                        TestEKSFails,
		"eks.AddonStatus DELETE_FAILED":                        TestDeletionsThatFail,
		"eks.ClusterStatus FAILED":                             TestFailureStatesEndWaits,
		"eks.FargateProfileStatus CREATE_FAILED":               TestEKSFails,
		"eks.FargateProfileStatus DELETE_FAILED":               TestDeletionsThatFail,
		"eks.NodegroupStatus CREATE_FAILED":                    TestEKSFails,
		"eks.NodegroupStatus DELETE_FAILED":                    TestDeletionsThatFail,
		"eks.UpdateStatus Failed":                              TestEKSFails,
		"eks.UpdateStatus Cancelled":                           TestEKSFails,
		"elb.LoadBalancerStateEnum failed":                     TestFailureStatesEndWaits,
		"elb.LoadBalancerStateEnum active_impaired":            TestPassingFailuresEndNoWait, // it serves requests
	}
}

// untested are the states of failure that end no wait of a run, and why. A * stands for the rest.
func untested() map[string]string {
	return map[string]string{
		"autoscaling.InstanceRefreshStatus Cancelling":         "passes: it becomes Cancelled",
		"autoscaling.InstanceRefreshStatus RollbackInProgress": "passes: it becomes RollbackSuccessful or RollbackFailed",
		"autoscaling.LifecycleState *":                         "of a machine: its group launches another one; Retained only with a policy that this program does not set",
		"autoscaling.ScalingActivityStatusCode Cancelled":      "the group begins another activity, and only launches that fail are waited for",
		"cloudformation.*":                                     "pkg/bootstrap/stack waits as long as a status ends in _IN_PROGRESS, and names any other: stack_test.go",
		"ec2.ImageState *":                                     "pkg/ami waits for pending images only, and names any other state: copy_test.go",
		"ec2.InstanceStateName stopping":                       "passes: it becomes stopped",
		"ec2.RouteState blackhole":                             "no run waits for a route",
		"ec2.SpotInstanceState *":                              "no run waits for a spot request: RunInstances answers with machines, and TestLaunchFails loses one",
		"ec2.State Partial":                                    "not of gateway endpoints",
		"ec2.SubnetState unavailable":                          "passes: the infrastructure of the subnet is not available at the moment",
		"ec2.VolumeState error":                                "no run creates volumes, and such a volume is deleted as others are",
		"eks.NodegroupStatus DEGRADED":                         "passes when its nodes are healthy; the run waits for the Nodes themselves",
		"elb.TargetHealthStateEnum *":                          "passes when the machine serves requests; the diagnosis names it",
		"ssm.CommandInvocationStatus *":                        "internal/engine/aws/runcommand reads on while a command is in progress, and names any other status",
	}
}

// Each state of failure that AWS knows of what this program waits for ends a wait in a test, or has a reason
// why it does not. A new version of the API models, or a new kind, fails this test until it is in a list.
func TestFailureStatesAreKnown(t *testing.T) {
	left := map[string]bool{}
	for enum, values := range states() {
		for _, v := range values {
			if fails(v) {
				left[enum+" "+v] = true
			}
		}
	}
	for name, test := range tested() {
		require.NotNil(t, test)
		require.True(t, left[name], "%s is no state of failure, or twice in the lists", name)
		delete(left, name)
	}
	for name, why := range untested() {
		require.NotEmpty(t, why, name)
		rest, all := strings.CutSuffix(name, "*")
		before := len(left)
		maps.DeleteFunc(left, func(state string, _ bool) bool { return state == name || all && strings.HasPrefix(state, rest) })
		require.Less(t, len(left), before, "%s is no state of failure, or twice in the lists", name)
	}
	assert.Empty(t, slices.Sorted(maps.Keys(left)), "states of failure in no list")
}

// Each enum of states that the code names is one of those that TestFailureStatesAreKnown goes through.
func TestEnumsOfStatesAreKnown(t *testing.T) {
	var known []string
	for enum := range states() {
		_, name, _ := strings.Cut(enum, ".")
		known = append(known, name)
	}
	known = append(known, notStates()...)
	seen := 0
	for _, root := range []string{"../../../internal/engine", "../../../pkg"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				x, is := n.(*ast.SelectorExpr)
				if !is || !regexp.MustCompile(`Stat(e|us)`).MatchString(x.Sel.Name) {
					return true
				}
				if of, is := x.X.(*ast.Ident); !is || !strings.HasSuffix(of.Name, "types") {
					return true
				}
				seen++
				assert.True(t, slices.ContainsFunc(known, func(name string) bool { return strings.HasPrefix(x.Sel.Name, name) }), "%s: %s", path, x.Sel.Name)
				return true
			})
			return nil
		}))
	}
	require.Greater(t, seen, 100)
}
