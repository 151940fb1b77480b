package kubesim

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// voters returns a cluster whose etcd has n voters, of which the last ones are down.
func voters(n, down int) *Cluster {
	c := New("v1.34.2", began)
	for i := range n {
		name := "m" + strconv.Itoa(i)
		c.addMember(Machine{Name: name, Advertised: "10.0.0." + strconv.Itoa(i)})
		c.Members[i].Gone = i >= n-down
	}
	c.elect()
	return c
}

func (c *Cluster) hexOf(name string) string { return strconv.FormatUint(c.member(name).ID, 16) }

// etcd accepts a new member only while all voters answer and there is no other learner.
func TestAddLearner(t *testing.T) {
	for _, x := range []struct {
		voters, down int
		want         string
	}{
		{1, 0, ""},
		{3, 0, ""},
		{3, 1, "etcdserver: unhealthy cluster"},
		{5, 1, "etcdserver: unhealthy cluster"},
		{3, 2, "etcdserver: request timed out"},
		{2, 1, "etcdserver: request timed out"},
	} {
		assert.Equal(t, x.want, voters(x.voters, x.down).AddLearner(began, "new", "10.0.1.1"), "%+v", x)
	}
	c := voters(3, 0)
	require.Empty(t, c.AddLearner(began, "new", "10.0.1.1"))
	assert.Empty(t, c.AddLearner(began, "new", "10.0.1.1"), "kubeadm goes on with the member that has its peer URL")
	assert.Equal(t, "etcdserver: too many learner members in cluster", c.AddLearner(began, "another", "10.0.1.2"))
	const notInSync = "etcdserver: can only promote a learner member which is in sync with leader"
	assert.Equal(t, notInSync, c.MayPromote(began, "new"))
	assert.Empty(t, c.MayPromote(began.Add(StartTakes), "new"))
	c.Hang(began, "new")
	assert.Equal(t, notInSync, c.MayPromote(began.Add(StartTakes), "new"))
	assert.NotContains(t, c.printMembers(began.Add(time.Hour), c.Members[0]), `"name":"new"`, "it was lost before it had started")
	assert.True(t, c.Quorate(), "a learner does not count")
}

// etcd removes learners and members that are down, and one that runs only if the others are a
// quorum without it.
func TestRemoveMember(t *testing.T) {
	for _, x := range []struct {
		voters, down, remove int
		want                 string
	}{
		{3, 0, 0, ""},
		{3, 1, 2, ""},
		{3, 1, 0, "Error: etcdserver: unhealthy cluster\n"},
		{5, 1, 0, ""},
		{5, 2, 4, ""},
		{5, 2, 0, "Error: etcdserver: unhealthy cluster\n"},
		{2, 0, 0, ""},
		{1, 0, 0, "Error: etcdserver: re-configuration failed due to not enough started members\n"},
	} {
		c := voters(x.voters, x.down)
		said, ok := c.removeMember(began, c.hexOf("m"+strconv.Itoa(x.remove)))
		assert.Equal(t, x.want == "", ok, "%+v: %s", x, said)
		if x.want != "" {
			assert.Equal(t, x.want, said, "%+v", x)
		}
		assert.True(t, c.Quorate(), "%+v", x)
	}
}

// A voter counts as active five seconds after it has started or come back: before that, etcd neither adds
// a member nor removes one that the quorum may need.
func TestHealthInterval(t *testing.T) {
	c := voters(3, 1)
	c.Resume(began, "m2")
	assert.Equal(t, "etcdserver: unhealthy cluster", c.AddLearner(began.Add(4*time.Second), "new", "10.0.1.1"))
	_, ok := c.removeMember(began.Add(4*time.Second), c.hexOf("m0"))
	assert.False(t, ok)
	assert.Empty(t, c.AddLearner(began.Add(HealthInterval), "new", "10.0.1.1"))
}

// A new machine with the address of a lost member does not join as that member: etcd has not its data.
func TestAddressOfALostMember(t *testing.T) {
	c := voters(3, 1)
	assert.Contains(t, c.AddLearner(began, "new", "10.0.0.2"), "tocommit is out of range")
	_, ok := c.removeMember(began, c.hexOf("m2"))
	require.True(t, ok)
	assert.Empty(t, c.AddLearner(began, "new", "10.0.0.2"))
}

// A learner that was lost before its etcd had started has no data: another machine with its address may be it.
func TestAddressOfALostLearner(t *testing.T) {
	c := voters(3, 0)
	require.Empty(t, c.AddLearner(began, "lost", "10.0.1.1"))
	c.Hang(began.Add(time.Second), "lost")
	require.Empty(t, c.AddLearner(began.Add(time.Minute), "new", "10.0.1.1"))
	assert.Empty(t, c.MayPromote(began.Add(2*time.Minute), "new"))
	c.Hang(began.Add(2*time.Minute), "new")
	assert.Equal(t, NotItsData, c.AddLearner(began.Add(3*time.Minute), "another", "10.0.1.1"))
}

// A machine that joins with the name of a lost one has the Node of that: its provider ID, labels and taints.
func TestNodeOfALostMachine(t *testing.T) {
	c := voters(1, 0)
	c.Join(began, Machine{Name: "n", IP: "10.0.1.1", ProviderID: "aws:///a/i-1", Local: true, ControlPlane: true, Advertised: "10.0.1.1"})
	c.Hang(began, "n")
	assert.False(t, c.NodeReady("n"))
	c.Join(began.Add(time.Hour), Machine{Name: "n", IP: "10.0.1.1", ProviderID: "aws:///a/i-2", Local: true, Labels: map[string]string{"x": "y"}})
	n := c.Objects["/api/v1/nodes/n"]
	assert.Equal(t, "aws:///a/i-1", Value(n, "spec", "providerID"))
	assert.NotNil(t, value(n, "metadata", "labels", controlPlane))
	assert.Len(t, value(n, "spec", "taints"), 1)
	assert.Equal(t, began.UTC().Format(time.RFC3339), Value(n, "metadata", "creationTimestamp"))
	assert.Nil(t, c.Objects[podsOfSystem+"etcd-n"], "the kubelet of a worker deletes mirror pods of others")
}

func TestNodeOfALostMachineOfEKS(t *testing.T) {
	c := New("v1.34.0", began)
	c.EKS = "demo"
	c.Join(began, Machine{Name: "n", IP: "10.0.1.1", ProviderID: "aws:///a/i-1", Local: true})
	c.Lose(began.Add(time.Hour), "n")
	assert.Nil(t, c.Objects["/api/v1/nodes/n"], "the control plane of EKS has a cloud controller manager")
}
