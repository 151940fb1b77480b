//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// TestKilled creates and deletes clusters while requests fail and processes are killed.
// Afterwards each cluster is as after an undisturbed run, no resource exists twice, and
// nothing is left after its deletion. E2E_LIVES is the number of clusters, E2E_SEED repeats
// a sequence, and E2E_LIFE repeats one life of it.
func TestKilled(t *testing.T) {
	seed := number(t, "E2E_SEED", uint64(time.Now().UnixNano()))
	lives, only := number(t, "E2E_LIVES", 6), number(t, "E2E_LIFE", 0)
	t.Logf("E2E_SEED=%d", seed)
	for account := range accounts {
		t.Run(fmt.Sprintf("account %d", account+1), func(t *testing.T) {
			t.Parallel()
			server := moto.Start(t)
			c := &campaign{server: server, proxy: newProxy(t, server), seed: seed, undisturbed: map[string]course{}}
			for n := range lives {
				if n/livesOfExample%accounts == account && (only == 0 || only == n+1) {
					t.Run(fmt.Sprintf("life %d", n+1), func(t *testing.T) { c.live(t, n+1) })
				}
			}
			t.Logf("%d lives: %d processes, of which %d were killed, faults: %v", c.lives, c.processes, c.kills, c.proxy.count)
		})
	}
}

const (
	accounts       = uint64(2) // at the same time
	livesOfExample = 2         // until it is the turn of the next example
)

// number reads a number from an environment variable.
func number(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), strconv.FormatUint(usual, 10)), 10, 64)
	require.NoError(t, err, name)
	return n
}

// campaign is a sequence of lives in one account.
type campaign struct {
	server      *moto.Server
	proxy       *proxy
	seed        uint64
	undisturbed map[string]course // by example

	lives, processes, kills int
}

// course is how the life of an example goes without faults.
type course struct {
	kinds            map[string]int // how many resources of each kind it has
	creates, deletes int            // requests
}

// crowd is the quickstart with so many workers that one call launches all of them.
const crowd = "crowd"

// examplesToKill are the examples whose lives are disturbed, in turn.
func examplesToKill() []string {
	return []string{"quickstart", crowd, "node-groups", "classic-elb", "three-zones", "single-machines", "dual-stack", "flatcar", "bastion", "ipv6", "public-only"}
}

func (c *campaign) live(t *testing.T, n uint64) {
	random := rand.New(rand.NewPCG(c.seed, n))
	name := examplesToKill()[(n-1)/livesOfExample%uint64(len(examplesToKill()))]
	rate := []float64{0, 0.02, 0.05, 0.1}[random.IntN(4)]
	began := time.Now()
	c.lives++
	t.Logf("E2E_SEED=%d E2E_LIFE=%d: %s, of 100 requests %.0f fail", c.seed, n, name, 100*rate)
	course := c.course(t, name)
	before := c.empty(t)
	c.proxy.begin(random.Uint64(), rate)
	s, manifest, cluster := c.shell(t), manifestOf(t, name), name
	if name == crowd {
		cluster = "quickstart"
	}

	for range random.IntN(4) {
		c.killed(t, s, random, course.creates, "create", "-f", manifest, "--yes")
	}
	c.run(t, s, "create", "-f", manifest, "--yes")
	assert.Equal(t, course.kinds, kindsOf(inventory(t, c.server)), "the same as of an undisturbed run")
	assert.Empty(t, twins(t, c.server))
	c.proxy.begin(0, 0)
	s.run(t, 0, "plan", "-f", manifest, "--detailed-exitcode")

	c.proxy.begin(random.Uint64(), rate)
	target := []string{"-f", manifest}
	if random.IntN(2) == 0 {
		target = []string{cluster}
	}
	for range random.IntN(3) {
		c.killed(t, s, random, course.deletes, append([]string{"delete", "--yes"}, target...)...)
	}
	code := 0
	if target[0] == cluster && slices.Equal(before, inventory(t, c.server)) {
		code = env.Failed // it was killed when all was deleted: there is no cluster of this name
	}
	c.processes++
	c.proxy.watch(0, false, func() {})
	s.run(t, code, append([]string{"delete", "--yes"}, target...)...)
	assert.Equal(t, before, inventory(t, c.server), "nothing is left")
	t.Logf("%s after %s", map[bool]string{true: "FAILED", false: "passed"}[t.Failed()], time.Since(began).Round(time.Second))
}

// manifestOf returns the path of the manifest of an example, or of the crowd.
func manifestOf(t *testing.T, name string) string {
	t.Helper()
	if name != crowd {
		return example(name)
	}
	return quickstartOf(t, 20)
}

// quickstartOf returns the path of a manifest that is the quickstart with so many workers.
func quickstartOf(t *testing.T, workers uint64) string {
	t.Helper()
	text, err := os.ReadFile(example("quickstart"))
	require.NoError(t, err)
	many := strings.Replace(string(text), "\n  replicas: 1\n", fmt.Sprintf("\n  replicas: %d\n", workers), 1)
	require.NotEqual(t, string(text), many)
	path := filepath.Join(t.TempDir(), "crowd.yaml")
	require.NoError(t, os.WriteFile(path, []byte(many), 0o600))
	return path
}

// empty resets the account, and returns what a new one has.
func (c *campaign) empty(t *testing.T) (inventoryBefore []string) {
	t.Helper()
	c.server.Reset(t)
	c.server.Bootstrap(t)
	return inventory(t, c.server)
}

func (c *campaign) shell(t *testing.T) *shell {
	t.Helper()
	return newShell(t, c.server, "AWS_ENDPOINT_URL="+c.proxy.URL)
}

// course creates and deletes the cluster of an example without faults, once.
func (c *campaign) course(t *testing.T, name string) course {
	t.Helper()
	if known, ok := c.undisturbed[name]; ok {
		return known
	}
	var x course
	before := c.empty(t)
	c.proxy.begin(0, 0)
	s, manifest := c.shell(t), manifestOf(t, name)
	c.run(t, s, "create", "-f", manifest, "--yes")
	x.creates, x.kinds = c.proxy.requests(), kindsOf(inventory(t, c.server))
	require.Empty(t, twins(t, c.server))
	c.run(t, s, "delete", "-f", manifest, "--yes")
	x.deletes = c.proxy.requests()
	require.Equal(t, before, inventory(t, c.server))
	t.Logf("undisturbed, %s takes %d requests to create and %d to delete", name, x.creates, x.deletes)
	c.undisturbed[name] = x
	return x
}

// run runs a command that succeeds in spite of the faults.
func (c *campaign) run(t *testing.T, s *shell, args ...string) {
	t.Helper()
	c.processes++
	c.proxy.watch(0, false, func() {})
	s.run(t, 0, args...)
}

// killed runs a command that is killed at one of its requests: before the request arrives,
// or after it has had its effect.
func (c *campaign) killed(t *testing.T, s *shell, random *rand.Rand, requests int, args ...string) {
	t.Helper()
	c.processes++
	cmd, _, story := s.command(limited(t), args...)
	death, after := 1+random.IntN(requests), random.IntN(2) == 0
	started := make(chan struct{})
	c.proxy.watch(death, after, func() {
		<-started
		_ = cmd.Process.Kill() // it may have ended
	})
	require.NoError(t, cmd.Start())
	close(started)
	_ = cmd.Wait() // it was killed, or ended before
	if cmd.ProcessState.ExitCode() == -1 {
		c.kills++
	}
	t.Logf("%s killed at request %d, exit code %d: %s", args[0], death, cmd.ProcessState.ExitCode(), lastLine(story.String()))
}

func lastLine(story string) string {
	lines := strings.Split(strings.TrimSpace(story), "\n")
	return lines[len(lines)-1]
}

// kindsOf counts lines by their first word: IDs differ from run to run.
func kindsOf(inventory []string) map[string]int {
	kinds := map[string]int{}
	for _, line := range inventory {
		if strings.Contains(line, "/lock/") {
			continue // one record of the lock, or two: that of the run before remains
		}
		kind, _, _ := strings.Cut(line, " ")
		kinds[kind]++
	}
	return kinds
}

// twins lists the resources of EC2 that have the same identity tag. Volumes and interfaces
// have that of their machine. moto keeps the tags of what is deleted.
func twins(t *testing.T, server *moto.Server) (out []string) {
	t.Helper()
	standing := strings.Join(inventory(t, server), "\n")
	c := ec2.NewFromConfig(server.Config)
	filter := "key"
	tags, err := c.DescribeTags(t.Context(), &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: &filter, Values: []string{"clusterawsadm/resource"}}}})
	require.NoError(t, err)
	require.NotEmpty(t, tags.Tags)
	first := map[string]string{}
	for _, x := range tags.Tags {
		if !strings.Contains(standing, *x.ResourceId) ||
			slices.Contains([]types.ResourceType{types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}, x.ResourceType) {
			continue
		}
		if other := first[*x.Value]; other != "" {
			out = append(out, fmt.Sprintf("%s: %s and %s", *x.Value, other, *x.ResourceId))
		}
		first[*x.Value] = *x.ResourceId
	}
	return out
}
