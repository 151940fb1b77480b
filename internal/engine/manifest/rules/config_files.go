package rules

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/configfile"
)

// checkConfigFile checks the contents of the file that an argument of a component names. onHost converts a path in the component's container to
// the path on the machine.
func (c *checks) checkConfigFile(
	o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, f configfile.File, named string, onHost func(string) string,
) {
	text, at := c.textOf(spec, onHost(named))
	if at == "" {
		return
	}
	other := func(name string) (text, at string) {
		if !path.IsAbs(name) {
			name = path.Join(path.Dir(named), name)
		}
		return c.textOf(spec, onHost(name))
	}
	f.Text = text
	f.Read = func(name string) (string, bool) {
		text, at := other(name)
		return text, at != ""
	}
	for _, found := range configfile.Check(f) {
		at := at
		if found.Path != "" {
			_, at = other(found.Path)
		}
		what := fmt.Sprintf("as %s, %s", f.Argument, found.What)
		p, list := o.Problem(prefix+at, f.Component+" does not start: "+what, found.Fix), &c.problems
		if found.Ignored {
			p, list = o.Problem(prefix+at, f.Component+": "+what, found.Fix), &c.warnings
		}
		if !slices.Contains(*list, p) { // the kubelet of the first machine, and those of others, may have the same file
			*list = append(*list, p)
		}
	}
}

// textOf returns the contents of a file on the machine, and the field of the manifest with the contents. Both are "" if the contents are not
// certain: several entries of files write the file, a command mentions it, or it contains a template that cloud-init evaluates.
func (c *checks) textOf(spec *bootstrapv1.KubeadmConfigSpec, file string) (text, at string) {
	file = path.Clean(file)
	for _, command := range slices.Concat(spec.BootCommands, spec.PreKubeadmCommands) {
		if strings.Contains(command, path.Base(file)) {
			return "", ""
		}
	}
	for i, f := range spec.Files {
		if path.Clean(f.Path) != file {
			continue
		}
		if at != "" || f.Append != nil && *f.Append {
			return "", ""
		}
		at = fmt.Sprintf(".files[%d].content", i)
		raw, ok := []byte(f.Content), true
		if f.ContentFrom.IsDefined() {
			at = fmt.Sprintf(".files[%d].contentFrom", i)
			secret := c.cluster.Secrets[f.ContentFrom.Secret.Name]
			if secret == nil {
				return "", ""
			}
			raw, ok = secret.Data[f.ContentFrom.Secret.Key]
		}
		raw, err := decodedContent(raw, f.Encoding)
		if text = string(raw); !ok || err != nil || strings.Contains(text, "{{") {
			return "", ""
		}
	}
	return text, at
}

// decodedContent decodes the content of a file as cloud-init does before it writes the file.
func decodedContent(content []byte, encoding bootstrapv1.Encoding) ([]byte, error) {
	if strings.Contains(string(encoding), "base64") {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(content)), ""))
		if err != nil {
			return nil, err
		}
		content = raw
	}
	if !strings.Contains(string(encoding), "gzip") {
		return content, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, largestFile))
}
