package stack_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

const name = "cluster-api-provider-aws-sigs-k8s-io"

// user is a user with an account.
type user struct {
	t         *testing.T
	aws       *awssim.AWS
	p         *awssim.Process
	story     []string
	elsewhere []aws.Config
}

func with(t *testing.T, o awssim.Options, test func(t *testing.T, u *user)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(o)
		test(t, &user{t: t, aws: a, p: a.Process()})
	})
}

func bare(t *testing.T, test func(t *testing.T, u *user)) {
	t.Helper()
	with(t, awssim.Options{Bare: true, Latency: 50 * time.Millisecond}, test)
}

func (u *user) stack() *stack.Stack {
	return stack.New(u.p.Config(), name, stack.Options{
		Event: func(e stack.Event) { u.story = append(u.story, e.Logical+" "+string(e.Status)) },
		Progress: func(working []stack.Event) {
			for _, e := range working {
				u.story = append(u.story, "still "+e.Logical)
			}
		},
		Note:         func(text string) { u.story = append(u.story, text) },
		OtherRegions: u.elsewhere,
	})
}

// template returns the template of a modified configuration.
func template(t *testing.T, change func(*bootstrap.Config)) string {
	t.Helper()
	c := bootstrap.Default()
	if change != nil {
		change(c)
	}
	out, err := c.Template().YAML()
	require.NoError(t, err)
	return string(out)
}

func (u *user) apply(w stack.Wanted) (stack.Outcome, error) {
	u.t.Helper()
	u.story = nil
	if w.Template == "" {
		w.Template = template(u.t, nil)
	}
	return u.stack().Apply(u.t.Context(), w)
}

func (u *user) count(op string) (n int) {
	for _, c := range u.aws.Calls() {
		if c.Operation == op {
			n++
		}
	}
	return n
}

func csi(c *bootstrap.Config) { c.Spec.ControlPlane.EnableCSIPolicy = true }

func TestStackLifecycle(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		began := time.Now()
		outcome, err := u.apply(stack.Wanted{Tags: map[string]string{"team": "red"}})
		require.NoError(t, err)
		assert.Equal(t, stack.Created, outcome)
		assert.Less(t, time.Since(began), 3*time.Minute)
		assert.Equal(t, name+" CREATE_IN_PROGRESS", u.story[0])
		assert.Equal(t, name+" CREATE_COMPLETE", u.story[len(u.story)-1])
		assert.Contains(t, u.story, "still AWSIAMInstanceProfileNodes")
		resources, err := u.stack().Resources(t.Context())
		require.NoError(t, err)
		assert.Len(t, resources, 11)

		outcome, err = u.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Unchanged, outcome)
		assert.Empty(t, u.story)

		outcome, err = u.apply(stack.Wanted{Template: template(t, csi)})
		require.NoError(t, err)
		assert.Equal(t, stack.Updated, outcome)
		assert.Equal(t, []string{
			name + " UPDATE_IN_PROGRESS", "AWSEBSCSIPolicyController CREATE_IN_PROGRESS", "AWSEBSCSIPolicyController CREATE_IN_PROGRESS",
			"AWSEBSCSIPolicyController CREATE_COMPLETE", name + " UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", name + " UPDATE_COMPLETE",
		}, slices.DeleteFunc(u.story, func(s string) bool { return strings.Contains(s, "UPDATE_COMPLETE") && !strings.HasPrefix(s, name) }))
		out, err := cfn.NewFromConfig(u.aws.Config()).DescribeStacks(t.Context(), &cfn.DescribeStacksInput{StackName: aws.String(name)})
		require.NoError(t, err)
		assert.Len(t, out.Stacks[0].Tags, 1, "without tags, existing tags are kept")

		existed, err := u.stack().Delete(t.Context())
		require.NoError(t, err)
		assert.True(t, existed)
		assert.Empty(t, u.aws.Inventory())
		existed, err = u.stack().Delete(t.Context())
		require.NoError(t, err)
		assert.False(t, existed)
		assert.Equal(t, 1, u.count("DeleteStack"))
	})
}

// Events are reported once and in order, however AWS pages them.
func TestEventsAreReportedOnce(t *testing.T) {
	var want []string
	for _, page := range []int{0, 3, 1} {
		with(t, awssim.Options{Bare: true, Page: page, Latency: 200 * time.Millisecond}, func(t *testing.T, u *user) {
			_, err := u.apply(stack.Wanted{})
			require.NoError(t, err)
			var all, told []string
			u.aws.Edit(func(s *awssim.State) {
				for _, x := range s.CloudFormation.Stacks {
					for _, e := range x.Events {
						all = append(all, e.Logical+" "+string(e.Status))
					}
				}
			})
			for _, line := range u.story {
				if !strings.HasPrefix(line, "still ") {
					told = append(told, line)
				}
			}
			assert.Equal(t, all, told)
			want = all
		})
	}
	assert.Len(t, want, 35)
}

func TestAccountThatABootstrapWasDoneIn(t *testing.T) {
	with(t, awssim.Options{}, func(t *testing.T, u *user) {
		outcome, err := u.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Updated, outcome)
	})
}

func TestEventsMayBeDenied(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		u.p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribeStackEvents" {
				return awssim.Denied
			}
			return awssim.None
		}
		outcome, err := u.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Created, outcome)
		assert.Equal(t, []string{"cannot show events of the stack: no permission for cloudformation:DescribeStackEvents"}, u.story)
	})
}

// roles that appear after the preflight make a stack fail.
func (u *user) sabotage(role string) {
	first := true
	u.p.Fault = func(_ int, _, op string) awssim.Fault {
		if first && (op == "CreateStack" || op == "UpdateStack") {
			first = false
			u.aws.Edit(func(s *awssim.State) { s.IAM.Roles[role] = &awssim.Role{Name: role} })
		}
		return awssim.None
	}
}

func TestFailureReportsCauses(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		role := "nodes.cluster-api-provider-aws.sigs.k8s.io"
		u.sabotage(role)
		_, err := u.apply(stack.Wanted{})
		var failed *stack.FailedError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, types.StackStatusRollbackComplete, failed.Status)
		require.EqualError(t, err, "create stack "+name+" in us-east-1: it ended with the status ROLLBACK_COMPLETE\n"+
			"AWSIAMRoleNodes (AWS::IAM::Role): Role with name "+role+" already exists.")

		u.aws.Edit(func(s *awssim.State) { delete(s.IAM.Roles, role) })
		_, err = u.apply(stack.Wanted{})
		var stuck *stack.StuckError
		require.ErrorAs(t, err, &stuck)
		assert.True(t, stuck.Deletable())
		assert.Contains(t, err.Error(), "has the status ROLLBACK_COMPLETE: it cannot be updated")
		assert.Contains(t, err.Error(), "Role with name "+role+" already exists.", "AWS still has the events")

		p, err := u.stack().Preview(t.Context(), stack.Wanted{Template: template(t, nil), ReplaceFailed: true})
		require.NoError(t, err)
		require.NoError(t, p.Err)
		assert.Len(t, p.Steps, 11)
		outcome, err := u.apply(stack.Wanted{ReplaceFailed: true})
		require.NoError(t, err)
		assert.Equal(t, stack.Created, outcome)
		assert.Contains(t, u.story[0], "deleting it, to create it again")
	})
}

func TestUpdateThatIsRolledBack(t *testing.T) {
	with(t, awssim.Options{}, func(t *testing.T, u *user) {
		u.sabotage("eks-controlplane.cluster-api-provider-aws.sigs.k8s.io")
		_, err := u.apply(stack.Wanted{})
		var failed *stack.FailedError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, types.StackStatusUpdateRollbackComplete, failed.Status)
		require.Len(t, failed.Causes, 1)
		assert.Equal(t, "AWSIAMRoleEKSControlPlane", failed.Causes[0].Logical)

		u.aws.Edit(func(s *awssim.State) { delete(s.IAM.Roles, "eks-controlplane.cluster-api-provider-aws.sigs.k8s.io") })
		outcome, err := u.apply(stack.Wanted{})
		require.NoError(t, err, "it can be updated again")
		assert.Equal(t, stack.Updated, outcome)
	})
}

func TestStuckStates(t *testing.T) {
	with(t, awssim.Options{}, func(t *testing.T, u *user) {
		in := func(status types.StackStatus) {
			u.aws.Edit(func(s *awssim.State) {
				for _, x := range s.CloudFormation.Stacks {
					x.Status = status
				}
			})
		}
		in(types.StackStatusUpdateRollbackFailed)
		_, err := u.apply(stack.Wanted{ReplaceFailed: true})
		var stuck *stack.StuckError
		require.ErrorAs(t, err, &stuck)
		assert.False(t, stuck.Deletable(), "its resources are in use")
		in(types.StackStatusReviewInProgress)
		_, err = u.apply(stack.Wanted{})
		require.ErrorContains(t, err, "a change set that was not executed; it has no resources")
		p, err := u.stack().Preview(t.Context(), stack.Wanted{Template: template(t, nil)})
		require.NoError(t, err)
		require.ErrorAs(t, p.Err, &stuck)
		assert.Zero(t, u.count("UpdateStack"))
	})
}

// Any answer may be lost, and any call throttled for a while: the stack is created once.
func TestFaults(t *testing.T) {
	for _, fault := range []awssim.Fault{awssim.Throttled, awssim.LostBefore, awssim.LostAfter, awssim.Broken} {
		for _, op := range []string{"CreateStack", "DescribeStacks", "DescribeStackEvents", "GetRole", "ListPolicies", "UpdateStack", "DeleteStack"} {
			t.Run(string(fault)+" "+op, func(t *testing.T) {
				bare(t, func(t *testing.T, u *user) {
					n := 0
					u.p.Fault = func(_ int, _, now string) awssim.Fault {
						if now == op && n < 3 {
							n++
							return fault
						}
						return awssim.None
					}
					_, err := u.apply(stack.Wanted{})
					require.NoError(t, err)
					_, err = u.apply(stack.Wanted{Template: template(t, csi)})
					require.NoError(t, err)
					existed, err := u.stack().Delete(t.Context())
					require.NoError(t, err)
					assert.True(t, existed)
					assert.Equal(t, 3, n, "the fault occurred")
					assert.Empty(t, u.aws.Inventory())
				})
			})
		}
	}
}

// If AWS never answers, the error says that the outcome is unknown, and the next run
// finds out.
func TestAnswerThatNeverCame(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		u.p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "CreateStack" {
				return awssim.LostAfter
			}
			return awssim.None
		}
		outcome, err := u.apply(stack.Wanted{})
		require.NoError(t, err, "its token is in the events")
		assert.Equal(t, stack.Created, outcome)
		_, err = u.stack().Delete(t.Context())
		require.NoError(t, err)

		u.p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "CreateStack" || op == "DescribeStackEvents" {
				return awssim.LostAfter
			}
			return awssim.None
		}
		_, err = u.apply(stack.Wanted{})
		require.ErrorContains(t, err, "it is unknown whether AWS received the request; run the command again")
		u.p.Fault = nil
		outcome, err = u.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Unchanged, outcome)
		assert.Contains(t, u.story[0], "is in CREATE_IN_PROGRESS: waiting for this operation first")
	})
}

// After an interruption or a kill, the next run continues to wait.
func TestInterruption(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("interrupted")
		time.AfterFunc(30*time.Second, func() { cancel(reason) })
		_, err := u.stack().Apply(ctx, stack.Wanted{Template: template(t, nil)})
		var left *stack.WaitError
		require.ErrorAs(t, err, &left)
		require.ErrorIs(t, err, reason)
		assert.Contains(t, err.Error(), "The operation continues in AWS")

		outcome, err := u.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Unchanged, outcome, "AWS completed it")
		assert.Contains(t, u.story, name+" CREATE_IN_PROGRESS", "earlier events are reported again")
		assert.Equal(t, name+" CREATE_COMPLETE", u.story[len(u.story)-1])

		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(reason) })
		_, err = u.stack().Delete(ctx)
		require.ErrorAs(t, err, &left)
		existed, err := u.stack().Delete(t.Context())
		require.NoError(t, err)
		assert.True(t, existed, "it was still being deleted")
		assert.Empty(t, u.aws.Inventory())
	})
}

// Two concurrent runs with the same input both succeed.
func TestTwoAtOnce(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		results, body := make(chan string, 2), template(t, nil)
		for range 2 {
			go func() {
				outcome, err := stack.New(u.aws.Config(), name, stack.Options{}).Apply(t.Context(), stack.Wanted{Template: body})
				results <- fmt.Sprint(outcome, " ", err)
			}()
		}
		both := []string{<-results, <-results}
		slices.Sort(both)
		assert.Equal(t, []string{"created <nil>", "unchanged <nil>"}, both)
	})
}

func TestDeletionSaysWhatHoldsARole(t *testing.T) {
	with(t, awssim.Options{}, func(t *testing.T, u *user) {
		c := iam.NewFromConfig(u.aws.Config())
		role, arn := aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io"), aws.String("arn:aws:iam::aws:policy/ReadOnlyAccess")
		_, err := c.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: arn})
		require.NoError(t, err)
		_, err = u.stack().Delete(t.Context())
		var failed *stack.FailedError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "delete stack "+name+" in us-east-1: it ended with the status DELETE_FAILED\n"+
			"AWSIAMRoleNodes (AWS::IAM::Role "+*role+"): Cannot delete entity, must detach all policies first.\n"+
			"role "+*role+": policy "+*arn+" is attached: aws iam detach-role-policy --role-name "+*role+" --policy-arn "+*arn, err.Error())
		_, err = c.DetachRolePolicy(t.Context(), &iam.DetachRolePolicyInput{RoleName: role, PolicyArn: arn})
		require.NoError(t, err)
		_, err = u.stack().Delete(t.Context())
		require.NoError(t, err)
		assert.Empty(t, u.aws.Inventory())
	})
}

// A stack with termination protection is not deleted, and no request says so to CloudFormation.
func TestProtectedStackIsNotDeleted(t *testing.T) {
	with(t, awssim.Options{}, func(t *testing.T, u *user) {
		protect := func(on bool) {
			u.aws.Edit(func(s *awssim.State) {
				for _, x := range s.CloudFormation.Stacks {
					x.Protected = on
				}
			})
		}
		protect(true)
		calls := len(u.aws.Calls())
		_, err := u.stack().Delete(t.Context())
		require.ErrorAs(t, err, new(*stack.ConflictError))
		require.ErrorContains(
			t,
			err,
			"aws cloudformation update-termination-protection --region us-east-1 --stack-name "+name+" --no-enable-termination-protection turns it off",
		)
		for _, c := range u.aws.Calls()[calls:] {
			require.NotEqual(t, "DeleteStack", c.Operation)
		}
		protect(false)
		_, err = u.stack().Delete(t.Context())
		require.NoError(t, err)
		require.Empty(t, u.aws.Inventory())
	})
}
