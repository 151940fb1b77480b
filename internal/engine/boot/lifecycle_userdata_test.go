package boot_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The boot data of every machine of every example is complete: the user data fits, refers
// to an existing secret or object, and that is in the format of cloud-init or Ignition.
func TestUserData(t *testing.T) {
	enginetest.Each(t, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		// Machines delete their boot data, so the test keeps copies.
		secrets, parameters := map[string]*awssim.Secret{}, map[string]*awssim.Parameter{}
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(plan.Event) {
			a.Edit(func(s *awssim.State) {
				maps.Copy(secrets, s.Secrets.Secrets)
				maps.Copy(parameters, s.SSM.Parameters)
			})
		}})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) {
			maps.Copy(s.Secrets.Secrets, secrets)
			maps.Copy(s.SSM.Parameters, parameters)
			for _, i := range s.EC2.Instances {
				if group := i.Tags["eks:nodegroup-name"]; group != "" { // launched by EKS, which writes its boot data
					require.True(t, slices.ContainsFunc(m.Pools, func(p manifest.Pool) bool { return p.Managed != nil && p.Managed.Spec.EKSNodegroupName == group }))
					require.NotContains(t, i.Tags, cloud.ResourceTag)
					if i.UserData == "" {
						continue
					}
				}
				data, err := base64.StdEncoding.DecodeString(i.UserData)
				require.NoError(t, err)
				require.NotEmpty(t, data)
				require.LessOrEqual(t, len(data), 16*1024)
				if i.Tags["clusterawsadm/resource"] == "bastion" {
					require.True(t, bytes.HasPrefix(data, []byte("#!/bin/bash\n")))
					continue
				}
				t.Log(i.Tags["clusterawsadm/resource"], i.Tags["aws:autoscaling:groupName"])
				requireBoots(t, s, unzipped(t, data), m)
			}
		})
	})
}

// requireBoots follows user data to the bootstrap data, and checks it.
func requireBoots(t *testing.T, s *awssim.State, data []byte, m *manifest.Cluster) {
	t.Helper()
	switch {
	case bytes.HasPrefix(data, []byte("MIME-Version")) && m.EKS != nil:
		enginetest.RequireNodeadm(t, s, data, m)
	case bytes.HasPrefix(data, []byte("MIME-Version")):
		requireCloudConfig(t, unzipped(t, fetched(t, s, boothook(t, data))), m)
	case bytes.HasPrefix(data, []byte("{")):
		requireIgnition(t, s, data)
	default:
		requireCloudConfig(t, data, m)
	}
}

// unzipped decompresses data, if it is compressed.
func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

// boothook returns the script of a MIME message, and checks that the message includes
// what the script fetches.
func boothook(t *testing.T, data []byte) string {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(data))
	require.NoError(t, err)
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	parts := multipart.NewReader(message.Body, parameters["boundary"])
	content := map[string]string{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		content[part.Header.Get("Content-Type")] = string(text)
	}
	require.Equal(t, "file:///etc/secret-userdata.txt\n", content["text/x-include-url"])
	require.Contains(t, content["text/cloud-boothook"], "#cloud-boothook\n#!/bin/bash\n")
	return content["text/cloud-boothook"]
}

// fetched returns the data that the script of a boothook fetches.
func fetched(t *testing.T, s *awssim.State, script string) (data []byte) {
	t.Helper()
	setting := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + `='([^']*)'$`).FindStringSubmatch(script)
		require.Len(t, found, 2, name)
		return found[1]
	}
	chunks, err := strconv.Atoi(setting("CHUNKS"))
	require.NoError(t, err)
	for i := range chunks {
		switch setting("BACKEND") {
		case "secrets-manager":
			secret := s.Secrets.Secrets[setting("PREFIX")+"-"+strconv.Itoa(i)]
			require.NotNil(t, secret)
			data = append(data, secret.Versions[len(secret.Versions)-1].Binary...)
		case "ssm-parameter-store":
			parameter := s.SSM.Parameters[setting("PREFIX")+"/"+strconv.Itoa(i)]
			require.NotNil(t, parameter)
			data = append(data, parameter.Value...)
		default:
			require.Fail(t, "backend", setting("BACKEND"))
		}
	}
	if setting("BACKEND") == "ssm-parameter-store" {
		data, err = base64.StdEncoding.DecodeString(string(data))
		require.NoError(t, err)
	}
	return data
}

// requireCloudConfig checks that data is a cloud-config that runs kubeadm, with the Node
// name that the cloud controller manager expects.
func requireCloudConfig(t *testing.T, data []byte, m *manifest.Cluster) {
	t.Helper()
	text := string(data)
	require.True(t, strings.HasPrefix(text, "## template: jinja\n#cloud-config\n"), text[:min(60, len(text))])
	require.Contains(t, text, "{{ ds.meta_data.local_hostname }}")
	var config struct {
		Files []struct{ Path, Content string } `json:"write_files"`
		Run   []any                            `json:"runcmd"`
	}
	require.NoError(t, yaml.Unmarshal(data, &config))
	paths := map[string]string{}
	for _, f := range config.Files {
		paths[f.Path] = f.Content
	}
	kubeadm := paths["/run/kubeadm/kubeadm.yaml"] + paths["/run/kubeadm/kubeadm-join-config.yaml"]
	require.NotEmpty(t, kubeadm, "%v", paths)
	for _, document := range strings.Split(kubeadm, "\n---\n") {
		require.NoError(t, yaml.Unmarshal([]byte(document), new(map[string]any)))
	}
	commands := strings.ReplaceAll(fmt.Sprint(config.Run), "bash /run/cluster-api/kubeadm-join.sh", joinCommand(t, paths))
	require.Regexp(t, `kubeadm (init|join) --config \S+ && echo success`, commands)
	if paths["/run/kubeadm/kubeadm.yaml"] != "" {
		require.Contains(t, kubeadm, "kubernetesVersion: "+m.Version)
		require.NotEmpty(t, paths["/etc/kubernetes/pki/ca.key"])
	}
}

// joinCommand returns the command that the script for joining machines repeats.
func joinCommand(t *testing.T, files map[string]string) string {
	t.Helper()
	script, ok := files["/run/cluster-api/kubeadm-join.sh"]
	if !ok {
		return ""
	}
	command := regexp.MustCompile(`(?m)^JOIN=\((.*)\)$`).FindStringSubmatch(script)
	require.NotNil(t, command)
	return command[1]
}

// requireIgnition checks that data is an Ignition configuration, and that the
// configuration that it refers to exists.
func requireIgnition(t *testing.T, s *awssim.State, data []byte) {
	t.Helper()
	var config struct {
		Ignition struct {
			Version string
			Config  struct{ Append []struct{ Source string } }
		}
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source string }
			}
		}
		Systemd struct{ Units []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(data, &config))
	require.Equal(t, "2.3.0", config.Ignition.Version)
	for _, from := range config.Ignition.Config.Append {
		bucket, key, ok := strings.Cut(strings.TrimPrefix(from.Source, "s3://"), "/")
		require.True(t, ok, from.Source)
		require.NotNil(t, s.S3.Buckets[bucket], from.Source)
		object := s.S3.Buckets[bucket].Objects[key]
		require.NotNil(t, object, from.Source)
		require.Equal(t, "aws:kms", object.Encryption)
		requireIgnition(t, s, object.Body)
	}
	if len(config.Ignition.Config.Append) > 0 {
		return
	}
	require.NotEmpty(t, config.Systemd.Units)
	files := map[string]string{}
	for _, f := range config.Storage.Files {
		content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(f.Contents.Source, "data:;base64,"))
		require.NoError(t, err, f.Path)
		files[f.Path] = string(content)
	}
	require.Contains(t, files["/etc/kubeadm.yml"], "name: ${COREOS_EC2_HOSTNAME}")
	require.Contains(t, files["/etc/kubeadm.sh"], "envsubst")
}
