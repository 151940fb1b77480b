package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// standing makes the commands use an account with the cluster "demo", on the first day of
// 2000.
func (s *session) standing() {
	s.t.Helper()
	text, err := os.ReadFile(s.generated(s.t))
	require.NoError(s.t, err)
	m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: text}}, input.LoadOptions{})
	require.NoError(s.t, err)
	s.simulates(func(t *testing.T, a *awssim.AWS) {
		_, err := reconcile.Open(m, cluster.Target{Config: a.Config(), Owner: "a test"}).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
	})
}

// ages advances the time of the account by days.
func (s *session) ages(days int) {
	s.t.Helper()
	file := s.variables["CLUSTERAWSADM_SIMULATE_STATE"]
	state, err := os.ReadFile(file)
	require.NoError(s.t, err)
	var saved struct{ Now time.Time }
	require.NoError(s.t, json.Unmarshal(state, &saved))
	then := saved.Now.AddDate(0, 0, days).Format(time.RFC3339Nano)
	aged := regexp.MustCompile(`(?m)^ "Now": "[^"]*"`).ReplaceAll(state, []byte(` "Now": "`+then+`"`))
	require.NotEqual(s.t, state, aged)
	require.NoError(s.t, os.WriteFile(file, aged, 0o600))
}

// certificate returns the administrator's certificate in a kubeconfig.
func (s *session) certificate(file string) *api.AuthInfo {
	s.t.Helper()
	c, err := clientcmd.LoadFromFile(file)
	require.NoError(s.t, err)
	user := c.AuthInfos["demo-admin"]
	require.NotNil(s.t, user)
	return user
}

// changed edits a kubeconfig.
func changed(t *testing.T, file string, change func(*api.Config)) []byte {
	t.Helper()
	c, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	change(c)
	data, err := clientcmd.Write(*c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return data
}

// TestKubeconfigIsRenewedWhenHalfUsed runs the command at several times.
func TestKubeconfigIsRenewedWhenHalfUsed(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		for _, name := range []string{"file", "merge"} {
			t.Run(name, func(t *testing.T) {
				s := newSession(t)
				s.standing()
				if terminal {
					s.terminal("")
				}
				file := filepath.Join(filepath.Dir(s.HomeDir), "demo.kubeconfig")
				ask := []string{"cluster", "kubeconfig", "demo", "--region", "us-east-1", "--to", file}
				if name == "merge" {
					file = filepath.Join(s.HomeDir, ".kube", "config")
					ask = append(ask[:5], "--merge")
				}
				content := func() string {
					data, err := os.ReadFile(file)
					require.NoError(t, err)
					assert.NotContains(t, s.err.String(), "client-key-data")
					assert.NotContains(t, s.err.String(), "BEGIN")
					assert.Empty(t, s.out.String(), "a secret is told in one place only")
					return string(data)
				}
				s.types(0, ask...)
				first := content()
				s.types(0, ask...)
				assert.Equal(t, first, content(), "to the byte")
				s.ages(180)
				s.types(0, ask...)
				assert.Equal(t, first, content(), "not half of it is over")
				s.ages(3)
				s.types(0, ask...)
				second := content()
				assert.NotEqual(t, first, second, "half of it is over")
				s.types(0, ask...)
				assert.Equal(t, second, content())
				s.types(0, append(ask, "--renew")...)
				third := content()
				assert.NotEqual(t, second, third, "that is asked for")
				s.ages(400)
				s.types(0, ask...)
				assert.NotEqual(t, third, content(), "it has expired")
				golden.Assert(t, "kubeconfig-"+name+".txt", s.transcript()) // the same on a terminal
			})
		}
	}
}

// TestKubeconfigKeepsOnlyWhatFits uses files that look valid and are not.
func TestKubeconfigKeepsOnlyWhatFits(t *testing.T) {
	s := newSession(t)
	s.standing()
	file := filepath.Join(filepath.Dir(s.HomeDir), "demo.kubeconfig")
	s.variables["KUBECONFIG"] = file
	merge := []string{"cluster", "kubeconfig", "demo", "--region", "us-east-1", "--merge"}
	s.types(0, merge...)
	for _, c := range []struct {
		what   string
		change func(*api.Config)
	}{
		{"another server", func(c *api.Config) { c.Clusters["demo"].Server = "https://elsewhere:6443" }},
		{"another CA", func(c *api.Config) {
			c.Clusters["demo"].CertificateAuthorityData = c.AuthInfos["demo-admin"].ClientCertificateData
		}},
		{"another key", func(c *api.Config) { c.AuthInfos["demo-admin"].ClientKeyData = []byte("another") }},
		{"another user", func(c *api.Config) { c.Contexts["demo-admin@demo"].AuthInfo = "somebody" }},
		{"no cluster", func(c *api.Config) { delete(c.Clusters, "demo") }},
		{"no certificate", func(c *api.Config) { c.AuthInfos["demo-admin"] = &api.AuthInfo{Token: "hunter2"} }},
	} {
		before := s.certificate(file).ClientCertificateData
		changed(t, file, c.change)
		s.log.WriteString("# " + c.what + "\n")
		s.types(0, merge...)
		assert.NotEqual(t, before, s.certificate(file).ClientCertificateData, c.what)
		assert.NotContains(t, s.err.String(), "hunter2")
	}
	s.log.WriteString("# another current context\n")
	before := s.certificate(file).ClientCertificateData
	changed(t, file, func(c *api.Config) {
		c.CurrentContext = "other"
		c.Contexts["demo-admin@demo"].Namespace = "web"
	})
	s.types(0, merge...)
	assert.Equal(t, before, s.certificate(file).ClientCertificateData)
	got, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	assert.Equal(t, "other", got.CurrentContext, "kubectl cannot connect to a simulated cluster")
	assert.Equal(t, "web", got.Contexts["demo-admin@demo"].Namespace, "what the user has set stays")
	golden.Assert(t, "kubeconfig-fits.txt", s.transcript())
}

// TestKubeconfigFileIsNotOverwritten uses files that must not be overwritten.
func TestKubeconfigFileIsNotOverwritten(t *testing.T) {
	s := newSession(t)
	s.standing()
	in := func(name string) string { return filepath.Join(filepath.Dir(s.HomeDir), name) }
	secret := "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: hunter2}}\n"
	for name, text := range map[string]string{
		"broken.yaml": secret, "text": "hunter2\n", "other.yaml": "apiVersion: v1\nkind: Secret\nstringData: {token: hunter2}\n", "wrong.yaml": "apiVersion: v1\nkind: Config\nusers: hunter2\n",
		"notes.yaml": "important: hunter2\n", "data.json": `{"important": "hunter2"}`,
	} {
		require.NoError(t, os.WriteFile(in(name), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(in("folder"), 0o700))
	require.NoError(t, os.WriteFile(in("empty"), nil, 0o644))
	require.NoError(t, os.WriteFile(in("unnamed"), []byte("clusters: []\nusers: []\n"), 0o600))
	for _, args := range [][]string{
		{"--to", in("broken.yaml")}, {"--to", in("text")}, {"--to", in("other.yaml")}, {"--to", in("wrong.yaml")}, {"--to", in("notes.yaml")}, {"--to", in("data.json")}, {"--to", in("folder")}, {"--to", ""}, {"--to", "x", "--merge"},
	} {
		s.types(env.Wrong, append([]string{"cluster", "kubeconfig", "demo", "--region", "us-east-1"}, args...)...)
	}
	s.types(1, "cluster", "kubeconfig", "demo", "--region", "us-east-1", "--to", "/proc/nowhere/demo.kubeconfig")
	s.variables["KUBECONFIG"] = in("broken.yaml")
	s.types(env.Wrong, "cluster", "kubeconfig", "demo", "--region", "us-east-1", "--merge")
	s.variables["KUBECONFIG"] = in("notes.yaml")
	s.types(env.Wrong, "cluster", "kubeconfig", "demo", "--region", "us-east-1", "--merge")
	s.types(0, "cluster", "kubeconfig", "demo", "--region", "us-east-1", "--to", in("empty"))
	s.types(0, "cluster", "kubeconfig", "demo", "--region", "us-east-1", "--to", in("unnamed"))
	s.types(1, "cluster", "kubeconfig", "nope", "--region", "us-east-1", "--to", in("nope"))
	assert.NoFileExists(t, in("nope"))
	for _, name := range []string{"broken.yaml", "text", "notes.yaml", "data.json"} {
		data, err := os.ReadFile(in(name))
		require.NoError(t, err)
		assert.Contains(t, string(data), "hunter2", "it is as it was")
	}
	left, err := filepath.Glob(in("folder/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	golden.Assert(t, "kubeconfig-wrong.txt", s.transcript())
	assert.NotContains(t, s.log.String(), "hunter2")
}

// TestKubeconfigOnStandardOutput prints until when it is valid.
func TestKubeconfigOnStandardOutput(t *testing.T) {
	s := newSession(t)
	s.standing()
	require.Equal(t, 0, s.run("cluster", "kubeconfig", "demo", "--region", "us-east-1"))
	_, err := clientcmd.Load(s.out.Bytes())
	require.NoError(t, err)
	assert.Contains(t, s.err.String(), "\nvalid until 2000-12-31\n")
	assert.Contains(t, s.err.String(), "warning: the API server of a simulated cluster does not exist")
}
