package boot

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Booted is the bootstrap configuration of a machine, read back from what it booted with.
type Booted struct {
	Spec    bootstrapv1.KubeadmConfigSpec // without ClusterConfiguration, keys and tokens
	LeftOut []string                      // what Spec lacks, and why: "file /etc/x, which may contain a secret"

	secret func(string) bool // reports whether a text may contain a secret
}

// ParseBooted reads the user data of a machine, with all that it includes: a cloud-config, a
// message that contains one, or an Ignition configuration. secret reports whether a text may
// contain a secret: then it is left out.
func ParseBooted(userData []byte, secret func(string) bool) (*Booted, error) {
	b := &Booted{secret: secret}
	if isIgnition(userData) {
		return b, b.readIgnition(userData)
	}
	text, err := cloudConfigIn(userData)
	if err != nil {
		return nil, err
	}
	doc, err := readConfig(text)
	if err != nil {
		return nil, err
	}
	return b, b.read(doc)
}

func (b *Booted) read(doc *bootedConfig) error {
	kubeadmText := ""
	doc.Files = slices.DeleteFunc(doc.Files, func(f bootedFile) bool {
		switch f.Path {
		case initConfigPath, joinConfigPath:
			kubeadmText = f.Content.Value
			return true
		case joinScriptPath:
			b.readVerbosity(f.Content.Value)
		}
		return isOwnFile(f.Path)
	})
	if kubeadmText == "" {
		return errors.New("the user data has nothing for kubeadm to do")
	}
	b.readSections(doc)
	b.Spec.BootCommands = b.commands(doc.Boot)
	before, after, ok := b.cutCommands(doc.Run)
	if !ok {
		return errors.New("the user data does not run kubeadm as Cluster API does")
	}
	b.Spec.PreKubeadmCommands, b.Spec.PostKubeadmCommands = b.commands(before), b.commands(after)
	return b.kubeadm(kubeadmText)
}

// isOwnFile reports whether a file is made by this program or by Cluster API.
func isOwnFile(path string) bool {
	return strings.HasPrefix(path, runDir+"/") || strings.HasPrefix(path, "/etc/kubernetes/pki/") ||
		path == keepTokenScript || strings.HasPrefix(path, keepTokenUnits+".")
}

// readVerbosity reads the level of kubeadm's log from a command line.
func (b *Booted) readVerbosity(command string) {
	if m := regex.Of(`kubeadm (?:init|join) --config \S+ --v (\d+)`).FindStringSubmatch(command); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 32); err == nil {
			b.Spec.Verbosity = new(int32(n))
		}
	}
}

// cutCommands returns the commands before and after that which runs kubeadm.
func (b *Booted) cutCommands(all []any) (before, after []any, ok bool) {
	at := slices.IndexFunc(all, func(c any) bool { text, _ := c.(string); return strings.HasSuffix(text, "&& "+markSuccess) })
	if at < 0 {
		return nil, nil, false
	}
	b.readVerbosity(fmt.Sprint(all[at]))
	after = all[at+1:]
	if len(after) > 0 && after[0] == keepTokenCommand {
		after = after[1:]
	}
	return all[:at], after, true
}

func (b *Booted) commands(all []any) (out []string) {
	for _, c := range all {
		text, ok := c.(string)
		if !ok || b.secret(text) {
			b.LeftOut = append(b.LeftOut, "a command, which may contain a secret")
			continue
		}
		out = append(out, text)
	}
	return out
}

// kubeadm reads how kubeadm registers the node. Other fields depend on the machine, or are in
// the cluster.
func (b *Booted) kubeadm(text string) error {
	for part := range strings.SplitSeq("\n"+text, "\n---\n") {
		switch {
		case strings.Contains(part, "kind: InitConfiguration"):
			c, err := kubeadm.UnmarshalInitConfiguration(part)
			if err != nil {
				return errors.New("the InitConfiguration of kubeadm cannot be read") // the error may quote the token
			}
			b.Spec.InitConfiguration = bootstrapv1.InitConfiguration{NodeRegistration: registrationOf(c.NodeRegistration), Patches: c.Patches, SkipPhases: c.SkipPhases}
		case strings.Contains(part, "kind: JoinConfiguration"):
			c, err := kubeadm.UnmarshalJoinConfiguration(part)
			if err != nil {
				return errors.New("the JoinConfiguration of kubeadm cannot be read")
			}
			b.Spec.JoinConfiguration = bootstrapv1.JoinConfiguration{
				NodeRegistration: registrationOf(c.NodeRegistration),
				Patches:          c.Patches,
				SkipPhases:       c.SkipPhases,
				CACertPath:       c.CACertPath,
				Timeouts:         timeoutsOf(c.Timeouts),
			}
		}
	}
	return nil
}

// timeoutsOf removes the timeouts that defaultTimeouts sets.
func timeoutsOf(t bootstrapv1.Timeouts) bootstrapv1.Timeouts {
	var defaults bootstrapv1.Timeouts
	defaultTimeouts(JoinControlPlane, &defaults)
	for _, x := range []struct{ have, byDefault **int32 }{
		{&t.DiscoverySeconds, &defaults.DiscoverySeconds},
		{&t.TLSBootstrapSeconds, &defaults.TLSBootstrapSeconds},
		{&t.EtcdAPICallSeconds, &defaults.EtcdAPICallSeconds},
	} {
		if *x.have != nil && **x.have == **x.byDefault {
			*x.have = nil
		}
	}
	return t
}

// registrationOf removes what the controllers of Cluster API set.
func registrationOf(r bootstrapv1.NodeRegistrationOptions) bootstrapv1.NodeRegistrationOptions {
	if r.Taints != nil {
		own := slices.DeleteFunc(slices.Clone(*r.Taints), func(t corev1.Taint) bool { return t.Key == "node.cluster.x-k8s.io/uninitialized" })
		if r.Taints = &own; len(own) == 0 {
			r.Taints = nil
		}
	}
	omit(&r.ImagePullPolicy, "IfNotPresent")
	return r
}

// cloudConfigIn returns the cloud-config in user data: all of it, or a part of a MIME message.
func cloudConfigIn(data []byte) ([]byte, error) {
	if isCloudConfig(data) {
		return data, nil
	}
	parts, err := partsOf(data)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if isCloudConfig(p.content) {
			return p.content, nil
		}
	}
	return nil, errors.New("the user data has no cloud-config of Cluster API")
}

// partsOf returns the parts of a MIME message, decoded.
func partsOf(data []byte) (all []part, err error) {
	text := textproto.NewReader(bufio.NewReader(bytes.NewReader(data)))
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return nil, errors.New("the user data is not a cloud-config of Cluster API")
	}
	_, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read the type of the user data: %w", err)
	}
	for parts := multipart.NewReader(text.R, params["boundary"]); ; {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, errors.New("the user data is not a complete MIME message")
		}
		content, err := io.ReadAll(p)
		if err == nil && strings.EqualFold(p.Header.Get("Content-Transfer-Encoding"), "base64") {
			content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(content)), ""))
		}
		if err != nil {
			return nil, fmt.Errorf("read the user data: %w", err)
		}
		all = append(all, part{p.Header, content})
	}
}

// isCloudConfig reports whether a text begins as a cloud-config, or as a template of one.
func isCloudConfig(text []byte) bool {
	return bytes.HasPrefix(text, []byte("#cloud-config")) || bytes.HasPrefix(text, []byte("## template: jinja\n#cloud-config"))
}
