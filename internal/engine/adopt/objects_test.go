package adopt_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestHandedOver tests that no run changes a cluster that a management cluster manages, and
// that one which it has deleted can be cleaned up.
func TestHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "quickstart.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		o := cluster.HandoverOptions{
			To:      plan.Manager{ID: "1", Name: "the management cluster"},
			Create:  func(context.Context, []cluster.Object) error { return nil },
			Release: func(context.Context) error { return nil },
		}
		require.ErrorContains(t, adopt.Handover(t.Context(), enginetest.Open(m, a.Process()), o), "does not exist yet")
		enginetest.MustApply(t, m, a)

		before := withoutLocks(a)
		o.Create = func(context.Context, []cluster.Object) error { return errors.New("unreachable") }
		require.ErrorContains(t, adopt.Handover(t.Context(), enginetest.Open(m, a.Process()), o), "unreachable")
		enginetest.MustApply(t, m, a) // nobody else manages it

		created := 0
		o.Create = func(_ context.Context, all []cluster.Object) error { created = len(all); return nil }
		o.Release = func(ctx context.Context) error {
			_, err := enginetest.Open(m, a.Process()).Apply(ctx, cluster.Options{})
			require.ErrorAs(t, err, new(*plan.LockedError), "another run waits for the handover")
			return nil
		}
		require.NoError(t, adopt.Handover(t.Context(), enginetest.Open(m, a.Process()), o))
		require.NotZero(t, created)
		require.Equal(t, before, withoutLocks(a), "it changes nothing in AWS")

		managed := func(err error) {
			t.Helper()
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorAs(t, err, new(*plan.ManagedError))
			require.ErrorContains(t, err, "the management cluster manages cluster quickstart")
		}
		for range 2 { // a refused run keeps the record
			_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
			managed(err)
			_, err = enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
			managed(err)
			_, err = run.OpenByName(m.Name, cluster.Target{Config: a.Process().Config()}).Delete(t.Context(), cluster.Options{})
			managed(err)
		}
		o.To = plan.Manager{ID: "2", Name: "another one"}
		managed(adopt.Handover(t.Context(), enginetest.Open(m, a.Process()), o))

		byName := func() *run.Cluster {
			return run.OpenByName(m.Name, cluster.Target{Config: a.Process().Config()})
		}
		answer := func(yes bool) func(plan.Manager) (bool, error) {
			return func(plan.Manager) (bool, error) { return yes, nil }
		}
		_, err := adopt.Forget(t.Context(), byName(), answer(false))
		require.ErrorIs(t, err, plan.ErrDeclined)
		_, err = byName().Delete(t.Context(), cluster.Options{})
		managed(err)
		was, err := adopt.Forget(t.Context(), byName(), answer(true))
		require.NoError(t, err)
		require.Equal(t, &plan.Manager{ID: "1", Name: "the management cluster"}, was)
		was, err = adopt.Forget(t.Context(), byName(), answer(true))
		require.NoError(t, err)
		require.Nil(t, was)
		require.Equal(t, before, withoutLocks(a))
		res := enginetest.MustApply(t, m, a)
		require.Zero(t, res.Plan.Count(plan.Create, plan.Update))
		_, err = byName().Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
	})
}

// withoutLocks is the inventory of the account without the records of the lock.
func withoutLocks(a *awssim.AWS) []string {
	return slices.DeleteFunc(a.Inventory(), func(x string) bool { return strings.Contains(x, "/lock/") })
}

// TestHandoverRefused refuses pools that CAPA cannot manage.
func TestHandoverRefused(t *testing.T) {
	m := enginetest.Load(t, "flatcar-pool.yaml", nil)
	m.Pools[0].Scaling.Spec.Ignition = &infrav1.Ignition{StorageType: infrav1.IgnitionStorageTypeOptionClusterObjectStore}
	m.Infra.Spec.S3Bucket.PresignedURLDuration = &metav1.Duration{Duration: time.Hour}
	templates := enginetest.Load(t, "eks-templates.yaml", nil)
	for want, m := range map[string]*manifest.Cluster{
		"AWSMachinePool/flatcar-pool-mp-0: pools with ignition.storageType: ClusterObjectStore and a presignedURLDuration cannot be handed over": m,
		": node groups with a launch template cannot be handed over":                                                                             templates,
	} {
		err := adopt.Handover(t.Context(), enginetest.Open(m, awssim.New(awssim.Options{}).Process()), cluster.HandoverOptions{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		assert.ErrorContains(t, err, want)
	}
}

// TestHandoverOfPools compares the objects of pools with their launch templates, as CAPA does:
// it makes a version of the template if the Secret has other user data, or if instances are
// not tagged with the name of the Secret.
func TestHandoverOfPools(t *testing.T) {
	for _, file := range []string{"machine-pool", "flatcar-pool"} {
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Quick(enginetest.Load(t, ""+file+".yaml", nil))
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.MustApply(t, m, a)
				before := withoutLocks(a)
				objects, status := handOver(t, m, a)
				require.Equal(t, before, withoutLocks(a), "it changes nothing in AWS")

				pool := file + "-mp-0"
				name, _, _ := unstructured.NestedString(objects["MachinePool/"+pool], "spec", "template", "spec", "bootstrap", "dataSecretName")
				data, _, _ := unstructured.NestedString(objects["Secret/"+name], "data", "value")
				token, _, _ := unstructured.NestedString(objects["KubeadmConfig/"+pool], "spec", "joinConfiguration", "discovery", "bootstrapToken", "token")
				require.Regexp(t, `^[a-z0-9]{6}\.[a-z0-9]{16}$`, token)
				require.Equal(t, name, status["dataSecretName"], "or else the user data is made anew")
				exported, err := adopt.Objects(t.Context(), enginetest.Open(m, a.Process()))
				require.NoError(t, err)
				for _, o := range exported.Items {
					if o.Content["kind"] == "KubeadmConfig" {
						require.NotContains(t, fmt.Sprint(o.Content), token, "an export has no secrets")
					}
				}
				bootsWith(t, a, data, name)
			})
		})
	}
}

// handOver hands a cluster over, and returns the objects by kind and name, and their status.
func handOver(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (objects map[string]map[string]any, status map[string]any) {
	t.Helper()
	objects, status = map[string]map[string]any{}, map[string]any{}
	require.NoError(t, adopt.Handover(t.Context(), enginetest.Open(m, a.Process()), cluster.HandoverOptions{
		To: plan.Manager{ID: "1", Name: "the management cluster"},
		Create: func(_ context.Context, all []cluster.Object) error {
			for _, o := range all {
				x := unstructured.Unstructured{Object: o.Content}
				objects[x.GetKind()+"/"+x.GetName()] = o.Content
				maps.Copy(status, o.Status)
			}
			return nil
		},
		Release: func(context.Context) error { return nil },
	}))
	return objects, status
}

// bootsWith requires that the account has one launch template, with the user data of a Secret and
// a tag with the name of that Secret.
func bootsWith(t *testing.T, a *awssim.AWS, data, secret string) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		require.Len(t, s.EC2.LaunchTemplates, 1)
		for id := range s.EC2.LaunchTemplates {
			launched := enginetest.Content(s, id)
			decoded, err := base64.StdEncoding.DecodeString(data)
			require.NoError(t, err)
			assert.Equal(t, aws.ToString(launched.UserData), base64.StdEncoding.EncodeToString(decoded))
			assert.Equal(t, "default/"+secret, cloud.FromEC2(launched.TagSpecifications[0].Tags)[infrav1.LaunchTemplateBootstrapDataSecret])
		}
	})
}

// TestHandoverOfIgnitionInBucket requires that the Secret has the configuration which is in the
// bucket: CAPA stores it there under another name.
func TestHandoverOfIgnitionInBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, "flatcar-pool.yaml", nil))
		m.Pools[0].Scaling.Spec.Ignition = &infrav1.Ignition{Version: "2.3", StorageType: infrav1.IgnitionStorageTypeOptionClusterObjectStore}
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		before := withoutLocks(a)
		objects, _ := handOver(t, m, a)
		require.Equal(t, before, withoutLocks(a), "it changes nothing in AWS")
		data, _, _ := unstructured.NestedString(objects["Secret/flatcar-pool-mp-0"], "data", "value")
		secret, err := base64.StdEncoding.DecodeString(data)
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) {
			stored := s.S3.Buckets[m.Infra.Spec.S3Bucket.Name].Objects["node/machine-pool/flatcar-pool-mp-0"]
			require.NotNil(t, stored)
			require.Equal(t, string(stored.Body), string(secret))
		})
	})
}

// TestHandoverOfMachinesOfEKS requires that the controllers render the same user data for a
// pool (see TestBytesOfEKS in test/oracle): the block of Services, which EKS has chosen, is in the
// Cluster, where they read it.
func TestHandoverOfMachinesOfEKS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks-machines.yaml"
		m := enginetest.Load(t, file, nil)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		before := withoutLocks(a)
		objects, _ := handOver(t, m, a)
		require.Equal(t, before, withoutLocks(a), "it changes nothing in AWS")
		var services string
		a.Edit(func(s *awssim.State) { services = enginetest.Plane(s).ServiceCIDR })
		blocks, _, _ := unstructured.NestedStringSlice(objects["Cluster/eks-machines"], "spec", "clusterNetwork", "services", "cidrBlocks")
		require.Equal(t, []string{services}, blocks)
		secret, _, _ := unstructured.NestedString(objects["MachinePool/eks-machines-mp-0"], "spec", "template", "spec", "bootstrap", "dataSecretName")
		require.Equal(t, "eks-machines-mp-0", secret, "the controller writes into the Secret of the NodeadmConfig's name")
		data, _, _ := unstructured.NestedString(objects["Secret/"+secret], "data", "value")
		bootsWith(t, a, data, secret)
		for _, name := range []string{"AWSMachine", "NodeadmConfig"} {
			found := 0
			for key := range objects {
				if strings.HasPrefix(key, name+"/eks-machines-md-0-") {
					found++
				}
			}
			require.Equal(t, 2, found, name)
		}
	})
}

// TestTagsOfEKS compares the tags of the resources of EKS with those of CAPA, which removes all
// others from node groups and Fargate profiles, and adds its own to the rest. It sets the tags of
// nodes on the Auto Scaling groups of node groups.
func TestTagsOfEKS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks-addons.yaml"
		m := enginetest.Load(t, file, nil)
		m.Infra.Spec.AdditionalTags = infrav1.Tags{"team": "a"}
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			eks := infrav1.ClusterAWSCloudProviderTagKey(m.KubernetesName())
			name := infrav1.ClusterAWSCloudProviderTagKey(m.Name)
			cluster := enginetest.Plane(s)
			assert.Equal(t, "owned", cluster.Tags[infrav1.ClusterTagKey(m.KubernetesName())])
			assert.NotEmpty(t, cluster.NodeGroups)
			for _, g := range cluster.NodeGroups {
				want := map[string]string{"team": "a"}
				if strings.HasSuffix(g.Name, "-batch") {
					want["example.com/team"] = "data"
				}
				for key, value := range want {
					assert.Equal(t, awssim.ScalingTag{Value: value, Propagate: true}, s.AutoScaling.Groups[g.Scaling].Tags[key], g.Name)
				}
				want[eks] = "owned"
				assert.Equal(t, want, g.Tags, g.Name)
			}
			assert.NotEmpty(t, cluster.Fargate)
			for _, f := range cluster.Fargate {
				assert.Equal(t, map[string]string{"team": "a", name: "owned"}, f.Tags, f.Name)
			}
			assert.NotEmpty(t, cluster.Addons)
			for _, x := range cluster.Addons {
				assert.Equal(t, "owned", x.Tags[name], x.Name)
			}
		})
	})
}
