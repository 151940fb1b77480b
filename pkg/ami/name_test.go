package ami

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		name, os, version string
		want              bool
	}{
		{"capa-ami-ubuntu-24.04-v1.34.2-1760000000", "ubuntu-24.04", "v1.34.2", true},
		{"capa-ami-ubuntu-24.04-v1.34.2-1760000000", "ubuntu-24.04", "1.34.2", true},
		{"capa-ami-ubuntu-24.04-1.34.2-1760000000", "ubuntu-24.04", "v1.34.2", true},
		{"capa-ami-ubuntu-24.04-1.34.2-00-1760000000", "ubuntu-24.04", "v1.34.2", true},
		{"capa-ami-ubuntu-24.04-v1.34.2-1760000000enc1a2b3c4d", "ubuntu-24.04", "v1.34.2", true},
		{"capa-ami-ubuntu-24.04-v1.34.2-1760000000x7q1763629200", "ubuntu-24.04", "v1.34.2", true}, // upstream's name of an encrypted copy
		{"capa-ami-ubuntu-24.04-v1.31.0-rc.1-1760000000", "ubuntu-24.04", "v1.31.0", false},
		{"capa-ami-ubuntu-24.04-v1.31.0-rc.1-00-1760000000", "ubuntu-24.04", "v1.31.0", false},
		{"capa-ami-ubuntu-24.04-v1.31.0-rc.1", "ubuntu-24.04", "v1.31.0", false},
		{"capa-ami-ubuntu-24.04-v1.31.0-rc.1-1760000000", "ubuntu-24.04", "v1.31.0-rc.1", true},
		{"capa-ami-ubuntu-24.04-v1.31.0-rc.1-1760000000", "ubuntu-24.04", "1.31.0-rc.1", true},
		{"capa-ami-ubuntu-24.04-v1.31.0-rebuilt-0", "ubuntu-24.04", "v1.31.0", false},
		{"capa-ami-ubuntu-24.04-v1.34.20-1760000000", "ubuntu-24.04", "v1.34.2", false},
		{"capa-ami-ubuntu-24.04-v1.34.2", "ubuntu-24.04", "v1.34.2", false},
		{"capa-ami-ubuntu-22.04-v1.34.2-1760000000", "ubuntu-24.04", "v1.34.2", false},
		{"capa-ami-flatcar-3510.2.1-v1.34.2-1760000000", "flatcar-3510.2.1", "v1.34.2", true},
		{"capa-ami-", "", "", false},
		{"nohyphen", "ubuntu-24.04", "v1.34.2", false}, // upstream's list panics on it
		{"", "", "", false},
	} {
		assert.Equal(t, c.want, Matches(c.name, c.os, c.version), "%s as %s %s", c.name, c.os, c.version)
	}
}

// The parts from which a name is built can be parsed from it, and no others.
func TestNamesSayWhatTheyAreBuiltOf(t *testing.T) {
	number := rapid.IntRange(0, 99)
	rapid.Check(t, func(t *rapid.T) {
		version := fmt.Sprintf("%d.%d.%d", number.Draw(t, "major"), number.Draw(t, "minor"), number.Draw(t, "patch"))
		version += rapid.SampledFrom([]string{"", "", "-alpha.1", "-beta.0", "-rc.3", "-rebuilt"}).Draw(t, "pre-release")
		os := rapid.OneOf(rapid.SampledFrom(OperatingSystems()), rapid.StringMatching(`[a-z]{1,8}(-[0-9]{1,4}(\.[0-9]{1,2}){0,2})?`)).Draw(t, "os")
		name := prefix + os + "-" + rapid.SampledFrom([]string{"", "v"}).Draw(t, "v") + version +
			rapid.SampledFrom([]string{"", "-00"}).Draw(t, "00") + "-" + rapid.StringMatching(`[0-9]{1,10}[a-z0-9]{0,12}`).Draw(t, "stamp")
		got, ok := versionIn(name, os)
		if !ok || got != version {
			t.Fatalf("%s: %q %t", name, got, ok)
		}
		release, _, _ := strings.Cut(version, "-")
		if Matches(name, os, "v"+release) != (release == version) {
			t.Fatalf("%s is taken for %s", name, release)
		}
		matched := false
		for _, p := range patterns(os, version) {
			matched = matched || strings.HasPrefix(name, strings.TrimSuffix(p, "*"))
		}
		if !matched {
			t.Fatalf("%s is not asked for by %q", name, patterns(os, version))
		}
	})
}

// No name causes a panic.
func TestAnyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, os := rapid.OneOf(rapid.String(), rapid.StringMatching(`(capa-ami-)?[-0-9a-z.]*`)).Draw(t, "name"), rapid.StringMatching(`[-0-9a-z.]*`).Draw(t, "os")
		if v, ok := versionIn(name, os); ok && !strings.Contains(name, v) {
			t.Fatalf("%q: %q", name, v)
		}
	})
}

func TestPatternsTakeNothingForAWildcard(t *testing.T) {
	assert.Equal(t, []string{`capa-ami-a\*b-*`}, patterns("a*b", ""))
	assert.Equal(t, []string{`capa-ami-x-v1.\?-*`, `capa-ami-x-1.\?-*`}, patterns("x", "v1.?"))
}

func TestVersionsInUpstreamsOrder(t *testing.T) {
	assert.Equal(t, []string{"v1.34.1", "v1.34.0", "v1.34.2", "v1.33.1", "v1.33.0", "v1.32.0"}, upTo([]release{{1, 32, 0}, {1, 34, 2}, {1, 33, 1}}))
	assert.Equal(t, []release{{1, 35, 0}, {1, 34, 10}, {1, 31, 0}, {1, 9, 2}},
		newestMinors([]release{{1, 9, 2}, {1, 34, 9}, {1, 34, 10}, {1, 8, 7}, {1, 31, 0}, {1, 35, 0}, {1, 9, 1}}))
	assert.Empty(t, upTo(newestMinors(nil)))
}
