package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The configuration of an add-on is compared with the schema that EKS has for its version, before the first write. An add-on
// that is as desired costs no call.
func TestSchemaOfAddon(t *testing.T) {
	for name, tt := range map[string]struct{ addon, version, configuration, want string }{
		"unknown field":         {"vpc-cni", "v1.20.4-eksbuild.1", `{"env":{"ENABLE_PREFIX_DELEGATION":"true"},"foo":1}`, "EKS refuses it for vpc-cni v1.20.4-eksbuild.1: Additional property foo is not allowed"},
		"wrong type":            {"vpc-cni", "v1.20.4-eksbuild.1", "env:\n  ENABLE_PREFIX_DELEGATION: true\n", "env.ENABLE_PREFIX_DELEGATION: Invalid type. Expected: string, given: boolean"},
		"value of a list":       {"kube-proxy", "v1.34.0-eksbuild.2", `{"mode":"ipsv"}`, "mode: must be one of the following: \"iptables\", \"ipvs\", \"nftables\""},
		"two problems":          {"coredns", "v1.12.4-eksbuild.1", `{"replicaCount":"2","autoScaling":{"enabled":true,"minReplicas":1}}`, "autoScaling.minReplicas: Must be greater than or equal to 2; replicaCount: Invalid type. Expected: integer, given: string"},
		"no version: default":   {"coredns", "", `{"replicas":2}`, "EKS refuses it for coredns v1.12.4-eksbuild.1: Additional property replicas is not allowed"},
		"anchors":               {"coredns", "", "{replicaCount: 2}", ""},
		"tolerations":           {"coredns", "", `{"tolerations":[{"operator":"Exists"}]}`, ""},
		"tolerations in a word": {"coredns", "", `{"tolerations":"all"}`, "tolerations: Invalid type. Expected: [array,null], given: string"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const file = "eks.yaml"
				load := func(configuration string) *manifest.Cluster {
					m := enginetest.Load(t, file, nil)
					x := ekscontrolplanev1.Addon{Name: tt.addon, Version: tt.version, Configuration: configuration}
					x.ConflictResolution = new(ekscontrolplanev1.AddonResolutionOverwrite)
					m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{x}
					return m
				}
				m := load(tt.configuration)
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				if tt.want == "" {
					enginetest.MustApply(t, m, a)
					calls := len(a.Calls())
					enginetest.RequireNoChange(t, m, a)
					for _, c := range a.Calls()[calls:] {
						assert.NotEqual(t, "DescribeAddonConfiguration", c.Operation)
					}
					return
				}
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, tt.want)
				enginetest.MustApply(t, load(""), a)
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
			})
		})
	}
}
