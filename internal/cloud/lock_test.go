package cloud_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// store is a place for locks, and how a new process gets to it.
type store struct {
	aws    *awssim.AWS
	folder string // where locks are files
}

// process is one program that may hold a lock.
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

// die ends a process as a crash does: no call of it arrives any more, and it
// gives no sign of life.
func (p *process) die() {
	p.Kill()
	if p.store.folder != "" {
		p.Lock.StopForTest()
	}
}

// stores runs a test with each kind of lock.
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

// A lock that is given back is there for the next run at once, and leaves
// nothing.
func TestLock(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		before, began := s.aws.Inventory(), time.Now()
		for range 3 {
			p := s.process()
			require.NoError(t, p.lock(t, cloud.LockOptions{}))
			require.NoError(t, p.write(t))
			time.Sleep(time.Minute)
			require.NoError(t, p.write(t))
			require.NoError(t, p.Lock.Release(t.Context(), false))
			s.aws.Edit(func(st *awssim.State) {
				maps.DeleteFunc(st.EC2.InternetGateways, func(_ string, g *awssim.InternetGateway) bool { return !g.Given })
			})
		}
		require.Equal(t, 3*time.Minute, time.Since(began), "none waits for the one before it")
		require.Equal(t, before, s.aws.Inventory())
		if s.folder != "" {
			files, err := os.ReadDir(s.folder)
			require.NoError(t, err)
			require.Empty(t, files)
		}
	})
}

// While a run is at work, another is told so within a beat, by name.
func TestLockIsHeld(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{Command: "create"}))
		time.Sleep(5 * time.Second)
		began := time.Now()
		err := second.lock(t, cloud.LockOptions{})
		var held *cloud.LockedError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "create", held.Holder.Command)
		require.ErrorContains(t, err, "another run is at work on this cluster: ada, create since ")
		require.LessOrEqual(t, time.Since(began), 17*time.Second)
		require.NoError(t, first.write(t))
		require.NoError(t, first.Lock.Release(t.Context(), false))
	})
}

// The lock of a dead run is taken over when AWS must show all that it has asked
// for, and no sooner; who waits is told for how long.
func TestLockOfTheDead(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		time.Sleep(20 * time.Second) // one beat
		first.die()
		died := time.Now()
		var waits []time.Duration
		require.NoError(t, second.lock(t, cloud.LockOptions{Waiting: func(h cloud.Holder, left time.Duration) {
			require.Equal(t, "ada", h.Who)
			waits = append(waits, left)
		}}))
		require.GreaterOrEqual(t, time.Since(died), cloud.Settle)
		require.Less(t, time.Since(died), cloud.Settle+20*time.Second)
		require.NotEmpty(t, waits)
		require.NoError(t, second.write(t))
		require.NoError(t, second.Lock.Release(t.Context(), false))
	})
}

// A run that gives its lock back in the dark keeps the next one waiting for a
// minute.
func TestLockReleasedInTheDark(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		first, second := s.process(), s.process()
		require.NoError(t, first.lock(t, cloud.LockOptions{}))
		require.NoError(t, first.Lock.Release(t.Context(), true))
		released := time.Now()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		require.InDelta(t, cloud.Settle.Seconds(), time.Since(released).Seconds(), 17)
		require.GreaterOrEqual(t, time.Since(released), cloud.Settle)
		require.NoError(t, second.Lock.Release(t.Context(), false))
	})
}

// A run that slept, and whose lock was taken over meanwhile, writes no more.
func TestLockLost(t *testing.T) {
	stores(t, func(t *testing.T, s *store) {
		sleeper, second := s.process(), s.process()
		require.NoError(t, sleeper.lock(t, cloud.LockOptions{}))
		sleeper.Lock.StopForTest()
		require.NoError(t, second.lock(t, cloud.LockOptions{}))
		igws := len(s.aws.Inventory())
		err := sleeper.write(t)
		require.ErrorIs(t, err, cloud.ErrLockLost)
		require.True(t, cloud.Unsent(err))
		require.Len(t, s.aws.Inventory(), igws)
		require.ErrorIs(t, sleeper.Lock.Release(t.Context(), false), cloud.ErrLockLost)
		require.NoError(t, second.write(t), "the sleeper has not taken the lock along")
		require.NoError(t, second.Lock.Release(t.Context(), false))
	})
}

// Two runs that begin at the same moment do not both get the lock.
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
			require.ErrorAs(t, <-held, new(*cloud.LockedError))
		}
		require.NoError(t, (<-got).Lock.Release(t.Context(), false))
	})
}

// Nobody who lists the files of a lock finds half a record, however often it
// is written; what a crash leaves of a file that was being written is no lock.
func TestFileLockIsNeverHalfWritten(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "lock-1.json.tmp-123"), []byte(`{"epo`), 0o600))
	a := awssim.New(awssim.Options{})
	p := &process{cloud.New(a.Config(), "demo", cloud.Options{}), a.Process(), &store{a, folder}}
	require.NoError(t, p.lock(t, cloud.LockOptions{}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			p.Lock.BeatForTest(t.Context(), i)
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
	require.NoError(t, p.Lock.Release(t.Context(), false))
}
