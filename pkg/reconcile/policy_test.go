package reconcile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// TestPoliciesFitIAM creates the policies of every example and of every type of control
// plane, for every region, in an account of that region.
func TestPoliciesFitIAM(t *testing.T) {
	for _, region := range regions.All() {
		policies := map[string]plan.PolicyDocument{}
		for _, of := range []reconcile.ControlPlane{reconcile.AnyControlPlane, reconcile.SelfManaged, reconcile.EKS} {
			policies["kind-"+string(of)] = reconcile.Policy(region, of)
			if region == "us-east-1" {
				policies["everywhere-"+string(of)] = reconcile.Policy("", of)
			}
		}
		for _, file := range enginetest.Examples(t) {
			m := enginetest.Load(t, file, nil)
			m.Region = region
			if is := manifest.PartitionOf(
				region,
			); is != "aws" &&
				slices.Contains([]string{"eks-addons", "eks-iam", "flow-logs", "multi-tenancy"}, enginetest.Name(file)) {
				continue // these manifests have ARNs with a partition
			}
			policies[enginetest.Name(file)] = plan.PolicyDocument(permission.Policy(permission.Of(m)))
		}
		synctest.Test(t, func(t *testing.T) {
			cfg := awssim.New(awssim.Options{Region: region}).Config()
			cfg.RetryMaxAttempts = 20 // more policies than IAM's rate lets through at once
			client := iam.NewFromConfig(cfg)
			for of, policy := range policies {
				requireFits(t, client, of, policy)
			}
		})
	}
}

// requireFits creates managed policies of a document.
func requireFits(t *testing.T, client *iam.Client, of string, policy plan.PolicyDocument) {
	t.Helper()
	parts := reconcile.SplitPolicy(policy)
	require.LessOrEqual(t, len(parts), 3, "a role has room for 10 managed policies, and not only for these")
	for i, part := range parts {
		text, err := json.Marshal(part)
		require.NoError(t, err)
		_, err = client.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String(fmt.Sprint(of, i)), PolicyDocument: aws.String(string(text))})
		require.NoError(t, err, "%s: %d characters", of, reconcile.PolicySize(part))
	}
	require.ElementsMatch(t, permissions(policy), permissions(parts...))
}

// permissions lists each action with each resource and condition.
func permissions(documents ...plan.PolicyDocument) (out []string) {
	for _, d := range documents {
		for _, s := range d.Statement {
			for _, action := range s.Action {
				for _, resource := range s.Resource {
					out = append(out, fmt.Sprint(action, " ", resource, " ", s.Condition))
				}
			}
		}
	}
	return out
}

// TestExamplesHaveOnePolicy shows for which example a single managed policy is enough.
func TestExamplesHaveOnePolicy(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		most := 1
		switch enginetest.Name(file) {
		case "eks-addons", "eks-iam": // roles of pods; roles, a key and an add-on with names of their own
			most = 2
		case "flatcar-pool": // Ignition in a bucket, and a pool
			most = 2
		case "eks-karpenter": // two roles with policies of their own, a queue and a rule
			most = 2
		case "eks-templates": // EKS, launch templates and roles
			most = 2
		case "eks-machines": // EKS, single machines and pools, which nearly fit into one
			most = 2
		}
		assert.LessOrEqual(
			t,
			len(reconcile.SplitPolicy(plan.PolicyDocument(permission.Policy(permission.Of(enginetest.Load(t, file, nil)))))),
			most,
			enginetest.Name(file),
		)
	}
}

// TestPolicyHasRoomForMore adds what later versions of this program or large manifests may
// have: actions, and resources.
func TestPolicyHasRoomForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := iam.NewFromConfig(awssim.New(awssim.Options{Region: "us-east-1"}).Config())
		for _, c := range []struct{ actions, resources int }{{40, 0}, {400, 0}, {0, 40}, {0, 200}, {40, 40}} {
			for _, of := range []reconcile.ControlPlane{reconcile.AnyControlPlane, reconcile.SelfManaged, reconcile.EKS} {
				d := reconcile.Policy("us-east-1", of)
				d.Statement = slices.Clone(d.Statement)
				for i := range c.actions {
					d.Statement[1].Action = append(d.Statement[1].Action, fmt.Sprintf("ec2:ModifySomethingOfAnotherKind%d", i))
				}
				for i := range c.resources {
					d.Statement[2].Resource = append(d.Statement[2].Resource, fmt.Sprintf("arn:aws:ssm:us-east-1:*:parameter/teams/payments/production/%d/*", i))
				}
				if c.actions < 100 && c.resources < 100 {
					requireFits(t, client, fmt.Sprint(of, c.actions, "-", c.resources, "-"), d)
					continue
				}
				for _, part := range reconcile.SplitPolicy(d) {
					require.LessOrEqual(t, reconcile.PolicySize(part), permission.MostPolicy)
				}
				require.ElementsMatch(t, permissions(d), permissions(reconcile.SplitPolicy(d)...))
			}
		}
	})
}
