package diagnose_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	firstControl = "machine/quickstart-control-plane/0"
	firstWorker  = "machine/quickstart-md-0/0"
)

// sabotage is a cause that prevents a cluster from becoming ready, applied when a
// resource of the graph is done, with the resource that fails and the findings.
type sabotage struct {
	name  string
	file  string // "" for quickstart
	wait  plan.Wait
	when  plan.ID
	do    func(t *testing.T, a *awssim.AWS, s *awssim.State)
	fails plan.ID
	first string   // pattern of the first finding
	more  []string // patterns of other findings
}

// install creates a DaemonSet in every cluster.
func install(s *awssim.State, name string) {
	for _, c := range s.Kubernetes {
		c.Put(c.Up, kubesim.Object{
			"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": kubesim.Object{"name": name, "namespace": "kube-system"},
			"spec": kubesim.Object{"template": kubesim.Object{"spec": kubesim.Object{"tolerations": []any{kubesim.Object{"operator": "Exists"}}, "volumes": []any{
				kubesim.Object{"name": "cni", "hostPath": kubesim.Object{"path": map[bool]string{true: "/etc/cni/net.d"}[name == "calico-node"]}},
			}}}},
		})
	}
}

// sabotages lists one of each type.
func sabotages() []sabotage {
	withoutSecrets := func(_ *testing.T, _ *awssim.AWS, s *awssim.State) { clear(s.Secrets.Secrets) }
	return []sabotage{
		{
			name: "no route", wait: plan.APIServer, when: firstControl, fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				for _, table := range s.EC2.RouteTables {
					table.Routes = nil
				}
			},
			first: `^i-\w+ cannot reach the internet, nor the APIs of AWS: rtb-\w+, the route table of its subnet-\w+, has no default route`,
			more:  []string{`^i-\w+ has never fetched its boot data: the secret \S+ still exists`, `Could not connect to the endpoint URL`},
		},
		{
			name: "no table yet", wait: plan.APIServer, when: firstControl, fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				for _, table := range s.EC2.RouteTables {
					if table.Main == "" {
						clear(table.Associations)
					}
				}
			},
			first: `^i-\w+ cannot reach .*has no default route.* because the subnet has no table of the cluster yet: run this again, which makes it\. The machine waits`,
		},
		{
			name: "no NAT gateway", wait: plan.APIServer, when: firstControl, fails: "api-server",
			do:    func(_ *testing.T, _ *awssim.AWS, s *awssim.State) { clear(s.EC2.NATGateways) },
			first: `^i-\w+ cannot reach .* has a route to 0.0.0.0/0 that leads to nat-\w+, which does not exist or does not work`,
		},
		{
			name: "secret of the control plane deleted", wait: plan.APIServer, when: firstControl, fails: "api-server", do: withoutSecrets,
			first: `^i-\w+ says on its console ".*ResourceNotFoundException.*": \S+ did not exist any more when it tried to fetch it: terminate it`,
		},
		{
			name: "profile without role", wait: plan.APIServer, when: firstControl, fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				for _, p := range s.IAM.Profiles {
					p.Role = ""
				}
			},
			first: `^the instance profile control-plane\S+ of i-\w+ has no role`,
			more:  []string{`has never fetched its boot data`, `Unable to locate credentials`},
		},
		{
			name: "instance terminated", wait: plan.APIServer, when: "targets", fails: "api-server",
			do: func(t *testing.T, a *awssim.AWS, s *awssim.State) {
				id := enginetest.MachineOf(s, firstControl).ID
				go func() {
					_, err := ec2.NewFromConfig(a.Process().Config()).TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
					assert.NoError(t, err)
				}()
			},
			first: `^instance i-\w+ is terminated \(.*User initiated.*\): run this again, which launches another one`,
		},
		{
			name: "target deregistered", wait: plan.APIServer, when: "targets", fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				for _, g := range s.ELB.TargetGroups {
					g.Targets = nil
				}
			},
			first: `^no machine in the target group \S+ of the load balancer is healthy: i-\w+ is not registered\. Run this again`,
		},
		{
			name: "target deregistered from a classic load balancer", file: "classic-elb", wait: plan.APIServer, when: "classic-targets", fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				for _, b := range s.ELB.Classic {
					clear(b.Instances)
				}
			},
			first: `^no machine of the control plane is registered with the load balancer \S+: run this again`,
		},
		{
			name: "kubeadm fails", wait: plan.APIServer, when: firstControl, fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				clear(s.Secrets.Secrets) // they have fetched them
				enginetest.MachineOf(s, firstControl).Boot = &awssim.Boot{At: time.Now(), Failed: "[ERROR Swap]: running with swap on is not supported"}
			},
			first: `^i-\w+ says on its console ".*\[ERROR Swap\].*": the machine does not pass the preflight checks of kubeadm`,
			more:  []string{`unhealthy, Target.FailedHealthChecks: Health checks failed`},
		},
		{
			name: "nothing may leave", wait: plan.APIServer, when: firstControl, fails: "api-server",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				enginetest.MachineOf(s, firstControl).Boot = &awssim.Boot{At: time.Now(), Failed: "timeout"}
				for _, g := range s.EC2.SecurityGroups {
					g.Egress = nil
				}
			},
			first: `^the security groups of i-\w+ \(sg-.*\) permit no outgoing traffic`,
		},
	}
}

// sabotagesOfNodes lists causes after a machine has joined.
func sabotagesOfNodes() []sabotage {
	return []sabotage{
		{
			name: "secret of a worker deleted", wait: plan.NodesReady, when: firstWorker, fails: "node/quickstart-md-0/0",
			do: func(t *testing.T, _ *awssim.AWS, s *awssim.State) {
				data, err := base64.StdEncoding.DecodeString(enginetest.MachineOf(s, firstWorker).UserData)
				require.NoError(t, err)
				for name := range s.Secrets.Secrets {
					if strings.Contains(string(data), strings.TrimSuffix(name, "-0")) {
						delete(s.Secrets.Secrets, name)
					}
				}
			},
			first: `^the secret \S+, from which i-\w+ fetches its boot data, does not exist any more: terminate it`,
		},
		{
			name: "token gone", wait: plan.NodesReady, when: "api-server", fails: "node/quickstart-md-0/0",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				for _, c := range s.Kubernetes {
					for path := range c.Objects {
						if strings.Contains(path, "/secrets/bootstrap-token-") {
							delete(c.Objects, path)
						}
					}
				}
			},
			first: `^the cluster does not know the bootstrap token [a-z0-9]{6} with which i-\w+ joins`,
			more:  []string{`kubeadm join --token \[secret\]`, `the console of i-\w+ says last:`},
		},
		{
			name: "another CA", wait: plan.NodesReady, when: "api-server", fails: "node/quickstart-md-0/0",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				enginetest.MachineOf(s, firstWorker).Boot.Hashes = []string{"sha256:0123"}
			},
			first: `says on its console ".*none of the public keys.*": the cluster CA at the API server is not the one whose hash the machine was given`,
		},
		{
			name: "certificate not approved", wait: plan.NodesReady, when: "api-server", fails: "node/quickstart-md-0/0",
			do: func(_ *testing.T, _ *awssim.AWS, s *awssim.State) {
				enginetest.MachineOf(s, firstWorker).Boot.Failed = "timed out waiting for the TLS bootstrap"
				for _, c := range s.Kubernetes {
					c.Put(c.Up, kubesim.Object{
						"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": kubesim.Object{"name": "csr-x7k2p"},
						"spec": kubesim.Object{"username": "system:bootstrap:abcdef"}, "status": kubesim.Object{},
					})
				}
			},
			first: `^a machine has asked to join, and its certificate request csr-x7k2p waits for approval`,
		},
		{
			name: "no pod network", wait: plan.NodesReady, when: "api-server", fails: "node/quickstart-md-0/0",
			do:    func(_ *testing.T, _ *awssim.AWS, s *awssim.State) { install(s, "aws-cloud-controller-manager") },
			first: `^node ip-\S+ is not ready: ".*cni plugin not initialized".* no pod network.*--cni FILE`,
		},
		{
			name: "no cloud controller manager", wait: plan.NodesReady, when: "api-server", fails: "node/quickstart-md-0/0",
			do:    func(_ *testing.T, _ *awssim.AWS, s *awssim.State) { install(s, "calico-node") },
			first: `^node ip-\S+ has no provider ID, and the taint node.cloudprovider.kubernetes.io/uninitialized: .*Install one`,
		},
	}
}

// run creates a cluster that cannot become ready.
func (x sabotage) run(ctx context.Context, t *testing.T, edit func(*awssim.Process)) (*awssim.AWS, error) {
	file := x.file
	if file == "" {
		file = "quickstart"
	}
	m := enginetest.Quick(enginetest.Load(t, ""+file+".yaml", nil))
	a := enginetest.Account(m, enginetest.Lag)
	p, done := a.Process(), false
	if edit != nil {
		edit(p)
	}
	tells := enginetest.Tell(t)
	target := cluster.Target{
		Config:       p.Config(),
		Owner:        "test",
		Transport:    enginetest.Transport(p),
		Wait:         x.wait,
		NetworkFirst: true,
	} // so that there is a route to remove before machines boot
	_, err := run.Open(m, target).Apply(ctx, cluster.Options{Observe: func(e plan.Event) {
		if tells != nil {
			tells(e)
		}
		if e.What == plan.Done && !done && (e.Resource == x.when || e.Resource.Kind() == string(x.when)) {
			done = true
			a.Edit(func(s *awssim.State) { x.do(t, a, s) })
		}
	}})
	require.True(t, done, "nothing was sabotaged")
	return a, err
}

// TestDiagnosis prevents clusters from becoming ready in different ways. The cause has to
// be the first finding.
func TestDiagnosis(t *testing.T) {
	for _, x := range append(sabotages(), sabotagesOfNodes()...) {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := x.run(t.Context(), t, nil)
				end := enginetest.Diagnosed(t, err, x.fails)
				require.NotEmpty(t, end.Findings)
				t.Log(strings.Join(end.Findings, "\n"))
				assert.Regexp(t, x.first, end.Findings[0])
				for _, more := range x.more {
					assert.Regexp(t, `(?m)`+more, strings.Join(end.Findings, "\n"))
				}
				assert.NotRegexp(t, `\b[a-z0-9]{6}\.[a-z0-9]{16}\b`, strings.Join(end.Findings, "\n"), "no secrets")
				assert.NotContains(t, err.Error(), "\n  ", "findings are not part of the message")
			})
		})
	}
}

// A run outside of the VPC cannot wait for an EKS cluster with a private endpoint.
func TestDiagnosisOfAPrivateEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		m := enginetest.Load(t, file, nil)
		m.EKS.ControlPlane.Spec.EndpointAccess.Public, m.EKS.ControlPlane.Spec.EndpointAccess.Private = new(bool), aws.Bool(true)
		a := enginetest.Prepared(t, m)
		p := a.Process()
		_, err := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.APIServer}).
			Apply(t.Context(), cluster.Options{})
		findings := enginetest.Diagnosed(t, err, "api-server").Findings
		require.Len(t, findings, 1)
		require.Regexp(
			t,
			`^nothing answers at \S+, and the endpoint of the EKS cluster is private: only machines that reach the VPC can wait for the API server; run this there, or with .*, or set spec.endpointAccess.public: true`,
			findings[0],
		)
	})
}

// If the policy denies a read of the diagnosis, the findings say so, and contain all
// others.
func TestDiagnosisWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := sabotages()[0].run(t.Context(), t, func(p *awssim.Process) {
			p.Permits = func(_, op string, _ any) bool { return op != "GetConsoleOutput" && op != "DescribeInstanceAttribute" }
		})
		end := enginetest.Diagnosed(t, err, "api-server")
		assert.Contains(t, end.Findings[0], "has no default route")
		assert.Contains(
			t,
			end.Findings[len(end.Findings)-1],
			"not checked, because these calls failed: EC2 DescribeInstanceAttribute (not allowed), EC2 GetConsoleOutput (not allowed)",
		)
	})
}

// A run that exceeds its timeout also reports the possible causes; one that the user
// stops does not.
func TestDiagnosisOfARunThatIsOutOfTime(t *testing.T) {
	late := errors.New("not done after 8m (--timeout)")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 8*time.Minute, late)
		defer cancel()
		_, err := sabotages()[0].run(ctx, t, nil)
		end := enginetest.Diagnosed(t, err, "api-server")
		assert.Contains(t, end.Findings[0], "has no default route")
		assert.Regexp(t, `^not done after 8m \(--timeout\); it waited \S+ for state to become ready`, end.Error())
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(8 * time.Minute)
			cancel(late)
		}()
		_, err := sabotages()[0].run(ctx, t, nil)
		require.ErrorIs(t, err, late)
		assert.NotErrorAs(t, err, new(*plan.TimeoutError))
	})
}

// A deleted Node does not come back by itself, because the kubelet registers only when it starts. The finding says so.
func TestDeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.ThreeZones, nil)
		a := enginetest.Alive(t, m)
		time.Sleep(time.Hour)
		var node, id string
		a.Edit(func(s *awssim.State) {
			i := enginetest.MachineOf(s, "machine/three-zones-md-0/1")
			node, id = i.Boot.Node, i.ID
		})
		enginetest.Inside(a, func(c *kubesim.Cluster) { delete(c.Objects, "/api/v1/nodes/"+node) })
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		var end *plan.TimeoutError
		require.ErrorAs(t, err, &end)
		require.Len(t, end.Findings, 1)
		assert.Contains(t, end.Findings[0], "somebody has deleted it")
		assert.Contains(t, end.Findings[0], "clusterawsadm cluster exec three-zones "+id+" -- systemctl restart kubelet")
	})
}
