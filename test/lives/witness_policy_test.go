//go:build e2e

package lives_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/test/iamjudge"
)

// TestPolicyIsJudged runs the life of every example in an account in which an independent
// evaluator of IAM refuses what the policy for its manifest does not allow. And the policy
// has nothing that no call needs: without any one action of a statement, it denies a call.
func TestPolicyIsJudged(t *testing.T) {
	judge := iamjudge.Start(t, "../../test/iamjudge")
	var mu sync.Mutex
	var all []*hearing
	t.Run("lives", func(t *testing.T) {
		everyLife(t, func(m *manifest.Cluster) judgement {
			h := newHearing(judge, m)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, h)
			return h.permits
		})
	})
	requests := 0
	for _, h := range all {
		assert.Empty(t, h.problems)
		for _, of := range h.requests {
			requests += len(of)
		}
	}
	t.Logf("%d different requests of %d lives", requests, len(all))
	requireTight(t, all)
	requireGeneral(t, all)
}

// requireGeneral requires that the policy without a manifest, for the type of the control
// plane, allows all calls too, except for those that need what only the manifest names.
func requireGeneral(t *testing.T, all []*hearing) {
	t.Helper()
	named := map[string][]string{ // services, by example
		"multi-tenancy": {"sts"},                  // the roles of its identities
		"eks-iam":       {"iam", "kms"},           // its roles, which are created with it, and its key
		"eks-auto":      {"iam"},                  // its role, which has the permissions of Auto Mode
		"eks-karpenter": {"iam", "sqs", "events"}, // what Karpenter needs
		"eks-addons":    {"iam"},                  // the role of its pods
		"flow-logs":     {"iam"},                  // the role that writes its flow log
	}
	denied := map[string]int{} // by example, which may have more than one life
	for _, h := range all {
		policy, err := json.Marshal(permission.Policy(permission.Scope{Region: h.region, Kind: h.kind}))
		require.NoError(t, err)
		for action, requests := range h.requests {
			service, _, _ := strings.Cut(action, ":")
			for _, r := range requests {
				allowed, err := h.judge.Allows(policy, r)
				require.NoError(t, err)
				assert.True(t, allowed || slices.Contains(named[h.name], service), "%s: %v", h.name, r)
				if !allowed {
					denied[h.name]++
				}
			}
		}
	}
	for _, h := range all {
		assert.Equal(t, len(named[h.name]) > 0, denied[h.name] > 0, "%s: %d requests are denied", h.name, denied[h.name])
	}
}

// hearing is what the judge is asked in the life of one cluster.
type hearing struct {
	judge    *iamjudge.Judge
	name     string
	region   string
	kind     permission.Kind
	document permission.Document
	policy   json.RawMessage

	mu       sync.Mutex
	judged   map[string]bool
	requests map[string][]iamjudge.Request // by action
	problems []string                      // denied requests, and errors
}

func newHearing(judge *iamjudge.Judge, m *manifest.Cluster) *hearing {
	h := &hearing{
		judge:    judge,
		name:     m.Name,
		region:   m.Region,
		kind:     permission.Of(m).Kind,
		document: permission.Policy(permission.Of(m)),
		judged:   map[string]bool{},
		requests: map[string][]iamjudge.Request{},
	}
	h.policy, _ = json.Marshal(h.document) // a struct of strings
	return h
}

// permits is the judgement: it reports whether all requests of a call are allowed.
func (h *hearing) permits(service, op string, in any) bool {
	if h.optional(op, in) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	requests, err := h.judge.Requests(service, op, h.region, in)
	if err != nil {
		h.problems = append(h.problems, err.Error())
		return false
	}
	for _, r := range requests {
		if !h.allowed(r) {
			return false
		}
	}
	return true
}

// optional reports whether a call is one of those with which a run asks IAM for the permissions
// of its caller, or for spot prices: the policy does not contain them, and a run goes on without them.
func (h *hearing) optional(op string, in any) bool {
	role, ok := in.(*iam.GetRoleInput)
	return op == "SimulatePrincipalPolicy" || op == "DescribeSpotPriceHistory" ||
		ok && h.kind == permission.SelfManaged && slices.ContainsFunc(h.document.Statement, func(s permission.Statement) bool {
			return s.Sid == "AssumeRolesOfIdentities" && slices.ContainsFunc(s.Resource, func(arn string) bool { return strings.HasSuffix(arn, "/"+*role.RoleName) })
		})
}

func (h *hearing) allowed(r iamjudge.Request) bool {
	key := fmt.Sprint(r)
	if is, known := h.judged[key]; known {
		return is
	}
	is, err := h.judge.Allows(h.policy, r)
	if err != nil || !is {
		h.problems = append(h.problems, fmt.Sprintf("%s is denied (%v)", key, err))
	}
	h.judged[key] = is
	h.requests[r.Action] = append(h.requests[r.Action], r)
	return is
}

// requireTight requires that each action of each statement is needed by a call.
func requireTight(t *testing.T, all []*hearing) {
	t.Helper()
	needed := map[string]bool{}
	for _, h := range all {
		for i, s := range h.document.Statement {
			for _, action := range s.Action {
				key := s.Sid + " " + action
				needed[key] = needed[key] || h.needs(t, i, action)
			}
		}
	}
	spare := unexercised()
	for key, is := range needed {
		if is {
			assert.Empty(t, spare[key], "%s: a call needs it: take it off the list", key)
		} else {
			assert.NotEmpty(t, spare[key], "%s: no call needs it", key)
		}
		delete(spare, key)
	}
	assert.Empty(t, spare, "not in any policy")
}

// needs reports whether the policy without an action of a statement denies a call.
func (h *hearing) needs(t *testing.T, statement int, action string) bool {
	t.Helper()
	without := h.document
	without.Statement = slices.Clone(h.document.Statement)
	s := &without.Statement[statement]
	s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
	if len(s.Action) == 0 {
		without.Statement = slices.Delete(without.Statement, statement, statement+1)
	}
	policy, err := json.Marshal(without)
	require.NoError(t, err)
	return slices.ContainsFunc(h.requests[action], func(r iamjudge.Request) bool {
		allowed, err := h.judge.Allows(policy, r)
		require.NoError(t, err)
		return !allowed
	})
}

// unexercised are the actions that no example needs, with the reason why the policy has
// them.
func unexercised() map[string]string {
	const (
		more     = "removes what somebody else has added, or the manifest does not have any more"
		repairs  = "repairs what somebody else has changed in a way that the tampers do not have"
		diagnose = "explains why a machine does not boot"
		profiles = "deletes what Karpenter has made and has not deleted, because it did not run any more"
		volumes  = "EC2 needs it for a volume that is encrypted with a customer managed key, which no example has"
	)
	return map[string]string{
		"KarpenterProfiles iam:DeleteInstanceProfile":                     profiles,
		"KarpenterProfiles iam:RemoveRoleFromInstanceProfile":             profiles,
		"Describe ec2:GetConsoleOutput":                                   diagnose,
		"Describe eks:ListUpdates":                                        "finds what somebody else is changing in an EKS cluster",
		"EncryptWithKeys kms:Decrypt":                                     volumes,
		"EncryptWithKeys kms:GenerateDataKeyWithoutPlaintext":             volumes,
		"EncryptWithKeys kms:ReEncryptFrom":                               volumes,
		"EncryptWithKeys kms:ReEncryptTo":                                 volumes,
		"Manage autoscaling:CancelInstanceRefresh":                        "stops an instance refresh whose machines cannot be launched or do not join",
		"Manage autoscaling:DeleteLifecycleHook":                          more,
		"Manage autoscaling:ResumeProcesses":                              more,
		"Manage ec2:DisassociateRouteTable":                               "for a route table that somebody else has associated with another subnet",
		"Manage ec2:ReplaceRoute":                                         repairs,
		"Manage ec2:ReplaceRouteTableAssociation":                         repairs,
		"Manage eks:DisassociateAccessPolicy":                             more,
		"Manage elasticloadbalancing:DeleteListener":                      more,
		"Manage elasticloadbalancing:DeregisterInstancesFromLoadBalancer": more,
		"Manage elasticloadbalancing:DetachLoadBalancerFromSubnets":       more,
	}
}
