package oracle

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

type object = map[string]any

// cloudConfig parses a cloud-config. Scalars become strings: Cluster API's template does
// not quote, so that a user named 007 or the 0 in a mount become numbers, which
// cloud-init converts back; those of this program stay strings. Empty values are omitted.
func cloudConfig(t *testing.T, content []byte) object {
	t.Helper()
	require.True(t, strings.HasPrefix(string(content), "## template: jinja\n#cloud-config\n"))
	var doc object
	require.NoError(t, yaml.Unmarshal(content, &doc))
	out := asText(doc).(object)
	commands, files := withoutScript(t, out["runcmd"].([]any), out["write_files"].([]any), func(f object) string { return f["content"].(string) })
	out["write_files"] = files
	for i, command := range commands {
		// Without a verbosity, the template leaves a space.
		commands[i] = strings.Replace(command.(string), "  && echo success", " && echo success", 1)
	}
	for _, f := range out["write_files"].([]any) {
		file := f.(object)
		path, text := file["path"].(string), fmt.Sprint(file["content"])
		switch {
		case strings.HasPrefix(path, "/run/kubeadm/"):
			file["content"] = documents(t, text)
		case path == "/run/cluster-api/placeholder":
			// The text of this program differs; nothing reads it.
			delete(file, "content")
		}
	}
	return out
}

// asText converts every scalar to a string and omits empty values.
func asText(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range v {
			if value = asText(value); value != nil {
				out[key] = value
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, asText(item))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case nil:
		return nil
	default:
		if text := fmt.Sprint(v); text != "" {
			return text
		}
		return nil
	}
}

// documents parses the documents of a kubeadm configuration by their kind.
func documents(t *testing.T, text string) object {
	t.Helper()
	out := object{}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc object
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if doc != nil {
			out[doc["kind"].(string)] = asText(doc)
		}
	}
}

// intended changes what Cluster API makes for kubeadm to what we mean to make
// differently:
//
//   - the bootstrap token is created by kubeadm init, not by a controller later;
//   - joining machines run kubeadm in a script that repeats it, see withoutScript;
//   - joining machines wait 20 minutes for the first control plane, and ten for
//     their turn in etcd, because all are launched at once;
//   - workers do not get the taint that a Machine controller would remove.
func intended(role boot.Role, docs object) {
	if first, ok := docs["InitConfiguration"].(object); ok {
		first["bootstrapTokens"] = []any{object{
			"token":       token,
			"description": "lets the machines of this cluster join, made by clusterawsadm",
			"ttl":         "1h0m0s",
			"usages":      []any{"signing", "authentication"},
			"groups":      []any{"system:bootstrappers:kubeadm:default-node-token"},
		}}
	}
	join, ok := docs["JoinConfiguration"].(object)
	if !ok {
		return
	}
	if join["apiVersion"] == "kubeadm.k8s.io/v1beta3" {
		join["discovery"].(object)["timeout"] = "20m0s"
	} else {
		timeouts := object{"discovery": "20m0s", "tlsBootstrap": "20m0s"}
		if role == boot.JoinControlPlane {
			timeouts["etcdAPICall"] = "10m0s"
		}
		join["timeouts"] = timeouts
	}
	if role == boot.JoinWorker {
		delete(join["nodeRegistration"].(object), "taints")
	}
}

// withoutScript replaces the script that repeats kubeadm join by the command that it
// repeats, and removes the script from the files.
func withoutScript(t *testing.T, commands []any, files []any, content func(file object) string) (_, _ []any) {
	t.Helper()
	at := slices.IndexFunc(files, func(f any) bool { return strings.HasSuffix(f.(object)["path"].(string), "/kubeadm-join.sh") })
	if at < 0 {
		return commands, files
	}
	file := files[at].(object)
	join := regexp.MustCompile(`(?m)^JOIN=\((.*)\)$`).FindStringSubmatch(content(file))
	require.NotNil(t, join)
	replaced := 0
	for i, command := range commands {
		without := regexp.MustCompile(`\S*bash `+regexp.QuoteMeta(file["path"].(string))).ReplaceAllLiteralString(command.(string), join[1])
		if without != command {
			commands[i] = without
			replaced++
		}
	}
	require.Equal(t, 1, replaced, "how often the script runs")
	return commands, slices.Delete(files, at, at+1)
}

// ignition parses an Ignition configuration: without empty values, with the contents of
// files instead of data URLs, and with files whose names differ reduced to their meaning.
func ignition(t *testing.T, content []byte) object {
	t.Helper()
	var doc object
	require.NoError(t, json.Unmarshal(content, &doc))
	out := withoutZeroes(doc).(object)
	storage := out["storage"].(object)
	for _, f := range storage["files"].([]any) {
		file := f.(object)
		contents := file["contents"].(object)
		text := dataURL(t, contents["source"].(string))
		switch file["path"] {
		case "/etc/kubeadm.yml":
			contents["source"] = documents(t, text)
		case "/etc/kubeadm.sh", "/etc/ntp.conf", "/etc/ssh/sshd_config", "/etc/coreos/update.conf":
			contents["source"] = lines(text)
		default:
			contents["source"] = text
		}
	}
	files := storage["files"].([]any)
	at := slices.IndexFunc(files, func(f any) bool { return f.(object)["path"] == "/etc/kubeadm.sh" })
	contents := files[at].(object)["contents"].(object)
	contents["source"], storage["files"] = withoutScript(t, contents["source"].([]any), files, func(f object) string {
		return f["contents"].(object)["source"].(string)
	})
	for _, u := range out["systemd"].(object)["units"].([]any) {
		unit := u.(object)
		if text, ok := unit["contents"].(string); ok {
			unit["contents"] = lines(strings.ReplaceAll(text, " = ", "="))
		}
	}
	return out
}

// withoutZeroes omits values that mean the same as absent ones.
func withoutZeroes(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range v {
			switch value := withoutZeroes(value).(type) {
			case nil:
			case object:
				if len(value) > 0 {
					out[key] = value
				}
			default:
				if value != false && value != "" && value != 0.0 {
					out[key] = value
				}
			}
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, withoutZeroes(item))
		}
		return out
	default:
		return v
	}
}

// lines are the lines of a file that are neither empty nor comments.
func lines(text string) []any {
	var out []any
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, " #")
		line = strings.TrimSpace(line)
		if line != "" && (!strings.HasPrefix(line, "#") || strings.HasPrefix(line, "#!")) {
			out = append(out, line)
		}
	}
	return out
}

func dataURL(t *testing.T, source string) string {
	t.Helper()
	if encoded, ok := strings.CutPrefix(source, "data:;base64,"); ok {
		out, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		return string(out)
	}
	escaped, ok := strings.CutPrefix(source, "data:,")
	if !ok {
		return source
	}
	out, err := url.PathUnescape(escaped)
	require.NoError(t, err)
	return out
}
