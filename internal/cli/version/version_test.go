package version

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrint(t *testing.T) {
	i := Info{
		Major: "2", Minor: "13", GitVersion: "v2.13.0", GitCommit: "0123", GitTreeState: "clean", BuildDate: "2026-11-20T00:00:00Z",
		GoVersion: "go1.26.8", AwsSdkVersion: "v1.47.5", Compiler: "gc", Platform: "linux/amd64", UpstreamVersion: Upstream,
	}
	for _, c := range []struct{ program, output, want string }{
		{"clusterawsadm", "", `clusterawsadm version: &version.Info{Major:"2", Minor:"13", GitVersion:"v2.13.0", GitCommit:"0123", GitTreeState:"clean", ` +
			`BuildDate:"2026-11-20T00:00:00Z", GoVersion:"go1.26.8", AwsSdkVersion:"v1.47.5", Compiler:"gc", Platform:"linux/amd64", UpstreamVersion:"v2.13.0"}` + "\n"},
		{"clusterctl-aws", "short", "v2.13.0\n"},
		{"x", "json", `{
  "awsProviderVersion": {
    "major": "2",
    "minor": "13",
    "gitVersion": "v2.13.0",
    "gitCommit": "0123",
    "gitTreeState": "clean",
    "buildDate": "2026-11-20T00:00:00Z",
    "goVersion": "go1.26.8",
    "awsSdkVersion": "v1.47.5",
    "compiler": "gc",
    "platform": "linux/amd64",
    "upstreamVersion": "v2.13.0"
  }
}
`},
		{"x", "yaml", `awsProviderVersion:
  awsSdkVersion: v1.47.5
  buildDate: "2026-11-20T00:00:00Z"
  compiler: gc
  gitCommit: "0123"
  gitTreeState: clean
  gitVersion: v2.13.0
  goVersion: go1.26.8
  major: "2"
  minor: "13"
  platform: linux/amd64
  upstreamVersion: v2.13.0

`},
	} {
		var out bytes.Buffer
		require.NoError(t, Print(&out, c.output, c.program, i))
		assert.Equal(t, c.want, out.String())
	}
	var out bytes.Buffer
	require.NoError(t, Print(&out, "", "clusterctl-aws", i))
	assert.Contains(t, out.String(), "clusterctl-aws version: &version.Info{")
	require.EqualError(t, Print(&out, "xml", "", i), "invalid output format: xml")
}

// Upstream is the version of CAPA in go.mod.
func TestUpstream(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	require.NoError(t, err)
	assert.Contains(t, string(mod), "sigs.k8s.io/cluster-api-provider-aws/v2 "+Upstream+"\n")
	assert.Equal(t, Upstream, Get().UpstreamVersion)
}

func TestString(t *testing.T) {
	assert.Equal(
		t,
		"v1.2.3, commit 0123, compatible with clusterawsadm v2.13.0",
		Info{GitVersion: "v1.2.3", GitCommit: "0123", UpstreamVersion: Upstream}.String(),
	)
	assert.Equal(t, "v1.2.3, compatible with clusterawsadm v2.13.0", Info{GitVersion: "v1.2.3", UpstreamVersion: Upstream}.String())
}
