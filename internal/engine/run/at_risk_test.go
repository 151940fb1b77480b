package run_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A key of KMS that will be deleted takes the EKS cluster with it: each plan warns of it, with the command that cancels the deletion.
func TestKeyThatWillBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "eks-iam.yaml")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		for _, state := range []string{"Enabled", "PendingDeletion"} {
			a.Edit(func(s *awssim.State) {
				for _, k := range s.KMS.Keys {
					k.State = types.KeyState(state)
				}
			})
			warned := enginetest.Told(t, m, a)
			told := strings.Contains(strings.Join(warned, "\n"), "aws kms cancel-key-deletion --key-id arn:aws:kms:")
			require.Equal(t, state != "Enabled", told, "%s: %v", state, warned)
		}
	})
}

// EKS makes the access entry of a role of nodes once, and binds it to the ID of the role.
func TestNodesWithoutAccess(t *testing.T) {
	for what, x := range map[string]struct {
		change func(s *awssim.State, role string)
		told   string
	}{
		"entry": {
			func(s *awssim.State, role string) { delete(enginetest.Plane(s).Access, role) },
			"has no access entry: the API server refuses its nodes, which become NotReady: 'aws eks create-access-entry --region us-east-1 --cluster-name ",
		},
		"role": {
			func(s *awssim.State, role string) { delete(s.IAM.Roles, role[strings.LastIndex(role, "/")+1:]) },
			"was deleted, and its access entry is bound to that role: nodes do not join",
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, "eks-iam.yaml")
				m.EKS.ControlPlane.Spec.AccessConfig.AuthenticationMode = "api"
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				a.Edit(func(s *awssim.State) {
					for _, g := range enginetest.Plane(s).NodeGroups {
						x.change(s, g.RoleARN)
					}
				})
				warned := enginetest.Told(t, m, a)
				require.Contains(t, strings.Join(warned, "\n"), x.told)
			})
		})
	}
}

// Nothing makes the ConfigMap of kubeadm again: who waits for it waits in vain.
func TestDeletedKubeadmConfig(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, m)
		enginetest.Inside(a, func(k *kubesim.Cluster) {
			delete(k.Objects, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config")
		})
		calls := len(a.Calls())
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "somebody has deleted the ConfigMap kube-system/kubeadm-config, without which no machine can join")
		require.ErrorContains(t, err, "kubeadm init phase upload-config all")
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
	})
}

// Nothing installs kube-proxy and CoreDNS again: a plan warns, also if only one of them is gone. Who replaces one deletes its ConfigMap, too.
func TestDeletedAddonsOfKubeadm(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	const apps, maps = "/apis/apps/v1/namespaces/kube-system/", "/api/v1/namespaces/kube-system/configmaps/"
	proxy, dns := []string{apps + "daemonsets/kube-proxy"}, []string{apps + "deployments/coredns"}
	for what, x := range map[string]struct {
		deleted []string
		told    []string
	}{
		"nothing":    {},
		"kube-proxy": {proxy, []string{"deleted the DaemonSet kube-proxy in kube-system"}},
		"CoreDNS":    {dns, []string{"deleted the Deployment coredns in kube-system"}},
		"both":       {append(proxy, dns...), []string{"DaemonSet kube-proxy", "Deployment coredns"}},
		"replaced":   {append(proxy, maps+"kube-proxy"), nil},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, m)
				enginetest.Inside(a, func(k *kubesim.Cluster) {
					for _, path := range x.deleted {
						require.Contains(t, k.Objects, path)
						delete(k.Objects, path)
					}
				})
				var warned []string
				p := a.Process()
				target := cluster.Target{Config: p.Config(), Transport: enginetest.Transport(p), Wait: plan.APIServer, Warn: func(s string) { warned = append(warned, s) }}
				_, err := run.Open(m, target).Plan(t.Context())
				require.NoError(t, err)
				warned = slices.DeleteFunc(warned, func(s string) bool { return !strings.Contains(s, "somebody has deleted") })
				require.Len(t, warned, len(x.told))
				for i, text := range x.told {
					require.Contains(t, warned[i], text)
				}
			})
		})
	}
}
