package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// write writes to the cluster, which needs a quorum of etcd, until it succeeds, and
// returns how long it took.
func (u *Laptop) write(t *testing.T, what string) time.Duration {
	t.Helper()
	return u.Until(t, "a write to the cluster: "+what, patience, func() bool {
		_, err := u.TryKubectl(t.Context(), "create", "configmap", fmt.Sprint("written-", time.Now().UnixNano()))
		return err == nil
	})
}

// voters waits for that number of voting members, and returns all members.
func (u *Laptop) voters(t *testing.T, by *Machine, want int) (members []Member) {
	t.Helper()
	u.Until(t, fmt.Sprint(want, " voting members"), patience, func() bool {
		var err error
		members, err = u.Members(t.Context(), by)
		return err == nil && len(Voting(members)) == want
	})
	return members
}

// without returns the machines except for one.
func without(all []*Machine, one *Machine) []*Machine {
	return slices.DeleteFunc(slices.Clone(all), func(m *Machine) bool { return m.ID == one.ID })
}

func killedWhenFormed(t *testing.T, u *Laptop) {
	all := u.controlPlanes(t)
	for _, m := range all {
		m.Kill()
		took := u.write(t, m.Tag+" is dead")
		members, err := u.Members(t.Context(), without(all, m)[0])
		require.NoError(t, err)
		require.Len(t, Voting(members), 3)
		require.NoError(t, m.Reboot(t.Context()))
		u.Until(t, "etcd of "+m.Tag, patience, func() bool {
			_, err := u.Members(t.Context(), m)
			return err == nil
		})
		u.settled(t, 3, 1)
		t.Logf("proved: of three control planes, %s was killed (%s): a write came through after %s; started again, it is back",
			m.Tag, part(u.console(t, m)), took.Round(100*time.Millisecond))
	}
}

// part returns the role of the machine.
func part(console string) string {
	if strings.Contains(console, "Your Kubernetes control-plane has initialized successfully") {
		return "kubeadm init"
	}
	return "kubeadm join"
}

// lostWhenFormed terminates an instance; the next run removes its etcd member and
// replaces it.
func lostWhenFormed(t *testing.T, u *Laptop) {
	all := u.controlPlanes(t)
	lost := all[0]
	for _, m := range all {
		if part(u.console(t, m)) == "kubeadm init" {
			lost = m // the worst case: it must not run kubeadm init again
		}
	}
	by := without(all, lost)[0]
	before, err := u.Members(t.Context(), by)
	require.NoError(t, err)
	u.lose(t, lost)
	u.write(t, "the first control plane is lost")
	u.speed = lifelike
	defer func() { u.speed = speed }()
	began := time.Now()
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	took := time.Since(began)
	u.settled(t, 3, 1)
	members, err := u.Members(t.Context(), by)
	require.NoError(t, err)
	require.Len(t, Voting(members), 3)
	require.Len(t, members, 3)
	require.NotContains(t, ids(members), ids(before)[slices.IndexFunc(before, func(m Member) bool { return m.At(lost) })])
	t.Logf(
		"proved: the control plane of kubeadm init was terminated; in %s the next run took its member out of etcd and launched another, which joined as the third voting member",
		took.Round(time.Second),
	)
}

func ids(members []Member) (all []uint64) {
	for _, m := range members {
		all = append(all, m.ID)
	}
	return all
}

// remove removes the etcd member of an instance.
func (u *Laptop) remove(t *testing.T, lost, by *Machine) {
	t.Helper()
	members, err := u.Members(t.Context(), by)
	require.NoError(t, err)
	i := slices.IndexFunc(members, func(m Member) bool { return m.At(lost) })
	require.GreaterOrEqual(t, i, 0, "%s is no member: %+v", lost.Tag, members)
	id := members[i].ID
	var said error // "unhealthy cluster" until the others have been connected for five seconds
	defer func() {
		if said != nil {
			t.Logf("etcd did not let %s go at once: %v", lost.Tag, said)
		}
	}()
	u.Until(t, "etcd lets "+lost.Tag+" go", patience, func() bool {
		removed := u.RemoveMember(t.Context(), by, id)
		if removed != nil {
			said = removed
		}
		left, err := u.Members(t.Context(), by) // a call without an answer may have succeeded
		return err == nil && !slices.Contains(ids(left), id)
	})
}

// lose terminates an instance and deletes its Node: the cloud controller manager would
// take a minute, and while a Ready Node exists, kubeadm rejects another instance with the
// same name. moto reuses addresses.
func (u *Laptop) lose(t *testing.T, m *Machine) {
	t.Helper()
	u.Terminate(t, m)
	u.Until(t, "the node of "+m.Tag+" is deleted", patience, func() bool {
		_, err := u.TryKubectl(t.Context(), "delete", "node", m.Name, "--ignore-not-found")
		return err == nil
	})
}

// killedWhileJoining kills machines at critical moments: the first one when it is ready
// and the others start to join, a joining one while it is a learner, and another one just
// after it became a voter.
func killedWhileJoining(t *testing.T, l *Lab) {
	u := l.NewLaptop(t, "three-zones", threeZones(t, 0))
	u.Create(t)
	u.Until(t, "the API server", patience, func() bool {
		_, err := u.TryKubectl(t.Context(), "get", "--raw", "/readyz")
		return err == nil
	})
	var first *Machine
	u.Until(t, "kubeadm init is done", patience, func() bool {
		for _, m := range u.controlPlanes(t) {
			if part(u.console(t, m)) == "kubeadm init" {
				first = m
			}
		}
		return first != nil
	})
	others := without(u.controlPlanes(t), first)

	require.NoError(t, first.Reboot(t.Context()))
	t.Logf("proved: the first control plane was killed when kubeadm init was done, and started again: a write came through after %s",
		u.write(t, "the first one was started again").Round(100*time.Millisecond))

	learner := u.caught(t, first, others, func(m Member) bool { return m.IsLearner })
	learner.Kill()
	t.Logf("proved: %s was killed as a learner: a write came through after %s", learner.Tag, u.write(t, "a learner is dead").Round(100*time.Millisecond))
	u.blocked(t, first, learner)
	u.remove(t, learner, first)
	u.lose(t, learner)

	voter := u.caught(t, first, without(others, learner), func(m Member) bool { return !m.IsLearner })
	voter.Kill()
	_, err := u.Members(t.Context(), first)
	t.Logf("%s was killed as the second voting member: etcd says %v", voter.Tag, err)
	require.NoError(t, voter.Reboot(t.Context()))
	t.Logf("proved: started again, it makes a quorum: a write came through after %s", u.write(t, "the second voter is back").Round(100*time.Millisecond))
	u.remove(t, voter, first) // its join was interrupted, so it is replaced
	u.lose(t, voter)
	u.write(t, "one voting member again")
	u.Create(t)
	u.voters(t, first, 3)
	t.Log("proved: with both replaced by the next run there are three voting members")
	u.gone(t)
}

// blocked shows that no machine joins while a dead learner is a member: etcd permits one
// learner at a time. It has to be removed before the others time out.
func (u *Laptop) blocked(t *testing.T, by, learner *Machine) {
	t.Helper()
	for range 5 {
		time.Sleep(2 * time.Second)
		members, err := u.Members(t.Context(), by)
		require.NoError(t, err)
		require.Len(t, members, 2, "%+v", members)
	}
	t.Logf("proved: for 10 s nobody joined beside the dead learner %s", learner.Tag)
}

// caught waits until one of the machines is a member of a type.
func (u *Laptop) caught(t *testing.T, by *Machine, of []*Machine, is func(Member) bool) (who *Machine) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for who == nil {
		require.True(t, time.Now().Before(deadline), "nobody was caught")
		members, _ := u.Members(t.Context(), by) // it may not answer at the moment
		for _, m := range members {
			i := slices.IndexFunc(of, m.At)
			if i >= 0 && is(m) {
				who = of[i]
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return who
}
