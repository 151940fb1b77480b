package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

func TestSettings(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	anywhere := filepath.Join(t.TempDir(), "anywhere.yaml")
	require.NoError(t, os.WriteFile(anywhere, regexp.MustCompile(`(?m)^ *region: .*\n`).ReplaceAll(text, nil), 0o600))
	region := func(args ...string) string {
		t.Helper()
		require.Equal(t, 0, s.run(append([]string{"cluster", "validate", "-o", "json"}, args...)...), s.err.String())
		var v struct{ Region string }
		require.NoError(t, json.Unmarshal(s.out.Bytes(), &v))
		return v.Region
	}
	s.variables["AWS_REGION"] = "eu-north-1"
	assert.Equal(t, "us-east-1", region("-f", file), "the manifest's")
	assert.Empty(t, s.err.String())
	assert.Equal(t, "eu-north-1", region("-f", anywhere), "AWS's")
	config := filepath.Join(s.ConfigDir, "clusterawsadm", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o700))
	require.NoError(t, os.WriteFile(config, []byte("region: eu-west-1\nset: [A=b]\nparallel: 7\n"), 0o600))
	assert.Equal(t, "eu-west-1", region("-f", anywhere), "the configuration file's")
	assert.Equal(t, "us-east-1", region("-f", file), "the manifest's all the same")
	assert.Regexp(
		t,
		`^note: using region us-east-1 of the manifest \(\S+demo\.yaml:\d+ AWSCluster/demo spec\.region\), not eu-west-1 of \S+config\.yaml\n$`,
		s.err.String(),
	)
	s.variables["CLUSTERAWSADM_REGION"] = "eu-west-2"
	assert.Equal(t, "eu-west-2", region("-f", anywhere), "the environment's")
	assert.Equal(t, "us-east-1", region("-f", file), "the manifest's still")
	assert.Contains(t, s.err.String(), ", not eu-west-2 of CLUSTERAWSADM_REGION")
	assert.Equal(t, "eu-west-3", region("-f", file, "--region", "eu-west-3"), "the flag's")

	s.variables["CLUSTERAWSADM_FILENAME"] = file
	require.Equal(t, 0, s.run("cluster", "validate"), s.err.String())
	s.variables["CLUSTERAWSADM_OUTPUT"] = "json"
	require.Equal(t, 0, s.run("cluster", "validate"))
	assert.True(t, json.Valid(s.out.Bytes()))
	s.variables["CLUSTERAWSADM_OUTPUT"] = "wide"
	require.Equal(t, 0, s.run("cluster", "validate"), "a format that only others have is passed over")
	delete(s.variables, "CLUSTERAWSADM_OUTPUT")

	s.variables["CLUSTERAWSADM_PARALLEL"] = "many"
	assert.Equal(t, env.Wrong, s.run("cluster", "validate"))
	assert.Contains(t, s.err.String(), "CLUSTERAWSADM_PARALLEL: parallel: ")
	delete(s.variables, "CLUSTERAWSADM_PARALLEL")

	require.NoError(t, os.WriteFile(config, []byte("regin: eu-west-1\n"), 0o600))
	assert.Equal(t, env.Wrong, s.run("cluster", "validate"))
	assert.Contains(t, s.err.String(), `unknown setting "regin"`)
}

// A misspelt variable is told: that of the configuration file is an error.
func TestUnknownVariables(t *testing.T) {
	s := newShell(t)
	s.Variables = func() []string { return slices.Sorted(maps.Keys(s.variables)) }
	file := s.generated(t)
	s.variables["CLUSTERAWSADM_REGIO"], s.variables["CLUSTERAWSADM_COLOUR_SCHEME"], s.variables["AWS_REGIO"] = "eu-west-1", "dark", "eu-west-1"
	s.variables["CLUSTERAWSADM_TIMEOUT"], s.variables["CLUSTERAWSADM_CONFIG"] = "5m", ""
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file))
	assert.Equal(t, "warning: the environment variable CLUSTERAWSADM_COLOUR_SCHEME is no setting and has no effect; settings have the names of flags\n"+
		"warning: the environment variable CLUSTERAWSADM_REGIO is no setting and has no effect; did you mean CLUSTERAWSADM_REGION?\n", s.err.String())
}

func TestVariablesOfTheManifest(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "v.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "replicas: 1", "replicas: ${N}")), 0o600))
	s.variables["N"] = "3"
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file), s.err.String())
	assert.Contains(t, s.out.String(), "3 control planes, 3 workers")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--set", "N=5"), s.err.String())
	assert.Contains(t, s.out.String(), "5 control planes, 5 workers")
}

// A value of the environment gets into a manifest only where it is asked for.
func TestVariablesOfScripts(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, "v.yaml")
	write := func(edits ...string) {
		require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(edits...).Replace(string(text))), 0o600))
	}
	const plane = "  kubeadmConfigSpec:\n"
	write(plane, plane+"    preKubeadmCommands: ['echo ${HOME} ${UNKNOWN}']\n")
	s.variables["HOME"] = "/home/operator"
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--strict"), s.err.String())
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file, "--substitute", "all"))
	assert.Contains(t, s.err.String(), "the variable UNKNOWN is not set")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--set", "HOME", "--set", "UNKNOWN=x"), s.err.String())
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file, "--set", "HOME", "--substitute=none"))
	assert.Contains(t, s.err.String(), "--set has no effect with --substitute=none")

	write("replicas: 1", "replicas: ${N:=1}", plane, plane+"    preKubeadmCommands: ['echo ${HOME}']\n")
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file))
	assert.Contains(t, s.err.String(), "the variable HOME is not taken from the environment: every shell has one of this name — pass --set HOME to take it")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--set", "HOME"), s.err.String())
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file, "--substitute=none"))
	assert.Contains(t, s.err.String(), "the field contains ${N:=1}, and no variable is replaced")

	write("replicas: 1", "replica: 2\n  replicas: 1")
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file))
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--validation", "warn"), s.err.String())
	assert.Contains(t, s.err.String(), "spec.replica: the field does not exist and is ignored")

	require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte("resources: [v.yaml]\n"), 0o600))
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", folder))
	assert.Contains(
		t,
		s.err.String(),
		"this directory has a kustomization.yaml: use the result of its tool: kustomize build "+folder+" | clusterawsadm cluster … -f -",
	)
}

func TestSettingsFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", ""},
		"no value":       {"region:\n", ""},
		"number":         {"parallel: 100000000\n", ""},
		"no number":      {"parallel: many\n", `config.yaml: parallel: "many" is not a whole number`},
		"list":           {"set: [A=b, 'C=d,e']\n", ""},
		"capitals":       {"Region: eu-west-1\n", ""},
		"unknown":        {"region: eu-west-1\nregin: eu-west-2\n", `config.yaml: unknown setting "regin"`},
		"of Kubernetes":  {"apiVersion: v1\nkind: AWSIAMConfiguration\n", "is a Kubernetes object, and not a file of settings"},
		"below another":  {"region: {name: eu-west-1}\n", `config.yaml: unknown setting "region`},
		"the file's own": {"config: other.yaml\n", `config.yaml: unknown setting "config"`},
		"no YAML":        {"region: [\n", "config.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			file := s.generated(t)
			config := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(config, []byte(c.text), 0o600))
			code := s.run("cluster", "validate", "-f", file, "--config", config)
			if c.want == "" {
				require.Equal(t, 0, code, s.err.String())
				return
			}
			require.Equal(t, env.Wrong, code)
			assert.Contains(t, s.err.String(), c.want)
		})
	}
	s := newShell(t)
	assert.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", s.generated(t), "--config", "nowhere.yaml"))
	assert.Contains(t, s.err.String(), "nowhere.yaml: no such file or directory")
}
