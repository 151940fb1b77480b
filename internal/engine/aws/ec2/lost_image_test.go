package ec2_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The machines of a pool run on without their image, their key pair and their instance profile. Only a run that launches machines is refused, and
// says what to do; others warn.
func TestPoolsWithoutWhatTheyStartWith(t *testing.T) {
	const pool, image, key, profile = "machine-pool-mp-0", "ami-0123456789abcdef0", "mine", "nodes-only"
	for name, x := range map[string]struct {
		want string
		take func(s *awssim.State)
	}{
		"image": {
			"does not exist in us-east-1, or is not shared with this account: use another image, or restore it from the Recycle Bin",
			func(s *awssim.State) { delete(s.EC2.Images, image) },
		},
		"key pair": {"key pair \"mine\" does not exist in us-east-1: create it", func(s *awssim.State) { delete(s.EC2.KeyPairs, key) }},
		"instance profile": {
			"instance profile nodes-only does not exist",
			func(s *awssim.State) { delete(s.IAM.Profiles, profile) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				a.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Images {
						if strings.HasPrefix(i.Name, "capa-ami-ubuntu-24.04-v1.34.2") && i.Architecture == "x86_64" {
							own := *i
							own.ID, own.Name = image, "own"
							s.EC2.Images[image] = &own
							break
						}
					}
					require.NotNil(t, s.EC2.Images[image])
					s.EC2.KeyPairs[key] = true
					own := *s.IAM.Profiles["nodes.cluster-api-provider-aws.sigs.k8s.io"]
					own.Name = profile
					s.IAM.Profiles[profile] = &own
				})
				object, spec := m.Pools[0].Object, &m.Pools[0].Scaling.Spec
				spec.AWSLaunchTemplate.AMI.ID, spec.AWSLaunchTemplate.SSHKeyName, spec.AWSLaunchTemplate.IamInstanceProfile = new(image), new(key), profile
				enginetest.MustApply(t, m, a)
				a.Edit(x.take)

				about := func() (warnings []string, err error) {
					_, err = run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Warn: func(w string) {
						if strings.Contains(w, x.want) {
							warnings = append(warnings, w)
						}
					}}).Plan(t.Context())
					return warnings, err
				}
				warnings, err := about()
				require.NoError(t, err, "nothing changes")
				require.Len(t, warnings, 1)
				assert.Regexp(t, `^machine-pool.yaml:\d+ AWSMachinePool/machine-pool-mp-0 spec\.awsLaunchTemplate\.`, warnings[0])
				enginetest.RequireNoChange(t, m, a)

				for what, change := range map[string]func(){
					"more machines":           func() { object.Spec.Replicas = new(int32(3)) },
					"another version of them": func() { spec.AWSLaunchTemplate.InstanceType = "m6i.xlarge" },
				} {
					before, n := *spec.DeepCopy(), *object.Spec.Replicas
					change()
					warnings, err = about()
					require.ErrorContains(t, err, x.want, what)
					require.ErrorAs(t, err, new(*plan.RefusedError), what)
					assert.Empty(t, warnings, "it is refused")
					*spec, object.Spec.Replicas = before, &n
				}

				object.Spec.Replicas = new(int32(1))
				spec.MaxSize = 4
				require.Equal(t, []string{"update auto-scaling-group/" + pool}, enginetest.Done(enginetest.MustPlan(t, m, a)))
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				a.Edit(func(s *awssim.State) { require.EqualValues(t, 1, s.AutoScaling.Groups[pool].Desired) })
				_, err = enginetest.Open(m, a.Process()).Delete(context.WithoutCancel(t.Context()), cluster.Options{})
				require.NoError(t, err)
			})
		})
	}
}
