package lab

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shape is a kind of cluster that is handed over.
type shape struct {
	name, cluster          string
	controlPlanes, workers int      // none: a control plane of EKS
	once                   []string // writes of the controllers, besides those that they repeat
	manifest               func(t *testing.T, l *Lab) string
	afterwards             func(m *Management, t *testing.T, u *Laptop) // when it is handed over; may be nil
}

func shapes() []shape {
	return []shape{
		{"quick start", "quickstart", 3, 3, nil, func(t *testing.T, _ *Lab) string {
			return strings.ReplaceAll(Example(t, "quickstart"), "  replicas: 1", "  replicas: 3")
		}, (*Management).survivesKills},
		{"existing VPC", "byo-vpc", 1, 1, []string{tagsGateway}, inExistingVPC, nil},
		{"machine pool", "machine-pool", 1, 2, nil, inOtherNetwork, (*Management).givesPool},
		{"Ignition pool", "ignition", 1, 0, []string{newVersion}, withIgnition, nil},
		{"EKS", "eks", 0, 2, nil, eksWithTags, nil},
		{"EKS machines", "eks-machines", 0, 3, nil, eksMachines, (*Management).givesAndTakes},
	}
}

// create creates the cluster.
func (x shape) create(t *testing.T, l *Lab) *Laptop {
	t.Helper()
	if x.controlPlanes == 0 {
		return l.createEKS(t, x.cluster, x.manifest(t, l), x.workers)
	}
	u := l.NewLaptop(t, x.cluster, withResourceSet(t, x.manifest(t, l)))
	u.bring(t, x.controlPlanes, x.workers)
	return u
}

// TestHandover hands clusters over to the real controllers: they change nothing in AWS.
// LAB_SHAPES names the clusters, all by default. LAB_QUIET is for how long the controllers are
// watched in the end.
func TestHandover(t *testing.T) {
	l := Start(t)
	m := l.newManagement(t)
	chosen := func(name string) bool {
		names := os.Getenv("LAB_SHAPES")
		return names == "" || slices.Contains(strings.Split(names, ","), name)
	}
	var given []string
	for _, x := range shapes() {
		if !chosen(x.name) {
			continue
		}
		u := x.create(t, l) // its API server runs until the end, because the controllers use it
		t.Run(x.name, func(t *testing.T) {
			m.takes(t, u, x.once...)
			if x.afterwards != nil {
				x.afterwards(m, t, u)
			}
		})
		given = append(given, x.cluster)
	}
	m.staysQuiet(t, given)
}

// staysQuiet watches the controllers for some time, in which they change nothing.
func (m *Management) staysQuiet(t *testing.T, clusters []string) {
	t.Helper()
	quiet, err := time.ParseDuration(os.Getenv("LAB_QUIET"))
	if err != nil {
		quiet = 20 * time.Second
	}
	m.Requests.Reset()
	time.Sleep(quiet)
	m.onlyRepeats(t)
	if quiet > syncPeriod {
		assert.NotEmpty(t, m.Requests.All(), "nothing was reconciled")
	}
	for _, name := range clusters {
		m.Settled(t, name, patience)
	}
	t.Logf("proved: in %s of watching, the controllers of %s send %d requests to AWS, of which %d are the writes that CAPA always repeats",
		quiet, strings.Join(clusters, ", "), len(m.Requests.All()), len(m.Requests.Writes()))
}

// Writes that are not repeated.
const (
	newVersion  = "CreateLaunchTemplateVersion"
	tagsGateway = "tags of a NAT gateway"
)

// onlyRepeats requires that the controllers have changed nothing since the last Reset, besides
// some writes that they send once.
func (m *Management) onlyRepeats(t *testing.T, once ...string) {
	t.Helper()
	var other []string
	for _, q := range m.Requests.Writes() {
		switch {
		case q.Repeated():
		case q.TagsGateway():
			other = append(other, tagsGateway)
		default:
			other = append(other, q.Action)
			t.Logf("the controllers have written to AWS: %s", q)
		}
	}
	assert.ElementsMatch(t, once, other)
}

// takes hands a cluster over. The controllers must not write to AWS, at first and when they
// reconcile everything again, besides some writes that they send once.
func (m *Management) takes(t *testing.T, u *Laptop, once ...string) {
	t.Helper()
	before := m.account.snapshot(t)
	m.Requests.Reset()
	began := time.Now()
	u.Run(t, "cluster", "handover", "-f", u.manifest, "--to", m.Kubeconfig(), "--yes", "--timeout", "3m")
	took := time.Since(began)
	for range 2 {
		m.Settled(t, u.Cluster, patience)
		m.Restart(t)
		m.Requests.Quiet(t, 5*time.Second, patience)
	}
	m.Settled(t, u.Cluster, patience)
	m.onlyRepeats(t, once...)
	require.NotEmpty(t, m.Requests.All())
	assert.Equal(t, before, m.account.snapshot(t), "instances, and what the repeated writes could have changed")
	if !slices.Contains(once, newVersion) {
		u.NothingToDo(t)
	}
	t.Logf("proved: %s is handed over in %s; the controllers reconcile it three times in %s with %d requests to AWS and %d writes, which change nothing",
		u.Cluster, took.Round(time.Second), time.Since(began).Round(time.Second), len(m.Requests.All()), len(m.Requests.Writes()))
}

// givesAndTakes takes a cluster back, and hands it over again.
func (m *Management) givesAndTakes(t *testing.T, u *Laptop) {
	t.Helper()
	m.gives(t, u)
	m.takes(t, u)
}

// eksWithTags returns the example with tags of the user for all resources.
func eksWithTags(t *testing.T, _ *Lab) string {
	t.Helper()
	return replaced(t, Example(t, "eks"), "  sshKeyName: \"\"\n", "  sshKeyName: \"\"\n  additionalTags:\n    team: platform\n")
}

// eksMachines returns the example without an access entry, which moto does not have, and with
// tags of the user for all resources.
func eksMachines(t *testing.T, _ *Lab) string {
	t.Helper()
	return replaced(t, Example(t, "eks-machines"), "  accessConfig:\n    authenticationMode: api\n", "  additionalTags:\n    team: platform\n")
}

// inOtherNetwork returns an example with a VPC that has other addresses than those of the other
// shapes: all machines of the lab are in one network.
func inOtherNetwork(t *testing.T, _ *Lab) string {
	t.Helper()
	return replaced(t, Example(t, "machine-pool"), "  sshKeyName: \"\"\n", "  sshKeyName: \"\"\n  network:\n    vpc:\n      cidrBlock: 10.32.0.0/16\n")
}

// withIgnition returns an example whose pool has an Ignition configuration in a bucket, and no
// machines: those of the lab cannot boot with it.
func withIgnition(t *testing.T, _ *Lab) string {
	t.Helper()
	text := strings.ReplaceAll(Example(t, "machine-pool"), "machine-pool", "ignition")
	for old, by := range map[string]string{
		"  sshKeyName: \"\"\n": "  sshKeyName: \"\"\n  network:\n    vpc:\n      cidrBlock: 10.48.0.0/16\n  s3Bucket:\n    name: cluster-api-provider-aws-ignition\n" +
			"    controlPlaneIAMInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n    nodesIAMInstanceProfiles: [nodes.cluster-api-provider-aws.sigs.k8s.io]\n",
		"  replicas: 2\n":            "  replicas: 0\n",
		"  minSize: 1\n":             "  minSize: 0\n  ignition:\n    version: \"2.3\"\n    storageType: ClusterObjectStore\n",
		"  awsLaunchTemplate:\n":     "  awsLaunchTemplate:\n    imageLookupBaseOS: flatcar-stable\n",
		"spec:\n  joinConfiguration": "spec:\n  format: ignition\n  joinConfiguration",
	} {
		text = replaced(t, text, old, by)
	}
	return text
}

// growsPool adds a machine to the pool of a cluster: the controllers raise the capacity of
// its Auto Scaling group, and change nothing else.
func (m *Management) growsPool(t *testing.T, u *Laptop) {
	t.Helper()
	before := len(m.Machines(t))
	m.Requests.Reset()
	m.Kubectl(t, "scale", "machinepool", u.Cluster+"-mp-0", "--replicas=3")
	m.Until(t, "another machine", patience, func() bool { return len(m.Machines(t)) > before })
	m.Settled(t, u.Cluster, patience)
	assert.Len(t, m.Machines(t), before+1)
	for _, q := range m.Requests.Writes() {
		assert.True(t, q.Repeated() || q.Action == "UpdateAutoScalingGroup", "%s", q)
	}
	t.Log("proved: a MachinePool that was handed over is scaled by one instance")
}

// givesPool adds a machine to the pool of a cluster, and has the controllers make another bootstrap
// token. The cluster is taken back, and a machine that is added then joins without the controllers.
// In the end, it is handed over again.
func (m *Management) givesPool(t *testing.T, u *Laptop) {
	t.Helper()
	m.growsPool(t, u)
	u.settled(t, 1, 3)
	m.rotates(t, u)
	m.gives(t, u)
	text, err := os.ReadFile(u.manifest)
	require.NoError(t, err)
	require.NotContains(t, string(text), "refreshPreferences:\n    disable")
	require.NoError(t, os.WriteFile(u.manifest, []byte(replaced(t, string(text), "  replicas: 3\n", "  replicas: 4\n")), 0o600))
	before := len(m.Machines(t))
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	u.settled(t, 1, 4)
	assert.Len(t, m.Machines(t), before+1, "no machine is replaced")
	t.Log("proved: a pool whose token the controllers have renewed is taken back, and a machine that it adds then joins without them")
	m.takes(t, u)
}

// rotates has Cluster API make another bootstrap token for the pool of a cluster, and CAPA a version
// of its launch template, as they do when no machine of the control plane keeps the token valid.
func (m *Management) rotates(t *testing.T, u *Laptop) {
	t.Helper()
	before := len(m.Machines(t))
	token := func() string {
		return m.Kubectl(t, "get", "kubeadmconfig", u.Cluster+"-mp-0", "-o", "jsonpath={.spec.joinConfiguration.discovery.bootstrapToken.token}")
	}
	old := token()
	require.NotEmpty(t, old)
	m.Requests.Reset()
	u.Kubectl(t, "delete", "secrets", "-n", "kube-system", "--field-selector", "type=bootstrap.kubernetes.io/token")
	m.Restart(t)
	m.Until(t, "another token", patience, func() bool { return token() != old })
	m.Restart(t)
	m.Until(t, "another version of the launch template", patience, func() bool { return m.Requests.count("CreateLaunchTemplateVersion") > 0 })
	m.Requests.Quiet(t, 5*time.Second, patience)
	for _, q := range m.Requests.Writes() {
		assert.True(t, q.Repeated() || q.Action == "CreateLaunchTemplateVersion" || q.Action == "DeleteLaunchTemplateVersions", "%s", q)
	}
	assert.Len(t, m.Machines(t), before)
	t.Log("proved: Cluster API makes another bootstrap token, and CAPA a version of the launch template for it, and they replace no machine")
}

// survivesKills takes a cluster back, kills a handover of it at a random moment and runs it
// again, several times: the same objects exist, and nothing in AWS changes. LAB_KILLS is how
// often.
func (m *Management) survivesKills(t *testing.T, u *Laptop) {
	t.Helper()
	kills, err := strconv.Atoi(os.Getenv("LAB_KILLS"))
	if err != nil {
		kills = 3
	}
	objects, account := m.objects(t, u.Cluster), m.account.snapshot(t)
	again := func(attempt func(handover []string)) {
		t.Helper()
		m.gives(t, u)
		m.Requests.Reset()
		attempt([]string{"cluster", "handover", "-f", u.manifest, "--to", m.Kubeconfig(), "--yes", "--timeout", "3m"})
		m.Settled(t, u.Cluster, patience)
		m.onlyRepeats(t)
		assert.Equal(t, objects, m.objects(t, u.Cluster))
		assert.Equal(t, account, m.account.snapshot(t))
	}
	var whole time.Duration
	again(func(handover []string) {
		began := time.Now()
		u.Run(t, handover...)
		whole = time.Since(began)
	})
	ended := 0
	for range kills {
		again(func(handover []string) {
			if u.killed(t, rand.N(whole), handover...) {
				ended++
			}
			u.Run(t, handover...)
		})
	}
	t.Logf(
		"proved: %d handovers, killed at random moments within %s (of which %d had ended) and run again, end the same, and the controllers change nothing in AWS",
		kills,
		whole.Round(time.Millisecond),
		ended,
	)
}

// objects returns the kinds and names of the objects of a cluster.
func (m *Management) objects(t *testing.T, cluster string) (names []string) {
	t.Helper()
	for _, o := range m.List(t, m.kinds(t)+",secrets") {
		if o.GetKind() == "Cluster" && o.GetName() == cluster || o.GetLabels()[clusterLabel] == cluster {
			names = append(names, o.GetKind()+"/"+o.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// replaced replaces a text that has to be there once.
func replaced(t *testing.T, text, old, by string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, old), old)
	return strings.Replace(text, old, by, 1)
}

// inExistingVPC returns the example with the IDs of a network that somebody else has made.
func inExistingVPC(t *testing.T, l *Lab) string {
	t.Helper()
	v := l.account.newVPC(t, "10.64.0.0/16")
	text := replaced(t, Example(t, "byo-vpc"), "  replicas: 2\n", "  replicas: 1\n")
	for placeholder, id := range map[string]string{
		"vpc-0123456789abcdef0":    v.id,
		"subnet-0000000000000001a": v.public["us-east-1a"],
		"subnet-0000000000000001b": v.public["us-east-1b"],
		"subnet-0000000000000002a": v.private["us-east-1a"],
		"subnet-0000000000000002b": v.private["us-east-1b"],
		"sg-0aaaaaaaaaaaaaaa1":     v.group(t, "workers"),
		"sg-0aaaaaaaaaaaaaaa2":     v.group(t, "office"),
	} {
		require.Contains(t, text, placeholder)
		text = strings.ReplaceAll(text, placeholder, id)
	}
	v.group(
		t,
		"monitoring",
		"TagSpecification.1.ResourceType",
		"security-group",
		"TagSpecification.1.Tag.1.Key",
		"purpose",
		"TagSpecification.1.Tag.1.Value",
		"monitoring",
	)
	return text
}
