package eks_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A user or role that is removed from the manifest loses access, also if the whole field is removed. Entries that others have written stay.
func TestRemovedMappingsLoseAccess(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.EKSSmall)
	m.EKS.ControlPlane.Spec.AccessConfig = &ekscontrolplanev1.AccessConfig{AuthenticationMode: ekscontrolplanev1.EKSAuthenticationModeConfigMap}
	ops, bob := ekscontrolplanev1.RoleMapping{
		RoleARN: "arn:aws:iam::123456789012:role/ops",
	}, ekscontrolplanev1.UserMapping{
		UserARN: "arn:aws:iam::123456789012:user/bob",
	}
	ops.UserName, ops.Groups = "ops", []string{"readers"}
	bob.UserName, bob.Groups = "bob", []string{"system:masters"}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		m.EKS.ControlPlane.Spec.IAMAuthenticatorConfig = &ekscontrolplanev1.IAMAuthenticatorConfig{
			RoleMappings: []ekscontrolplanev1.RoleMapping{ops}, UserMappings: []ekscontrolplanev1.UserMapping{bob},
		}
		applyWaiting(t, m, a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			o := c.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth")
			data, _ := o["data"].(kubesim.Object)
			data["mapRoles"] = fmt.Sprint(data["mapRoles"]) + "- rolearn: arn:aws:iam::123456789012:role/of-others\n  username: others\n  groups: [readers]\n"
			c.Put(time.Now(), o)
		})

		m.EKS.ControlPlane.Spec.IAMAuthenticatorConfig.UserMappings = nil
		p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
		require.NoError(t, err)
		require.Equal(
			t,
			plan.Diff{{Field: "mapUsers arn:aws:iam::123456789012:user/bob", Have: "bob in system:masters", Remedy: plan.InPlace}},
			enginetest.StepOf(t, p, "aws-auth").Diff,
		)
		applyWaiting(t, m, a)
		require.NotContains(t, mapped(a), "bob")
		require.Contains(t, mapped(a), "role/ops")

		m.EKS.ControlPlane.Spec.IAMAuthenticatorConfig = nil
		applyWaiting(t, m, a)
		require.NotContains(t, mapped(a), "role/ops")
		require.Contains(t, mapped(a), "role/of-others")
	})
}

// mapped returns the text of the ConfigMap aws-auth.
func mapped(a *awssim.AWS) (text string) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		text = fmt.Sprint(c.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth"))
	})
	return text
}

// applyWaiting applies the manifest with a run that uses the API server, and requires that another one has nothing to do.
func applyWaiting(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
	p, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Plan(t.Context())
	require.NoError(t, err)
	require.True(t, p.Empty(), "%v", enginetest.Steps(p))
}
