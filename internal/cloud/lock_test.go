package cloud_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// store is where lock records are stored, and how a new process opens it.
type store struct {
	aws    *awssim.AWS
	folder string // of lock files
}

// process is one process that may hold a lock.
type process struct {
	*cloud.Clients
	*awssim.Process
	store *store
}

func (s *store) process() *process {
	p := s.aws.Process()
	return &process{cloud.New(p.Config(), "demo", cloud.Options{}), p, s}
}

func (p *process) lock(t *testing.T, o cloud.LockOptions) error {
	t.Helper()
	o.Who = "ada"
	if p.store.folder != "" {
		return p.AcquireFileLock(t.Context(), p.store.folder, o)
	}
	return p.AcquireLock(t.Context(), o)
}

// write makes a call that needs the lock.
func (p *process) write(t *testing.T) error {
	t.Helper()
	_, err := p.EC2.CreateInternetGateway(t.Context(), &ec2.CreateInternetGatewayInput{})
	return err
}

// die ends a process like a crash: its calls do not arrive any more, and it sends no
// heartbeats.
func (p *process) die(t *testing.T) {
	t.Helper()
	p.Kill()
	require.NoError(t, p.Lock.DieForTest())
}

// stores runs a test with each kind of store.
func stores(t *testing.T, do func(t *testing.T, s *store)) {
	t.Helper()
	for _, kind := range []string{"parameters", "files"} {
		t.Run(kind, func(t *testing.T) {
			folder := ""
			if kind == "files" {
				folder = filepath.Join(t.TempDir(), "locks [demo]")
			}
			in(t, func(t *testing.T) { do(t, &store{awssim.New(awssim.Options{}), folder}) })
		})
	}
}

// A released lock is available to the next run at once. Its record remains, and that of
// the run that deletes the cluster does not.
func TestLock(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		before, began := s.aws.Inventory(), time.Now()
		for n := range 3 {
			p := s.process()
			require.NoError(t, p.lock(t, cloud.LockOptions{}))
			require.Equal(t, n == 0, p.Lock.IsFirst())
			require.NoError(t, p.write(t))
			time.Sleep(time.Minute)
			require.NoError(t, p.write(t))
			require.NoError(t, p.Lock.Release(t.Context(), cloud.Ending{Nothing: n == 2}))
			s.aws.Edit(func(st *awssim.State) {
				maps.DeleteFunc(st.EC2.InternetGateways, func(_ string, g *awssim.InternetGateway) bool { return !g.Given })
			})
		}
		require.Equal(t, 3*time.Minute, time.Since(began), "no run waits for the previous one")
		require.Equal(t, before, s.aws.Inventory())
		if s.folder != "" {
			files, err := os.ReadDir(s.folder)
			require.NoError(t, err)
			require.Len(t, files, 1)
			require.Equal(t, "running", files[0].Name())
		}
	})
}

// While a run holds the lock, another run fails within a heartbeat interval, with the
// name of the holder.
func TestLockIsHeld(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{Command: "create"}))
		time.Sleep(5 * time.Second)
		began := time.Now()
		err := second.lock(t, cloud.LockOptions{})
		var held *plan.LockedError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "create", held.Command)
		require.ErrorContains(t, err, "another run holds the lock of this cluster: ada, create since ")
		require.LessOrEqual(t, time.Since(began), 17*time.Second)
		require.NoError(t, first.write(t))
		require.NoError(t, first.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// The lock of a dead run is taken over after AWS must show everything that the run
// created, and not before. The waiting run reports how long it waits.
func TestLockOfADeadRun(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		time.Sleep(20 * time.Second) // one heartbeat
		first.die(t)
		died := time.Now()
		var waits []time.Duration
		require.NoError(t, second.lock(t, cloud.LockOptions{Waiting: func(h cloud.Holder, left time.Duration) {
			require.Equal(t, "ada", h.Who)
			waits = append(waits, left)
		}}))
		require.GreaterOrEqual(t, time.Since(died), cloud.ConsistencyDelay)
		require.Less(t, time.Since(died), cloud.ConsistencyDelay+20*time.Second)
		require.NotEmpty(t, waits)
		require.NoError(t, second.write(t))
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// All runs of an account share three heartbeats a second. A run whose heartbeat is throttled sends
// them more rarely from then on, and says so: another run waits longer before it takes over.
func TestThrottledHeartbeats(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		first, second := s.process(), s.process()
		throttled := false
		first.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "PutParameter" && throttled {
				throttled = false
				return awssim.Throttled
			}
			return awssim.None
		}
		beats := func(during time.Duration) int {
			before := len(s.aws.Calls())
			time.Sleep(during)
			n := 0
			for _, c := range s.aws.Calls()[before:] {
				if c.Operation == "PutParameter" {
					n++
				}
			}
			return n
		}
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		require.InDelta(t, 12, beats(3*time.Minute), 1)
		throttled = true
		time.Sleep(20 * time.Second)
		require.InDelta(t, 5, beats(5*time.Minute), 1)
		require.NoError(t, first.write(t))
		time.Sleep(time.Minute)
		first.die(t)
		died := time.Now()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		require.Greater(t, time.Since(died), cloud.ConsistencyDelay)
		require.InDelta(t, 90, time.Since(died).Seconds(), 31, "a minute after the last heartbeat could have been followed by a write")
		require.NoError(t, second.write(t))
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// A run that ends with a call whose outcome is unknown makes the next run wait for a
// minute.
func TestLockReleasedWithUnknownOutcome(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		require.NoError(t, first.Lock.Release(t.Context(), cloud.Ending{Unknown: true}))
		released := time.Now()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		require.InDelta(t, cloud.ConsistencyDelay.Seconds(), time.Since(released).Seconds(), 17)
		require.GreaterOrEqual(t, time.Since(released), cloud.ConsistencyDelay)
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// A run that was suspended and has lost its lock in the meantime writes no more.
func TestLockLost(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		sleeper, second := s.process(), s.process()
		require.NoError(t, sleeper.lock(t, cloud.LockOptions{}))
		sleeper.Lock.StopForTest()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		igws := len(s.aws.Inventory())
		err := sleeper.write(t)
		require.ErrorIs(t, err, cloud.ErrLockLost)
		require.True(t, cloud.NotSent(err))
		require.Len(t, s.aws.Inventory(), igws)
		require.ErrorIs(t, sleeper.Lock.Release(t.Context(), cloud.Ending{}), cloud.ErrLockLost)
		require.NoError(t, second.write(t), "the suspended run has not removed the new lock")
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// A heartbeat that arrives after its run has ended does not take back what the run has
// written since: that a management cluster manages the cluster now, and that the run has
// released the lock.
func TestHeartbeatArrivesAfterTheRun(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		early, late := first.Lock.LateHeartbeatForTest(t.Context()), first.Lock.LateHeartbeatForTest(t.Context())
		manager := &plan.Manager{ID: "4711", Name: "prod"}
		require.NoError(t, first.Lock.SetManager(t.Context(), manager))
		require.NoError(t, first.Lock.Release(t.Context(), cloud.Ending{}))
		require.NoError(t, late())
		require.NoError(t, early())
		began := time.Now()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		require.Equal(t, manager, second.Lock.Manager())
		require.Zero(t, time.Since(began), "there is no run to wait for")
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// staleListings makes the listings of a process stale as long as stale returns true.
func staleListings(stale func() bool) func(int, string, string) awssim.Fault {
	return func(_ int, _, op string) awssim.Fault {
		if op == "GetParametersByPath" && stale() {
			return awssim.Stale
		}
		return awssim.None
	}
}

// A suspended process keeps a lock in files, however long it is suspended.
func TestFileLockOfASuspendedRun(t *testing.T) {
	folder := t.TempDir()
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), folder}
		sleeper, second := s.process(), s.process()
		require.NoError(t, sleeper.lock(t, cloud.LockOptions{}))
		sleeper.Lock.StopForTest()
		time.Sleep(time.Hour)
		require.ErrorAs(t, second.lock(t, cloud.LockOptions{}), new(*plan.LockedError))
		require.NoError(t, sleeper.write(t))
		require.NoError(t, sleeper.Lock.Release(t.Context(), cloud.Ending{}))
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// A listing that does not show the record yet, or not any more, is no proof that the lock
// is lost: the run waits until one shows it.
func TestLockIsListedLate(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		p := s.process()
		require.NoError(t, p.lock(t, cloud.LockOptions{}))
		time.Sleep(6 * time.Second)
		listings := 0
		p.Fault = staleListings(func() bool { listings++; return listings <= 3 })
		require.NoError(t, p.write(t))
		require.Equal(t, 4, listings)
		require.NoError(t, p.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// While the listing is old, no second run creates a record beside the first one's.
func TestLockIsNotTakenBlindly(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		began := time.Now()
		second.Fault = staleListings(func() bool { return time.Since(began) < 20*time.Second })
		require.ErrorAs(t, second.lock(t, cloud.LockOptions{}), new(*plan.LockedError))
		require.NoError(t, first.write(t))
		require.NoError(t, first.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// A run that was suspended while another one took over, deleted the cluster and its
// record, writes no more.
func TestLockOfADeletedCluster(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		sleeper, second := s.process(), s.process()
		require.NoError(t, sleeper.lock(t, cloud.LockOptions{}))
		sleeper.Lock.StopForTest()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		require.NoError(t, second.Lock.Release(t.Context(), cloud.Ending{Nothing: true}))
		require.ErrorIs(t, sleeper.write(t), cloud.ErrLockLost)
	})
}

// A network outage ends no heartbeats: they go on as soon as AWS can be reached.
func TestLockOutlivesAnOutage(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &store{awssim.New(awssim.Options{}), ""}
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		began := time.Now()
		first.Fault = func(int, string, string) awssim.Fault {
			if time.Since(began) < 40*time.Second {
				return awssim.Unsent
			}
			return awssim.None
		}
		time.Sleep(3 * time.Minute)
		require.ErrorAs(t, second.lock(t, cloud.LockOptions{}), new(*plan.LockedError), "the first run sends heartbeats")
		require.NoError(t, first.write(t))
		require.NoError(t, first.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// Of two runs that start at the same moment, one gets the lock.
func TestLockRace(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		got, held := make(chan *process, 5), make(chan error, 5)
		together(5, func() {
			p := s.process()
			if err := p.lock(t, cloud.LockOptions{}); err != nil {
				held <- err
				return
			}
			got <- p
		})
		require.Len(t, got, 1)
		for range 4 {
			require.ErrorAs(t, <-held, new(*plan.LockedError))
		}
		require.NoError(t, (<-got).Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// No reader of the lock files sees a partial record, however often records are written;
// the temporary file that a crash leaves is not a record.
func TestFileLockIsNeverPartial(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "lock-1.json.tmp-123"), []byte(`{"epo`), 0o600))
	a := awssim.New(awssim.Options{})
	p := &process{cloud.New(a.Config(), "demo", cloud.Options{}), a.Process(), &store{a, folder}}
	require.NoError(t, p.lock(t, cloud.LockOptions{}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			p.Lock.HeartbeatForTest(t.Context(), i)
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		files, err := filepath.Glob(filepath.Join(folder, "lock-*.json"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		raw, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.True(t, json.Valid(raw), "%q", raw)
	}
	require.NoError(t, p.Lock.Release(t.Context(), cloud.Ending{}))
}

// A record that this program did not write blocks all runs, because it may be that of a
// newer version. The error says how to delete it.
func TestDamagedRecord(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		p := s.process()
		require.NoError(t, p.lock(t, cloud.LockOptions{}))
		require.NoError(t, p.Lock.Release(t.Context(), cloud.Ending{}))
		name, remedy := "/clusterawsadm/demo/lock/1", "aws ssm delete-parameter --region us-east-1 --name /clusterawsadm/demo/lock/1"
		if s.folder != "" {
			name = filepath.Join(s.folder, "lock-1.json")
			remedy = fmt.Sprintf("rm %q", name)
		}
		for content, what := range map[string]string{
			"garbage":                    "invalid character 'g'",
			"null":                       "it names no run",
			`{"epoch": 2, "run": "abc"}`: "it is that of epoch 2",
		} {
			s.aws.Edit(func(state *awssim.State) {
				if s.folder == "" {
					state.SSM.Parameters[name].Value = content
				} else {
					require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
				}
			})
			err := s.process().lock(t, cloud.LockOptions{})
			require.ErrorAs(t, err, new(*cloud.DamagedLockError))
			require.ErrorContains(t, err, "the record "+name+" is damaged ("+what)
			require.ErrorContains(t, err, "If no other run works on this cluster, delete the record:\n  "+remedy)
		}
	})
}
