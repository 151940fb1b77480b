package teardown_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbv2types "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	sims3 "github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// attribute changes an attribute of an instance.
func attribute(t *testing.T, a *awssim.AWS, in ec2.ModifyInstanceAttributeInput) {
	t.Helper()
	_, err := ec2.NewFromConfig(a.Config()).ModifyInstanceAttribute(t.Context(), &in)
	require.NoError(t, err)
}

func balancerAttribute(t *testing.T, a *awssim.AWS, value string) {
	t.Helper()
	var arn string
	a.Edit(func(s *awssim.State) {
		for id := range s.ELB.LoadBalancers {
			arn = id
		}
	})
	_, err := elbv2.NewFromConfig(a.Config()).ModifyLoadBalancerAttributes(t.Context(), &elbv2.ModifyLoadBalancerAttributesInput{
		LoadBalancerArn: &arn, Attributes: []elbv2types.LoadBalancerAttribute{{Key: aws.String("deletion_protection.enabled"), Value: &value}},
	})
	require.NoError(t, err)
}

func groupProtection(t *testing.T, a *awssim.AWS, value autoscalingtypes.DeletionProtection) {
	t.Helper()
	_, err := autoscaling.NewFromConfig(a.Config()).
		UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("machine-pool-mp-0"), DeletionProtection: value})
	require.NoError(t, err)
}

// protections turn a protection of AWS on and off, and say what a deletion tells about it.
var protections = map[string]struct {
	file string
	set  func(t *testing.T, a *awssim.AWS, on bool)
	told string
}{
	"load balancer": {
		enginetest.ThreeZones, func(t *testing.T, a *awssim.AWS, on bool) { t.Helper(); balancerAttribute(t, a, fmt.Sprint(on)) },
		"has deletion protection: aws elbv2 modify-load-balancer-attributes --region us-east-1 --load-balancer-arn arn:",
	},
	"machine of the control plane": {enginetest.ThreeZones, func(t *testing.T, a *awssim.AWS, on bool) {
		t.Helper()
		attribute(
			t,
			a,
			ec2.ModifyInstanceAttributeInput{
				InstanceId:            aws.String(enginetest.MachineWith(a, "control-plane")),
				DisableApiTermination: &types.AttributeBooleanValue{Value: &on},
			},
		)
	}, "--no-disable-api-termination turns it off"},
	"worker that may not be stopped": {enginetest.ThreeZones, func(t *testing.T, a *awssim.AWS, on bool) {
		t.Helper()
		attribute(
			t,
			a,
			ec2.ModifyInstanceAttributeInput{InstanceId: aws.String(enginetest.MachineWith(a, "node")), DisableApiStop: &types.AttributeBooleanValue{Value: &on}},
		)
	}, "has stop protection"},
	"Auto Scaling group": {"machine-pool.yaml", func(t *testing.T, a *awssim.AWS, on bool) {
		t.Helper()
		groupProtection(
			t,
			a,
			map[bool]autoscalingtypes.DeletionProtection{true: autoscalingtypes.DeletionProtectionPreventForceDeletion, false: autoscalingtypes.DeletionProtectionNone}[on],
		)
	}, "--deletion-protection none turns it off"},
	"bucket": {
		"flatcar.yaml", denyIn("s3:DeleteBucket"), `denies s3:DeleteBucket (statement "keep")`,
	},
	"objects": {
		"flatcar.yaml", denyIn("s3:Delete*Version"), "denies s3:DeleteObjectVersion",
	},
	"objects of somebody else": {
		"flatcar.yaml", storeBackup,
		"has 1 object that no run has stored (backups/one), and is only deleted without them: aws s3 mv --recursive --exclude 'control-plane/*'",
	},
}

// storeBackup puts an object into the bucket of the cluster.
func storeBackup(t *testing.T, a *awssim.AWS, on bool) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		for _, b := range s.S3.Buckets {
			delete(b.Objects, "backups/one")
			if on {
				b.Objects["backups/one"] = &sims3.Object{Key: "backups/one", Body: []byte("etcd")}
			}
		}
	})
}

// denyIn adds a statement to the policy of the bucket that denies an action to everybody.
func denyIn(action string) func(t *testing.T, a *awssim.AWS, on bool) {
	had := map[string]string{}
	return func(t *testing.T, a *awssim.AWS, on bool) {
		t.Helper()
		a.Edit(func(s *awssim.State) {
			require.NotEmpty(t, s.S3.Buckets)
			for name, b := range s.S3.Buckets {
				if !on {
					b.Policy = had[name]
					continue
				}
				had[name] = b.Policy
				added := fmt.Sprintf(
					`"Statement":[{"Sid":"keep","Effect":"Deny","Principal":"*","Action":%q,"Resource":["arn:aws:s3:::%s","arn:aws:s3:::%s/*"]},`,
					action,
					name,
					name,
				)
				b.Policy = strings.Replace(b.Policy, `"Statement":[`, added, 1)
				require.NotEqual(t, had[name], b.Policy)
			}
		})
	}
}

// What AWS protects from deletion is found before the first write, by file and by name, and in
// a dry run.
func TestProtectionsRefuseADeletion(t *testing.T) {
	for what, x := range protections {
		t.Run(what, func(t *testing.T) {
			m := enginetest.LoadQuick(t, x.file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.MustApply(t, m, a)
				time.Sleep(enginetest.Booting)
				x.set(t, a, true)
				before := enginetest.WithoutLock(a)
				for _, refuse := range []func() error{
					func() error {
						_, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
						return err
					},
					func() error {
						_, err := enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
						return err
					},
					func() error {
						_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{})
						return err
					},
				} {
					err := refuse()
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.ErrorContains(t, err, x.told)
				}
				require.Equal(t, before, enginetest.WithoutLock(a))
				x.set(t, a, false)
				enginetest.MustDelete(t, m, a)
				require.Empty(t, a.Inventory())
			})
		})
	}
}

// EKS takes two minutes to turn the protection of a cluster on or off, and does not show it before. A deletion is refused from the beginning until
// the protection is off.
func TestProtectionOfEKSThatIsBeingTurnedOn(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.EKSSmall)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		kept := a.Inventory()
		enginetest.MustApply(t, m, a)
		set := func(on bool) {
			in := &eks.UpdateClusterConfigInput{Name: aws.String("default_eks"), DeletionProtection: &on}
			_, err := eks.NewFromConfig(a.Config()).UpdateClusterConfig(t.Context(), in)
			require.NoError(t, err)
		}
		refused := func(want string) {
			before := enginetest.WithoutLock(a)
			for _, c := range []*run.Cluster{enginetest.Open(m, a.Process()), enginetest.ByName(m.Name, a)} {
				_, err := c.Delete(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, want)
			}
			require.Equal(t, before, enginetest.WithoutLock(a))
		}
		const off = "aws eks update-cluster-config --region us-east-1 --name default_eks --no-deletion-protection turns it off"
		set(true)
		refused("the EKS cluster default_eks is getting deletion protection: aws eks wait cluster-active --region us-east-1 --name default_eks && " + off)
		time.Sleep(3 * time.Minute)
		refused("the EKS cluster default_eks has deletion protection: " + off)
		set(false)
		refused("the deletion protection of the EKS cluster default_eks is being turned off: aws eks wait cluster-active --region us-east-1 --name default_eks")
		time.Sleep(3 * time.Minute)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, kept, a.Inventory())
	})
}

// Who may not read the attributes of instances is told so once, and the deletion goes on.
func TestProtectionIsNotReadable(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		p := a.Process()
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribeInstanceAttribute" || op == "DescribeLoadBalancerAttributes" {
				return awssim.Denied
			}
			return awssim.None
		}
		var warned []string
		_, err := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Warn: func(s string) { warned = append(warned, s) }}).
			Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Len(t, warned, 2, "%v", warned)
		require.Empty(t, a.Inventory())
	})
}

// A thousand workers do not mean thousands of calls.
func TestProtectionOfAThousandWorkers(t *testing.T) {
	m := enginetest.WithWorkers(t, enginetest.ThreeZones, 1000)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		before := len(a.Calls())
		_, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		_, ops := enginetest.Counted(enginetest.Since(a, before))
		require.LessOrEqual(t, ops["DescribeInstanceAttribute"], 100)
	})
}

// controlPlanes counts the machines of the control plane that are not terminated.
func controlPlanes(a *awssim.AWS) (n int) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "control-plane" && i.Terminating.IsZero() {
				n++
			}
		}
	})
	return n
}

// keyLost reports whether a machine of the control plane exists without its keys, or without
// the init marker.
func keyLost(a *awssim.AWS) bool {
	found := 0
	a.Edit(func(s *awssim.State) {
		for name, p := range s.SSM.Parameters {
			for _, key := range []string{`"ca.key":`, `"sa.key":`, `"etcd-ca.key":`} {
				if strings.Contains(name, "/pki/") && strings.Contains(p.Value, key) {
					found++
				}
			}
			if strings.HasSuffix(name, "/init") {
				found++
			}
		}
	})
	return controlPlanes(a) > 0 && found < 4
}

// refusedFor refuses the n-th write of a process for good, and all that are like it.
func refusedFor(p *awssim.Process, n int, fault awssim.Fault) (operation *string) {
	operation = new(string)
	seen := map[string]bool{}
	p.Fault = func(_ int, service, op string) awssim.Fault {
		if len(enginetest.Writes([]awssim.Call{{Service: service, Operation: op}})) > 0 && !seen[op] ||
			service == "SSM" && strings.HasPrefix(op, "DeleteParameter") && !seen[op] {
			seen[op] = true
			if len(seen) == n {
				*operation = op
			}
		}
		if *operation == op {
			return fault
		}
		return awssim.None
	}
	return operation
}

// lateExamples are the examples of TestDeletionIsRefusedLate.
func lateExamples() []string {
	return []string{enginetest.ThreeZones, "eks-addons.yaml", enginetest.ByoVPC, enginetest.MachinePool}
}

// ways are how a deletion is started.
var ways = []struct {
	name string
	open func(m *manifest.Cluster, p *awssim.Process) *run.Cluster
}{
	{"by file", enginetest.Open},
	{"by name", func(m *manifest.Cluster, p *awssim.Process) *run.Cluster {
		return run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test"})
	}},
}

// Whichever call of a deletion is refused for good: as long as a machine of the control plane
// exists, its keys and its load balancer do. Then the cluster is created again as it was, or the deletion
// ends.
func TestDeletionIsRefusedLate(t *testing.T) {
	for _, file := range enginetest.Sample(lateExamples()) {
		m := enginetest.LoadQuick(t, file)
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			for n := 1; refusedLate(t, m, n, awssim.Denied); n++ {
				if enginetest.Sweeping() {
					refusedLate(t, m, n, awssim.Used)
				}
			}
		})
	}
}

// refusedLate refuses the n-th operation of deletions, and reports whether there is one.
func refusedLate(t *testing.T, m *manifest.Cluster, n int, fault awssim.Fault) (some bool) {
	t.Helper()
	for i, way := range ways {
		if !enginetest.Sweeping() && i != n%2 {
			continue
		}
		for _, then := range []string{"create", "delete"} {
			if then == "delete" && !enginetest.Sweeping() {
				continue // a deletion follows also after "create"
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				time.Sleep(enginetest.Booting)
				machines := controlPlanes(a)
				p := a.Process()
				op := refusedFor(p, n, fault)
				_, err := way.open(m, p).Delete(context.Background(), cluster.Options{})
				refused := *op
				if refused == "" {
					return
				}
				some = true
				if fault == awssim.Denied && refused != "DeleteParameter" { // the run ends without deleting the record of the lock
					require.Error(t, err, "%s %s", way.name, refused)
				}
				require.False(t, m.EKS == nil && keyLost(a), "%s %s: the keys of a living control plane are deleted", way.name, refused)
				if then == "create" {
					continues(t, m, a, machines, way.name+" "+refused)
				}
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory(), "%s %s", way.name, refused)
			})
		}
	}
	return some
}

// continues creates a cluster again of which a deletion has stopped. If all machines of the control plane
// exist, it is as it was. If none exists, it is a new one, unless the account still says that the old one
// was begun: then the run is refused.
func continues(t *testing.T, m *manifest.Cluster, a *awssim.AWS, machines int, what string) {
	t.Helper()
	first, left := enginetest.MachineWith(a, "control-plane"), controlPlanes(a)
	_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
	if left == 0 && errors.As(err, new(*plan.LostControlPlaneError)) {
		return
	}
	require.NoError(t, err, what)
	enginetest.RequireNoChange(t, m, a)
	if left == machines {
		require.Equal(t, first, enginetest.MachineWith(a, "control-plane"), what)
	}
	require.False(t, m.EKS == nil && keyLost(a), what)
}
