package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// runner is what a job of a pipeline runs on: a folder of work, and a folder of programs with those that are stand-ins.
// curl copies the files of a release, sudo does nothing more, and gh writes down what it was told.
type runner struct {
	work, programs, release, temp string
	env                           []string
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the pipelines are for Linux on amd64")
	}
	r := &runner{work: t.TempDir(), programs: t.TempDir(), release: t.TempDir(), temp: t.TempDir()}
	built := filepath.Join(t.TempDir(), "clusterawsadm")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", built, "../cmd/clusterawsadm").
		CombinedOutput()
	require.NoError(t, err, string(out))
	r.pack(t, built)
	for name, script := range map[string]string{
		"curl": `for a; do case $a in https://*/v1.0.0/*) cp "` + r.release + `/${a##*/}" . ;; https://*) exit 22 ;; esac; done`,
		"sudo": `exec "$@"`,
		"gh":   `echo "$@" >> ` + r.work + `/gh.log`,
		"tar":  `exec /usr/bin/tar xzf "$2" -C ` + r.programs + ` clusterawsadm`,
	} {
		r.write(t, r.programs, name, "#!/bin/sh\nset -eu\n"+script+"\n", 0o755)
	}
	r.env = append(os.Environ(),
		"PATH="+r.programs+":"+os.Getenv("PATH"), "HOME="+r.temp, "XDG_STATE_HOME="+r.temp, "CLUSTERAWSADM_SIMULATE=true", "VERSION=1.0.0", "SHA256=",
		"GITHUB_STEP_SUMMARY="+r.temp+"/summary", "GITHUB_OUTPUT="+r.temp+"/output", "GITHUB_PATH="+r.temp+"/path", "RUNNER_TEMP="+r.temp, "NUMBER=7", "AWS_TOKEN=x",
		"AWS_WEB_IDENTITY_TOKEN_FILE="+r.temp+"/token", "AWS_REGION=eu-west-1",
	)
	return r
}

func (r *runner) write(t *testing.T, folder, name, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), mode))
}

// pack makes the files of a release.
func (r *runner) pack(t *testing.T, built string) {
	t.Helper()
	const name = "clusterawsadm_1.0.0_linux_amd64.tar.gz"
	data, err := os.ReadFile(built)
	require.NoError(t, err)
	f, err := os.Create(filepath.Join(r.release, name))
	require.NoError(t, err)
	z, err := gzip.NewWriterLevel(f, gzip.NoCompression)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "clusterawsadm", Mode: 0o755, Size: int64(len(data))}))
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	archive, err := os.ReadFile(filepath.Join(r.release, name))
	require.NoError(t, err)
	sum := sha256.Sum256(archive)
	r.write(t, r.release, "checksums.txt", hex.EncodeToString(sum[:])+"  "+name+"\n"+strings.Repeat("0", 64)+"  other.zip\n", 0o600)
}

// sh runs a script as the shell of a job does, and returns what it prints and its exit code.
func (r *runner) sh(t *testing.T, script string, more ...string) (out string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	c.Dir, c.Env = r.work, append(r.env, more...)
	printed, err := c.CombinedOutput()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError), string(printed))
	}
	return string(printed), c.ProcessState.ExitCode()
}

// TestPipelines runs the steps of the pipelines in docs/guides/ci in a shell, on the simulated AWS: the plan, exactly that
// plan, and the look for drift; and a plan that is not what was approved any more.
func TestPipelines(t *testing.T) {
	for _, file := range []string{"github-actions.yaml", "gitlab-ci.yaml"} {
		t.Run(file, func(t *testing.T) {
			r := newRunner(t)
			text, err := os.ReadFile("../docs/guides/ci/" + file)
			require.NoError(t, err)
			jobs := jobsIn(t, text)
			run := func(job string, want int) string {
				t.Helper()
				require.NotEmpty(t, jobs[job])
				out, code := "", 0
				for _, step := range jobs[job] {
					printed, exit := r.sh(t, step)
					if out, code = out+printed, exit; exit != 0 {
						break
					}
				}
				require.Equal(t, want, code, "%s\n%s", job, out)
				return out
			}
			_, code := r.sh(t, jobs["install"][0]+"\nclusterawsadm cluster generate demo > cluster.yaml")
			require.Equal(t, 0, code)
			run("plan", 0)
			markdown, err := os.ReadFile(filepath.Join(r.work, "plan.md"))
			require.NoError(t, err)
			assert.Contains(t, string(markdown), "### Plan of the cluster `demo`")
			assert.Contains(t, string(markdown), "**Cost**: about")
			assert.Contains(t, run("create", 0), "is up to date (")
			assert.Contains(t, run("drift", 0), "No changes")

			_, code = r.sh(t, `sed -i 's/replicas: 1$/replicas: 2/' cluster.yaml`)
			require.Equal(t, 0, code)
			assert.Contains(t, run("create", 4), "make the plan again", "the plan is of another manifest")
			run("drift", 2)

			r.env = append(r.env, "SHA256="+strings.Repeat("0", 64))
			out, code := r.sh(t, jobs["install"][0])
			assert.NotEqual(t, 0, code, "another archive than the one that was checked: %s", out)
		})
	}
}

// jobsIn returns the scripts of the jobs: install, plan, create and drift, which has the step of a schedule only.
func jobsIn(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	var github struct {
		Jobs map[string]struct{ Steps []struct{ Name, Run string } }
	}
	require.NoError(t, yaml.Unmarshal(text, &github))
	out := map[string][]string{}
	for name, job := range github.Jobs {
		for _, s := range job.Steps {
			switch {
			case s.Run == "":
			case s.Name == "Drift":
				out["drift"] = append(out["drift"], s.Run)
			case s.Name == "Install":
				out["install"] = []string{s.Run}
			default:
				out[name] = append(out[name], s.Run)
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	var gitlab map[string]any
	require.NoError(t, yaml.Unmarshal(text, &gitlab))
	lines := func(job, key string) string {
		part, _ := gitlab[job].(map[string]any)
		list, _ := part[key].([]any)
		var all []string
		for _, l := range list {
			if s, ok := l.(string); ok {
				all = append(all, s)
			}
		}
		return strings.Join(all, "\n")
	}
	out["install"] = []string{lines("default", "before_script")}
	for _, job := range []string{"plan", "create", "drift"} {
		out[job] = []string{lines(job, "script")}
	}
	return out
}

// TestAction runs the step of the GitHub Action: it installs a release, plans, and makes exactly that plan.
func TestAction(t *testing.T) {
	r := newRunner(t)
	script, err := filepath.Abs("../hack/action.sh")
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(r.programs, "tar")))
	require.NoError(t, os.Remove(filepath.Join(r.programs, "curl")))
	env := func(mode string) []string {
		return []string{"MODE=" + mode, "MANIFEST=cluster.yaml", "PLAN=cluster.plan", "ARGUMENTS=--max-cost 5000", "TIMEOUT=50m", "BASE=file://" + r.release}
	}
	out, code := r.sh(t, script, append(env("install"), "SHA256="+strings.Repeat("0", 64))...)
	require.NotEqual(t, 0, code)
	assert.Contains(t, out, "has another checksum")
	r.write(t, r.programs, "clusterawsadm", "#!/bin/sh\necho v2.13.0\n", 0o755) // upstream's
	out, code = r.sh(t, script, env("install")...)
	require.Equal(t, 0, code, out)
	path, err := os.ReadFile(filepath.Join(r.temp, "path"))
	require.NoError(t, err)
	r.env = append(r.env, "PATH="+strings.TrimSpace(string(path))+":"+os.Getenv("PATH"))
	_, code = r.sh(t, "clusterawsadm cluster generate demo > cluster.yaml")
	require.Equal(t, 0, code)
	out, code = r.sh(t, script, env("plan")...)
	require.Equal(t, 0, code, out)
	output, err := os.ReadFile(filepath.Join(r.temp, "output"))
	require.NoError(t, err)
	assert.Equal(t, "changes=true\n", string(output))
	out, code = r.sh(t, script, env("create")...)
	require.Equal(t, 0, code, out)
	out, code = r.sh(t, script, env("plan")...)
	require.Equal(t, 0, code, out)
	output, err = os.ReadFile(filepath.Join(r.temp, "output"))
	require.NoError(t, err)
	assert.Equal(t, "changes=true\nchanges=false\n", string(output))
	summary, err := os.ReadFile(filepath.Join(r.temp, "summary"))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(summary), "### Plan of the cluster `demo`"))
}

// TestReleaseVersions checks that what is tested is what makes the release.
func TestReleaseVersions(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	workflow, err := os.ReadFile("../.github/workflows/release.yml")
	require.NoError(t, err)
	_, version, ok := strings.Cut(string(makefile), "\nGORELEASER := ")
	require.True(t, ok)
	version, _, _ = strings.Cut(version, "\n")
	assert.Contains(t, string(workflow), "version: "+version+" # as in the Makefile")
}
