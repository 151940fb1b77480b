package run_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// A plan builds the requests of the run, and checks them against the models of AWS's APIs. The values are set behind the
// rules of the manifest, which refuse most of them.
func TestRequestsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		edit   func(m *manifest.Cluster)
		want   string
		unsure bool
	}{
		"a type of volume": {enginetest.Quickstart, func(m *manifest.Cluster) {
			m.Deployments[0].Template.Spec.Template.Spec.RootVolume = &infrav1.Volume{Size: 80, Type: "gp9"}
		}, `BlockDeviceMappings\[0\].Ebs.VolumeType: "gp9" is not one of standard, io1`, true},
		"a name of a cluster": {enginetest.EKSSmall, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.EKSClusterName = "a b"
		}, `eks-cluster .*: AWS's API does not take this: name: "a b" does not match`, false},
		"a tenancy": {enginetest.Quickstart, func(m *manifest.Cluster) {
			m.Deployments[0].Template.Spec.Template.Spec.Tenancy = "mine"
		}, `Placement.Tenancy: "mine" is not one of default, dedicated, host`, true},
		"a type of traffic": {"flow-logs.yaml", func(m *manifest.Cluster) {
			m.FlowLogs.Traffic = "SOME"
		}, `TrafficType: "SOME" is not one of ACCEPT, REJECT, ALL`, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, c.file)
				a := enginetest.Prepared(t, m)
				c.edit(m)
				told, err := planned(t, m, a)
				if c.unsure {
					assert.Regexp(t, c.want, told)
					return
				}
				require.Error(t, err)
				assert.Regexp(t, c.want, err.Error())
			})
		})
	}
}

// planned returns the warnings of a plan.
func planned(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (told []string, err error) {
	t.Helper()
	p := a.Process()
	_, err = run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Warn: func(s string) { told = append(told, s) }}).
		Plan(t.Context())
	return told, err
}

// The requests of updates are checked, too.
func TestRequestsOfUpdatesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		edit func(m *manifest.Cluster)
		want string
	}{
		"a launch template": {"machine-pool.yaml", func(m *manifest.Cluster) {
			m.Pools[0].Scaling.Spec.AWSLaunchTemplate.RootVolume = &infrav1.Volume{Size: 80, Type: "gp9"}
		}, `launch-template.*: LaunchTemplateData.BlockDeviceMappings\[0\].Ebs.VolumeType: "gp9" is not one of`},
		"a node group": {enginetest.EKSSmall, func(m *manifest.Cluster) {
			m.Pools[0].Managed.Spec.Labels = map[string]string{strings.Repeat("a", 64): "b"}
		}, `node-group/.*: AWS's API does not take this: labels.addOrUpdateLabels.a+ has 64 characters: AWS permits at most 63`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, c.file)
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				c.edit(m)
				told, err := planned(t, m, a)
				assert.Regexp(t, c.want, append(told, fmt.Sprint(err)))
			})
		})
	}
}

// The requests of all examples are in order, and a plan sends none of them.
func TestRequestsOfExamples(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				a := enginetest.Prepared(t, m)
				told, err := planned(t, m, a)
				require.NoError(t, err)
				for _, s := range told {
					require.NotContains(t, s, "AWS's API")
					require.NotContains(t, s, "cannot be asked")
				}
			})
		})
	}
}
