package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// A role that can read all parameters of the account can read the keys of the cluster,
// unless they have a key of their own. The user is told before they are stored.
func TestMachinesCanReadKeys(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	for key, policies := range map[string][]string{
		"": {"machines with the role nodes.cluster-api-provider-aws.sigs.k8s.io can read the keys of the cluster in SSM Parameter Store, because of AmazonSSMManagedInstanceCore: " +
			"encrypt them with a key of your own (--kms-key), or deny the role ssm:GetParameter* for parameter/clusterawsadm/quickstart/*"},
		"alias/clusters": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, enginetest.Lag)
			enginetest.AddKey(a, "alias/clusters")
			a.Edit(func(s *awssim.State) {
				r := s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"]
				r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
			})
			var warned []string
			c := run.Open(m, cluster.Target{Config: a.Config(), KMSKey: key, Warn: func(s string) { warned = append(warned, s) }})
			_, err := c.Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.Equal(t, policies, warned)
			_, err = c.Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.Equal(t, policies, warned, "told again")
			enginetest.MustDelete(t, m, a)
		})
	}
}

// A read that is denied is told once, and stops nothing.
func TestDeniedLookups(t *testing.T) {
	const disk = "      rootVolume:\n        size: 40\n        type: gp3\n        encrypted: true\n"
	m := enginetest.Rewritten(
		t,
		enginetest.Quickstart,
		disk,
		"      rootVolume: {size: 80, encrypted: true, encryptionKey: 'arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab'}\n",
	)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		var told []string
		p := enginetest.Refusing(a, "KMS", "DescribeKey", awssim.Denied)
		c := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Warn: func(s string) { told = append(told, s) }})
		_, err := c.Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Len(t, told, 1, "%q", told)
		assert.Regexp(t, `AWS cannot be asked whether it accepts this: .*DescribeKey`, told[0])
	})
}

// The key for the keys of the cluster is looked up before the first write, and its absence of an effect is told.
func TestKeyOfTheRun(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		with := func(key string) (told []string, err error) {
			p := a.Process()
			_, err = run.Open(m, cluster.Target{
				Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), KMSKey: key, Warn: func(s string) { told = append(told, s) },
			}).Apply(t.Context(), cluster.Options{})
			return told, err
		}
		before := a.Detailed()
		_, err := with("alias/nope")
		require.ErrorContains(t, err, "--kms-key: the KMS key alias/nope does not exist in this account and region")
		require.Equal(t, before, a.Detailed())
		enginetest.MustApply(t, m, a)
		enginetest.AddKey(a, "alias/clusters")
		told, err := with("alias/clusters")
		require.NoError(t, err)
		require.Len(t, told, 1)
		assert.Contains(t, told[0], "--kms-key has no effect on the keys of the cluster, which are stored already, encrypted with alias/aws/ssm")
	})
}
