package enginetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim/helmsim"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Settled is long enough for machines to join, and for controllers to create their
// resources.
const Settled = 6 * time.Minute

// ThreeZones is an example with three machines of the control plane.
const ThreeZones = "three-zones.yaml"

// WithWorkers returns the example with another number of workers.
func WithWorkers(t *testing.T, file string, n int32) *manifest.Cluster {
	t.Helper()
	m := LoadQuick(t, file)
	m.Deployments[0].Object.Spec.Replicas = &n
	return m
}

// Since returns the calls after the first n.
func Since(a *awssim.AWS, n int) []awssim.Call { return a.Calls()[n:] }

// MachineOf returns the instance of a resource.
func MachineOf(s *awssim.State, node string) *awssim.Instance {
	for _, i := range s.EC2.Instances {
		if i.Tags["clusterawsadm/resource"] == node {
			return i
		}
	}
	return nil
}

// Diagnosed returns the findings for a resource that did not become ready.
func Diagnosed(t *testing.T, err error, id plan.ID) *plan.TimeoutError {
	t.Helper()
	var halfway *plan.HalfwayError
	require.ErrorAs(t, err, &halfway)
	all := []error{halfway.Err}
	if many, ok := halfway.Err.(interface{ Unwrap() []error }); ok {
		all = many.Unwrap()
	}
	for _, e := range all {
		var node *plan.ResourceError
		var end *plan.TimeoutError
		if errors.As(e, &node) && node.Resource == id && errors.As(e, &end) {
			return end
		}
	}
	require.Fail(t, "no such node failed", "%s: %v", id, err)
	return nil
}

// Leaving is the Node of the machine that is deleted when the number of workers is
// reduced.
func Leaving(a *awssim.AWS, machine string) (node string) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Tags["clusterawsadm/resource"] == machine {
				node = i.Boot.Node
			}
		}
	})
	return node
}

// Terminate begins to terminate a machine, as somebody does outside of a run: it is shutting-down for
// a while.
func Terminate(a *awssim.AWS, machine string, takes time.Duration) {
	a.Edit(func(s *awssim.State) {
		if i := MachineOf(s, machine); i != nil {
			i.Terminating, i.Terminated = time.Now(), time.Now().Add(takes)
		}
	})
	a.Inventory() // it has its effect on the cluster
}

// RemoveCloudControllerManager removes the cloud controller manager from a manifest.
func RemoveCloudControllerManager(a *awssim.AWS) {
	Inside(a, func(c *kubesim.Cluster) {
		for path := range c.Objects {
			if strings.HasPrefix(path, "/apis/apps/v1/") && strings.Contains(path, "cloud-controller") {
				delete(c.Objects, path)
			}
		}
	})
}

// IPv6Example is an example with IPv6.
const IPv6Example = "ipv6.yaml"

// Instance launches an instance in the cluster's subnet.
func (x *Insider) Instance(groups ...string) {
	x.T.Helper()
	image := ""
	x.A.Edit(func(s *awssim.State) { image = s.EC2.Instances[x.Machine].Image })
	_, err := x.EC2.RunInstances(x.T.Context(), &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceTypeT3Micro, ImageId: &image, SubnetId: &x.Subnet,
		SecurityGroupIds: groups, TagSpecifications: x.With(types.ResourceTypeInstance),
	})
	require.NoError(x.T, err)
}

// NetworkInterface creates a network interface in a security group of the cluster.
func (x *Insider) NetworkInterface(description string, tags ...string) (id string) {
	x.T.Helper()
	in := &ec2.CreateNetworkInterfaceInput{SubnetId: &x.Subnet, Groups: x.Groups[:1], Description: &description}
	if len(tags) > 0 {
		x.Tags = nil
		in.TagSpecifications = x.With(types.ResourceTypeNetworkInterface, tags...)
	}
	out, err := x.EC2.CreateNetworkInterface(x.T.Context(), in)
	require.NoError(x.T, err)
	return *out.NetworkInterface.NetworkInterfaceId
}

// WithoutLock lists the resources of the account, except for the record of the lock, which
// counts the runs.
func WithoutLock(a *awssim.AWS) []string {
	return slices.DeleteFunc(a.Detailed(), func(line string) bool { return strings.Contains(line, "/lock/") })
}

// RequireSealed requires that what AWS stores of commands is encrypted.
func RequireSealed(t *testing.T, a *awssim.AWS) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		require.NotEmpty(t, s.SSM.Commands)
		for _, c := range s.SSM.Commands {
			require.NotContains(t, c.Script, "PRIVATE")
			for _, r := range c.Results {
				lines := strings.Split(r.Out, "\n")
				require.Len(t, lines, 4)
				password, err := base64.StdEncoding.DecodeString(lines[0])
				require.NoError(t, err)
				require.Len(t, password, 3072/8)
				data, err := base64.StdEncoding.DecodeString(lines[1])
				require.NoError(t, err)
				require.Equal(t, "Salted__", string(data[:8]))
				require.Equal(t, "end of output", lines[2])
			}
		}
	})
}

// MustRoll applies with a replacement of outdated machines.
func MustRoll(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	_, err := Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
}

// Waiting returns the cluster for a new process that waits for Nodes.
func Waiting(m *manifest.Cluster, p *awssim.Process, wait plan.Wait) *run.Cluster {
	return run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: Transport(p), Wait: wait, Helm: &helmsim.Helm{}})
}

// AddNetwork installs what a Node needs to become ready: a pod network, and a cloud
// controller manager.
func AddNetwork(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			for _, name := range []string{"calico-node", "aws-cloud-controller-manager"} {
				c.Put(c.Up, kubesim.Object{
					"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": kubesim.Object{"name": name, "namespace": "kube-system"},
					"spec": kubesim.Object{"template": kubesim.Object{"spec": kubesim.Object{"tolerations": []any{kubesim.Object{"operator": "Exists"}}, "volumes": []any{
						kubesim.Object{"name": "cni", "hostPath": kubesim.Object{"path": "/etc/cni/net.d"}},
					}}}},
				})
			}
		}
	})
}

// Unnumbered removes the number of a machine in its group, since the order of identical
// machines does not matter, and the records of the lock, which count runs.
func Unnumbered(lines []string) (out []string) {
	number := regex.Of(`(clusterawsadm/resource=machine/[^/]+)/\d+`)
	for _, l := range slices.DeleteFunc(slices.Clone(lines), IsLock) {
		out = append(out, number.ReplaceAllString(l, "$1"))
	}
	slices.Sort(out)
	return out
}

// Without returns the lines of a list that another one does not have.
func Without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

// ByoVPC is an example in an existing VPC.
const ByoVPC = "byo-vpc.yaml"

// Spoilt calls a function as a process whose n-th call fails.
func Spoilt(t *testing.T, p *awssim.Process, n int, fault awssim.Fault, do func(context.Context) error) error {
	t.Helper()
	return Faulty(t, p, Only(n, fault), do)
}

// Faulty calls a function as a process with faults.
func Faulty(t *testing.T, p *awssim.Process, fault func(call int, service, op string) awssim.Fault, do func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.Fault, p.Killed = fault, cancel
	return do(ctx)
}

// Quickstart is the first example.
const Quickstart = "quickstart.yaml"

// Rewritten reads an example and replaces texts: pairs of old and new.
func Rewritten(t *testing.T, file string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	return RewrittenWith(t, input.LoadOptions{}, file, oldnew...)
}

// RewrittenWith is Rewritten with options for the manifest.
func RewrittenWith(t *testing.T, o input.LoadOptions, file string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	raw, err := Read(file)
	require.NoError(t, err)
	for i := 0; i < len(oldnew); i += 2 {
		require.Contains(t, string(raw), oldnew[i])
		raw = bytes.ReplaceAll(raw, []byte(oldnew[i]), []byte(oldnew[i+1]))
	}
	m, err := loader.Load([]input.Source{{Name: filepath.Base(file), Data: raw}}, o)
	require.NoError(t, err)
	return Quick(m)
}

// ByName returns the cluster without its manifest.
func ByName(name string, a *awssim.AWS) *run.Cluster {
	return run.OpenByName(name, cluster.Target{Config: a.Config(), Owner: "test"})
}

// Examples of EKS.
const (
	EKSSmall  = "eks.yaml"
	EKSAddons = "eks-addons.yaml"
)

// StepOf returns the step of a resource in a plan.
func StepOf(t *testing.T, p plan.Plan, node plan.ID) plan.Step {
	t.Helper()
	at := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Resource == node })
	require.GreaterOrEqual(t, at, 0, node)
	return p.Steps[at]
}

// RequireNodeadm checks that user data is a MIME message with a NodeConfig for the EKS
// cluster.
func RequireNodeadm(t *testing.T, s *awssim.State, data []byte, m *manifest.Cluster) {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(data))
	require.NoError(t, err)
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	var config struct {
		APIVersion, Kind string
		Spec             struct {
			Cluster struct{ Name, APIServerEndpoint, CertificateAuthority, CIDR string }
		}
	}
	found := 0
	for parts := multipart.NewReader(message.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		if part.Header.Get("Content-Type") == "application/node.eks.aws" {
			require.NoError(t, yaml.Unmarshal(text, &config))
			found++
		}
	}
	require.Equal(t, 1, found)
	require.Equal(t, "node.eks.aws/v1alpha1 NodeConfig", config.APIVersion+" "+config.Kind)
	c := config.Spec.Cluster
	require.Equal(t, m.EKS.ControlPlane.Spec.EKSClusterName, c.Name)
	require.Regexp(t, `^https://[0-9A-F]+\..*\.eks\.amazonaws\.com$`, c.APIServerEndpoint)
	require.Equal(t, Plane(s).ServiceCIDR, c.CIDR)
	ca, err := base64.StdEncoding.DecodeString(c.CertificateAuthority)
	require.NoError(t, err)
	require.NotEmpty(t, ca)
}

// MachinePool is an example with an AWSMachinePool.
const MachinePool = "machine-pool.yaml"

// Done lists the steps of a plan: action and resource.
func Done(p plan.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Does() {
			out = append(out, string(s.Action)+" "+string(s.Resource))
		}
	}
	return out
}

// Told returns the remarks of a plan.
func Told(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (out []string) {
	t.Helper()
	_, err := run.Open(m, cluster.Target{Config: a.Config(), Warn: func(s string) { out = append(out, s) }}).Plan(t.Context())
	require.NoError(t, err)
	return out
}

// Each runs a test for every example, each in its own account with the existing resources
// of the example.
func Each(t *testing.T, o awssim.Options, do func(t *testing.T, a *awssim.AWS, m *manifest.Cluster)) {
	t.Helper()
	EachOf(t, Examples(t), o, do)
}

// EachOf does the same for some examples.
func EachOf(t *testing.T, files []string, o awssim.Options, do func(t *testing.T, a *awssim.AWS, m *manifest.Cluster)) {
	t.Helper()
	for _, file := range files {
		t.Run(Name(file), func(t *testing.T) {
			t.Parallel()
			m := Quick(Load(t, file, nil))
			synctest.Test(t, func(t *testing.T) {
				mine := o
				mine.Region = m.Region
				a := awssim.New(mine)
				Prepare(t, a, m)
				do(t, a, m)
			})
		})
	}
}

// Quick sets a key algorithm that is quick.
func Quick(m *manifest.Cluster) *manifest.Cluster {
	if cp := m.ControlPlane; cp != nil {
		cp.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
	}
	for _, x := range m.Machines {
		if x.ControlPlane {
			x.Bootstrap.Spec.ClusterConfiguration.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
		}
	}
	return m
}

// Writes lists the calls that change something, without those of the lock, which come
// before the run knows whether there are changes.
func Writes(calls []awssim.Call) (out []string) {
	for _, c := range calls {
		if c.Service != "SSM" &&
			!slices.ContainsFunc(
				[]string{"Describe", "Get", "List", "Head", "Simulate", "AssumeRole", "GET"},
				func(p string) bool { return strings.HasPrefix(c.Operation, p) },
			) {
			out = append(out, c.Operation)
		}
	}
	return out
}

// Reachable gives roles of machines the permissions that Systems Manager needs.
func Reachable(a *awssim.AWS, roles ...string) {
	a.Edit(func(s *awssim.State) {
		for _, name := range roles {
			r := s.IAM.Roles[name+".cluster-api-provider-aws.sigs.k8s.io"]
			r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
		}
	})
}

// Larger is the example with workers of another type.
func Larger(t *testing.T, workers int32) *manifest.Cluster {
	t.Helper()
	m := Sized(t, 1, workers)
	m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
	return m
}

// AddKey adds a KMS key with an alias, such as "alias/clusters".
func AddKey(a *awssim.AWS, alias string) {
	a.Edit(func(s *awssim.State) {
		const account = "arn:aws:kms:us-east-1:123456789012:"
		key := account + "key/11111111-2222-3333-4444-555555555555"
		s.KMS.Keys[key], s.KMS.Aliases[account+alias] = &awssim.Key{}, key
	})
}

// Refused returns the error of a run that writes nothing.
func Refused(t *testing.T, m *manifest.Cluster, a *awssim.AWS) string {
	t.Helper()
	before := a.Detailed()
	_, err := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test"}).Plan(t.Context())
	require.Error(t, err)
	_, applied := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test"}).Apply(t.Context(), cluster.Options{})
	require.Error(t, applied)
	assert.Equal(t, before, a.Detailed())
	return err.Error()
}

// MachineWith returns the ID of a machine with the role.
func MachineWith(a *awssim.AWS, role string) (id string) {
	a.Edit(func(s *awssim.State) {
		for i, x := range s.EC2.Instances {
			if x.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == role && x.Terminating.IsZero() {
				id = max(id, i)
			}
		}
	})
	return id
}

// MachinesOf lists the running machines of groups with a word in their name.
func MachinesOf(a *awssim.AWS, word string) (ids []string) {
	a.Edit(func(s *awssim.State) {
		for id, i := range s.EC2.Instances {
			if i.Terminating.IsZero() && strings.Contains(i.Tags["clusterawsadm/resource"], word) {
				ids = append(ids, id)
			}
		}
	})
	slices.Sort(ids)
	return ids
}

// Refusing returns a process for which an operation of a service fails; "" stands for all.
func Refusing(a *awssim.AWS, service, operation string, fault awssim.Fault) *awssim.Process {
	p := a.Process()
	p.Fault = func(_ int, s, op string) awssim.Fault {
		if s == service && (operation == "" || op == operation) {
			return fault
		}
		return awssim.None
	}
	return p
}

// OfVersion is the example with another version of Kubernetes for the control plane,
// pools and add-ons.
func OfVersion(t *testing.T, minor int) *manifest.Cluster {
	t.Helper()
	proxy := map[int]string{30: "v1.30.14-eksbuild.8", 32: "v1.32.6-eksbuild.12", 34: "v1.34.0-eksbuild.2"}[minor]
	dns := map[int]string{30: "v1.11.4-eksbuild.2", 32: "v1.11.4-eksbuild.24", 34: "v1.12.3-eksbuild.1"}[minor]
	cni := map[int]string{30: "v1.19.5-eksbuild.1", 32: "v1.19.5-eksbuild.1", 34: "v1.20.4-eksbuild.1"}[minor]
	m := Rewritten(t, EKSAddons, "version: v1.34\n", fmt.Sprintf("version: v1.%d\n", minor), "upgradePolicy: standard", "upgradePolicy: extended",
		"KUBE_PROXY_VERSION:=v1.34.0-eksbuild.2", "KUBE_PROXY_VERSION:="+proxy, "COREDNS_VERSION:=v1.12.3-eksbuild.1", "COREDNS_VERSION:="+dns,
		"VPC_CNI_VERSION:=v1.20.4-eksbuild.1", "VPC_CNI_VERSION:="+cni)
	for _, p := range m.Pools {
		p.Object.Spec.Template.Spec.Version = fmt.Sprintf("v1.%d.0", minor)
	}
	return m
}
