package lives_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// loss is a way to lose a machine of the control plane.
type loss string

const (
	terminated   loss = "terminated"    // a while ago
	shuttingDown loss = "shutting-down" // for an hour
	replaced     loss = "replaced"      // terminated, and a run without the API server has launched another
	stopped      loss = "stopped"       // by somebody
	hung         loss = "hung"          // the machine runs, and its kubelet and etcd do not answer
	broken       loss = "broken"        // its etcd does not start, as without its data
)

func allLosses() []loss { return []loss{terminated, shuttingDown, replaced, stopped, hung, broken} }

// gone reports whether the machine does not exist any more.
func (l loss) gone() bool { return l == terminated || l == shuttingDown || l == replaced }

// twoLosses is a life of a cluster that loses two machines of its control plane, and a run that is
// killed. Calls are counted from 1; 0 means before the run, and never.
type twoLosses struct {
	who    [2]int // machines; kubeadm init ran on the first one
	how    [2]loss
	when   [2]int
	killed int
}

// String names the life.
func (x twoLosses) String() string {
	return fmt.Sprintf("%s %d at %d, %s %d at %d, killed at %d", x.how[0], x.who[0], x.when[0], x.how[1], x.who[1], x.when[1], x.killed)
}

// beforeLosses is a saved cluster that has lived for an hour.
type beforeLosses struct {
	planes   int32
	account  []byte
	age      time.Duration
	machines []string // of the control plane; kubeadm init ran on the first one
}

func savedBeforeLosses(t *testing.T, planes int32) beforeLosses {
	t.Helper()
	s := beforeLosses{planes: planes}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := enginetest.Alive(t, enginetest.Sized(t, planes, 1))
		time.Sleep(time.Hour)
		a.Edit(func(state *awssim.State) {
			for _, c := range state.Kubernetes {
				for _, m := range c.Members {
					for _, i := range state.EC2.Instances {
						if i.Boot != nil && i.Boot.Node == m.Name {
							s.machines = append(s.machines, i.ID)
						}
					}
				}
			}
		})
		require.Len(t, s.machines, int(planes))
		var w bytes.Buffer
		require.NoError(t, a.Save(&w))
		s.account, s.age = w.Bytes(), time.Since(began)
	})
	return s
}

// losing is a cluster that loses machines.
type losing struct {
	t        *testing.T
	a        *awssim.AWS
	planes   int32
	machines []string
	lost     map[string]loss // by ID of the machine
	quorum   bool            // the losses have left etcd its quorum
}

// lose loses a machine.
func (l *losing) lose(id string, how loss) {
	now := time.Now()
	l.a.Edit(func(s *awssim.State) {
		i := s.EC2.Instances[id]
		if i == nil || !i.Terminating.IsZero() { // the run has replaced it
			return
		}
		l.lost[id] = how
		switch how {
		case terminated, replaced:
			i.Terminating, i.Terminated = now, now
		case shuttingDown:
			i.Terminating, i.Terminated = now, now.Add(time.Hour)
		case stopped:
			i.Stopped = now
		case hung, broken:
			for _, c := range s.Kubernetes {
				map[loss]func(time.Time, string){hung: c.Hang, broken: c.Break}[how](now, i.Boot.Node)
			}
		}
	})
	l.a.Inventory() // it has its effect on the cluster
	if how == replaced {
		_, _ = enginetest.Open(enginetest.Sized(l.t, l.planes, 1), l.a.Process()).Apply(l.t.Context(), cluster.Options{}) // refused if another one is stopped
		time.Sleep(3 * time.Minute)
		l.a.Inventory()
	}
	l.quorum = l.quorum && l.quorate()
}

// quorate reports whether the cluster exists and etcd has a quorum.
func (l *losing) quorate() (yes bool) {
	enginetest.Inside(l.a, func(c *kubesim.Cluster) { yes = c.Quorate() })
	return yes
}

// run runs a process that may be disturbed. The run never takes the quorum away.
func (l *losing) run(p *awssim.Process) error {
	ctx, cancel := context.WithCancel(l.t.Context())
	defer cancel()
	p.Killed = cancel
	_, err := enginetest.Rolling(enginetest.Sized(l.t, l.planes, 1), p).Apply(ctx, cluster.Options{Observe: func(e plan.Event) {
		if tell := enginetest.Tell(l.t); tell != nil {
			tell(e)
		}
		assert.Equal(l.t, l.quorum, l.quorate(), "after %s %s", e.What, e.Resource)
	}})
	return err
}

// runs repeats runs until one has nothing to add: it has succeeded, was refused, or has waited in vain.
func (l *losing) runs() (err error) {
	for range l.planes {
		err = l.run(l.a.Process())
		if err == nil || errors.As(err, new(*plan.RefusedError)) || errors.As(err, new(*plan.TimeoutError)) {
			return err
		}
	}
	return err
}

// with lists the machines that were lost in one of these ways.
func (l *losing) with(which func(loss) bool) (ids []string) {
	for id, how := range l.lost {
		if which(how) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// restart starts the stopped machines, and reboots those that do not respond.
func (l *losing) restart() {
	for _, id := range l.with(func(how loss) bool { return how == stopped || how == hung }) {
		l.a.Edit(func(s *awssim.State) {
			i := s.EC2.Instances[id]
			for _, c := range s.Kubernetes {
				if l.lost[id] == hung {
					c.Resume(time.Now(), i.Boot.Node)
				}
			}
			i.Stopped = time.Time{}
		})
		delete(l.lost, id)
	}
	l.a.Inventory()
	time.Sleep(time.Minute)
	l.quorum = l.quorate()
}

// forceNewCluster leaves etcd one member, as its flag --force-new-cluster does.
func (l *losing) forceNewCluster() {
	enginetest.Inside(l.a, func(c *kubesim.Cluster) {
		c.Members = slices.DeleteFunc(c.Members, func(m *kubesim.Member) bool { return m.Gone })[:1]
	})
	time.Sleep(time.Minute)
	l.quorum = true
}

// terminate terminates machines.
func (l *losing) terminate(ids []string) {
	for _, id := range ids {
		l.a.Edit(func(s *awssim.State) {
			i := s.EC2.Instances[id]
			i.Terminating, i.Terminated = time.Now(), time.Now()
		})
		delete(l.lost, id)
	}
	l.a.Inventory()
	time.Sleep(time.Minute)
}

var toTerminate = regexp.MustCompile(`terminate-instances --region \S+ --instance-ids (i-\w+)`)

// obey does what the findings of an error say, if they say anything, and runs again.
func (l *losing) obey(err error) error {
	for range l.planes {
		end := new(plan.TimeoutError)
		if !errors.As(err, &end) {
			return err
		}
		if given := toTerminate.FindStringSubmatch(strings.Join(end.Findings, "\n")); given != nil {
			l.terminate(given[1:])
		}
		err = l.runs()
	}
	return err
}

// lives lets a cluster lose two machines, and requires that runs heal it, or say what is lost and how to
// get it back; and that this way works.
func (x twoLosses) lives(t *testing.T, saved beforeLosses) {
	t.Helper()
	time.Sleep(saved.age)
	a, err := awssim.Load(bytes.NewReader(saved.account), awssim.Options{Region: enginetest.Sized(t, saved.planes, 1).Region, Lag: enginetest.Lag})
	require.NoError(t, err)
	l := &losing{t: t, a: a, planes: saved.planes, machines: saved.machines, lost: map[string]loss{}, quorum: true}
	for i := range 2 {
		if x.when[i] == 0 {
			l.lose(saved.machines[x.who[i]], x.how[i])
			time.Sleep(time.Minute)
		}
	}
	p := a.Process()
	p.Fault = func(n int, _, _ string) awssim.Fault {
		for i := range 2 {
			if x.when[i] == n {
				l.lose(saved.machines[x.who[i]], x.how[i])
			}
		}
		if n == x.killed {
			return awssim.KillAfter
		}
		return awssim.None
	}
	err = l.run(p)
	if err != nil || x.when != [2]int{} { // it may have ended before it saw the loss
		err = l.runs()
	}
	l.requireNamed(err)
	l.restart()
	if err = l.runs(); !l.quorum {
		l.requireNamed(err)
		l.forceNewCluster()
		err = l.runs()
	}
	if err != nil {
		l.requireNamed(err)
		l.terminate(l.with(func(how loss) bool { return how == broken }))
		err = l.obey(l.runs())
	}
	require.NoError(t, err)
	enginetest.RequireHealthy(t, a, int(saved.planes), 1)
	enginetest.RequireDone(t, enginetest.Sized(t, saved.planes, 1), a)
}

// requireNamed requires that a run has healed the cluster, or says which machines it cannot replace. If
// machines are gone and etcd has no quorum, it is a refusal, and nothing was written.
func (l *losing) requireNamed(err error) {
	l.t.Helper()
	gone, there := l.with(loss.gone), l.with(func(how loss) bool { return !how.gone() })
	if l.quorum && len(there) == 0 {
		assert.NoError(l.t, l.obey(err))
		return
	}
	require.Error(l.t, err)
	said := err.Error()
	end := new(plan.TimeoutError)
	if errors.As(err, &end) {
		said += strings.Join(end.Findings, "\n")
	}
	l.a.Edit(func(s *awssim.State) { // Nodes are named after addresses
		for _, id := range there {
			said = strings.ReplaceAll(said, s.EC2.Instances[id].Boot.Node, id)
			said = strings.ReplaceAll(said, s.EC2.Instances[id].Tags["clusterawsadm/resource"], id)
		}
	})
	if len(gone) > 0 && !l.quorum {
		require.ErrorAs(l.t, err, new(*plan.RefusedError))
		for _, id := range gone {
			assert.Contains(l.t, said, id)
		}
	}
	named := slices.ContainsFunc(there, func(id string) bool { return strings.Contains(said, id) })
	assert.True(l.t, named || len(there) == 0, "%v: %s", l.lost, said)
}

// A control plane loses two machines, in any way and order, before a run or during it, and the run is
// killed. The next runs repair it, or name what is lost and the commands that repair it, which work. No run
// takes the quorum away.
func TestTwoLosses(t *testing.T) {
	for planes, every := range map[int32]int{3: 1, 5: 7} {
		t.Run(fmt.Sprint(planes), func(t *testing.T) {
			t.Parallel()
			saved := savedBeforeLosses(t, planes)
			for n, x := range livesWithTwoLosses() {
				if n%enginetest.Stride(every) == enginetest.First(every, 0)-1 || slices.Contains(wentWrong(), x) {
					t.Run(x.String(), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { x.lives(t, saved) })
					})
				}
			}
		})
	}
}

// wentWrong lists lives that runs did not repair once: a pod with etcdctl was left by the run that was
// killed, or had failed before all its containers started.
func wentWrong() []twoLosses {
	return []twoLosses{
		{[2]int{1, 0}, [2]loss{replaced, terminated}, [2]int{0, 225}, 84},
		{[2]int{1, 2}, [2]loss{shuttingDown, broken}, [2]int{0, 65}, 154},
	}
}

// livesWithTwoLosses lists lives with each ordered pair of losses: before the run, during it, and with a
// run that is killed, at calls that differ from life to life.
func livesWithTwoLosses() (all []twoLosses) {
	n := 0
	next := func() int { n += 89; return 1 + n%230 }
	for _, who := range [][2]int{{0, 1}, {1, 0}, {1, 2}} {
		for _, first := range allLosses() {
			for _, second := range allLosses() {
				how := [2]loss{first, second}
				all = append(all, twoLosses{who, how, [2]int{}, 0})
				if second != replaced {
					all = append(all, twoLosses{who, how, [2]int{0, next()}, next()})
				}
				if first != replaced && second != replaced {
					all = append(all, twoLosses{who, how, [2]int{next(), next()}, next()})
				}
			}
		}
	}
	return all
}
