package boot_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestWriteBootData writes the kubeadm configuration of the machines of every
// self-managed example to the folder BOOT_DATA, for the Kubernetes version BOOT_VERSION:
// the lab (e2e/kubernetes/lab) validates it with kubeadm of that version. Without
// BOOT_DATA it is skipped.
func TestWriteBootData(t *testing.T) {
	folder, version := os.Getenv("BOOT_DATA"), os.Getenv("BOOT_VERSION")
	if folder == "" {
		t.Skip("BOOT_DATA names no folder; make lab does")
	}
	for _, file := range enginetest.Examples(t) {
		if strings.HasPrefix(enginetest.Name(file), "eks") {
			continue
		}
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			m := enginetest.Rewritten(t, file, "v1.34.2", version)
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				enginetest.Prepare(t, a, m)
				// Machines delete their secrets when they boot, so the test keeps copies.
				secrets := map[string]*awssim.Secret{}
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(plan.Event) {
					a.Edit(func(s *awssim.State) { maps.Copy(secrets, s.Secrets.Secrets) })
				}})
				require.NoError(t, err)
				a.Edit(func(s *awssim.State) {
					maps.Copy(s.Secrets.Secrets, secrets)
					written := 0
					for _, i := range s.EC2.Instances {
						data, err := base64.StdEncoding.DecodeString(i.UserData)
						require.NoError(t, err)
						if text := kubeadmConfig(t, s, unzipped(t, data)); text != "" {
							written++
							path := filepath.Join(folder, fmt.Sprintf("%s-%d.yaml", enginetest.Name(file), written))
							require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
						}
					}
					require.NotZero(t, written)
				})
			})
		})
	}
}

// kubeadmConfig returns the kubeadm configuration that user data leads to, if it runs
// kubeadm.
func kubeadmConfig(t *testing.T, s *awssim.State, data []byte) (text string) {
	t.Helper()
	if bytes.HasPrefix(data, []byte("MIME-Version")) {
		data = unzipped(t, fetched(t, s, boothook(t, data)))
	}
	if bytes.HasPrefix(data, []byte("{")) {
		return ignitionKubeadmConfig(t, s, data)
	}
	var config struct {
		Files []struct{ Path, Content string } `json:"write_files"`
	}
	if bytes.HasPrefix(data, []byte("## template: jinja")) {
		require.NoError(t, yaml.Unmarshal(data, &config))
	}
	for _, f := range config.Files {
		if strings.HasPrefix(f.Path, "/run/kubeadm/") {
			text += f.Content
		}
	}
	return text
}

func ignitionKubeadmConfig(t *testing.T, s *awssim.State, data []byte) string {
	t.Helper()
	var config struct {
		Ignition struct {
			Config struct{ Append []struct{ Source string } }
		}
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(data, &config))
	for _, from := range config.Ignition.Config.Append {
		bucket, key, _ := strings.Cut(strings.TrimPrefix(from.Source, "s3://"), "/")
		return ignitionKubeadmConfig(t, s, s.S3.Buckets[bucket].Objects[key].Body)
	}
	for _, f := range config.Storage.Files {
		if f.Path == "/etc/kubeadm.yml" {
			content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(f.Contents.Source, "data:;base64,"))
			require.NoError(t, err)
			return string(content)
		}
	}
	return ""
}
