package boot

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// Backend names the place where the bootstrap data of a machine is stored.
type Backend string

// The backends. The first two are values of
// AWSMachine.spec.cloudInit.secureSecretsBackend.
const (
	SecretsManager Backend = "secrets-manager"
	ParameterStore Backend = "ssm-parameter-store"
	ObjectStore    Backend = "s3"        // Ignition only
	UserData       Backend = "user-data" // in the RunInstances call or the launch template
)

// Chunk sizes, as in CAPA: smaller than the maximum size of a secret (64 KB) and of a
// standard parameter (4,096 characters).
const (
	secretChunk    = 7000
	parameterChunk = 4000
)

// MaxUserData is EC2's limit for user data in bytes, before base64 encoding.
const MaxUserData = 16 * 1024

// Chunks compresses data and splits it for Secrets Manager (SecretBinary, 7,000 bytes
// each) or Parameter Store (base64, 4,000 characters each).
func Chunks(b Backend, data []byte) ([][]byte, error) {
	compressed, err := compress(data)
	if err != nil {
		return nil, err
	}
	switch b {
	case SecretsManager:
		return slices.Collect(slices.Chunk(compressed, secretChunk)), nil
	case ParameterStore:
		encoded := base64.StdEncoding.AppendEncode(nil, compressed)
		return slices.Collect(slices.Chunk(encoded, parameterChunk)), nil
	case ObjectStore, UserData:
	}
	return nil, fmt.Errorf("the backend %s does not take chunks", b)
}

// compress returns a gzip stream without a timestamp.
func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// Prefix returns the prefix of the chunk names of a machine: the wanted one, or
// aws.cluster.x-k8s.io/<id>, which the IAM policies of nodes permit. Parameter Store
// reserves names that begin with aws or ssm, and requires a leading slash.
func Prefix(b Backend, wanted, id string) string {
	prefix := wanted
	if prefix == "" {
		prefix = path.Join("aws.cluster.x-k8s.io", id)
	}
	if b != ParameterStore {
		return prefix
	}
	prefix = regexp.MustCompile(`(?i)^/?(aws|ssm)\.?`).ReplaceAllString(prefix, "")
	if !strings.HasPrefix(prefix, "/") {
		prefix = "/" + prefix
	}
	return prefix
}

// ChunkName returns the name of chunk i, counted from 0.
func ChunkName(b Backend, prefix string, i int) string {
	if b == ParameterStore {
		return prefix + "/" + strconv.Itoa(i)
	}
	return prefix + "-" + strconv.Itoa(i)
}

// Fetch describes from where a machine fetches its bootstrap data.
type Fetch struct {
	Backend  Backend // SecretsManager or ParameterStore
	Prefix   string  // from Prefix
	Chunks   int     // number of chunks
	Region   string
	Endpoint string // URL of the service; empty for that of AWS

	// Probe is the host and port of the service, if the machine may boot before it has a
	// route to it: the script waits for a connection, for up to NetworkWait.
	Probe string

	// Keep leaves the chunks in AWS, for machines that share them and may fetch them at
	// any time. Otherwise the machine deletes its chunks.
	Keep bool
}

// NetworkWait is how long a machine waits for a connection before it tries without.
const NetworkWait = 15 * time.Minute

// WaitsForNetwork and BootsAgain are in the lines that the script writes to the console
// while it waits for a connection, and when it leaves that to another unit.
const (
	WaitsForNetwork = "waiting for a connection to"
	BootsAgain      = "boots again when it has a connection to"
)

// NotApplied is in the line that the script writes to the console if cloud-init has not
// applied what was fetched.
const NotApplied = "fetched, but cloud-init has not applied it"

//go:embed fetch-userdata.sh
var fetchScript string

// mimeBoundary separates the two parts. It is constant, so that the user data of a
// machine does not change. No line of the parts begins with it.
const mimeBoundary = "clusterawsadm-user-data"

// includedFile is the file in which the script stores the data. Images for Cluster API know this
// path.
const includedFile = "file:///etc/secret-userdata.txt\n"

// Boothook returns user data for a machine whose bootstrap data is in a backend: a MIME
// message with a script that fetches the data, and an include of the result.
func Boothook(f Fetch) ([]byte, error) {
	script, err := f.script()
	if err != nil {
		return nil, err
	}
	return message(mimeBoundary, []part{
		{header: textproto.MIMEHeader{"Content-Type": {"text/cloud-boothook"}}, content: []byte("#cloud-boothook\n" + script)},
		{header: textproto.MIMEHeader{"Content-Type": {"text/x-include-url"}}, content: []byte(includedFile)},
	})
}

// part is one part of a MIME message.
type part struct {
	header  textproto.MIMEHeader
	content []byte
}

// message joins parts. No line of them may begin with the boundary.
func message(boundary string, parts []part) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	w := multipart.NewWriter(&out)
	if err := w.SetBoundary(boundary); err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	for _, part := range parts {
		p, err := w.CreatePart(part.header)
		if err != nil {
			return nil, fmt.Errorf("user data: %w", err)
		}
		if _, err := p.Write(part.content); err != nil {
			return nil, fmt.Errorf("user data: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	return out.Bytes(), nil
}

// script returns the shell script, with its settings at the beginning.
func (f Fetch) script() (string, error) {
	if f.Backend != SecretsManager && f.Backend != ParameterStore {
		return "", fmt.Errorf("a machine cannot fetch its bootstrap data from the backend %s", f.Backend)
	}
	if f.Chunks < 1 {
		return "", fmt.Errorf("%d chunks of bootstrap data", f.Chunks)
	}
	keep := "no"
	if f.Keep {
		keep = "yes"
	}
	settings := []struct{ name, value string }{
		{"BACKEND", string(f.Backend)},
		{"PREFIX", f.Prefix},
		{"CHUNKS", strconv.Itoa(f.Chunks)},
		{"REGION", f.Region},
		{"ENDPOINT", f.Endpoint},
		{"KEEP", keep},
		{"PROBE", f.Probe},
		{"WAIT", strconv.Itoa(int(NetworkWait / time.Second))},
	}
	out := "#!/bin/bash\n"
	for _, s := range settings {
		out += s.name + "=" + shellQuote(s.value) + "\n"
	}
	return out + fetchScript, nil
}

// shellQuote quotes a word for the shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Fit returns the user data for EC2. It is compressed if uncompressedUserData is false,
// or unset and the data would exceed the limit. Ignition cannot read compressed user
// data.
func Fit(format string, data []byte, uncompressed *bool) ([]byte, error) {
	if format == Ignition {
		if uncompressed != nil && !*uncompressed {
			return nil, errors.New("uncompressedUserData is false, but Ignition cannot read compressed user data")
		}
		return data, fits(data, "use ignition.storageType ClusterObjectStore")
	}
	plain := uncompressed == nil || *uncompressed
	if plain && len(data) <= MaxUserData {
		return data, nil
	}
	if uncompressed != nil && *uncompressed {
		return nil, fits(data, "remove uncompressedUserData or set it to false, or do not set cloudInit.insecureSkipSecretsManager")
	}
	compressed, err := compress(data)
	if err != nil {
		return nil, err
	}
	return compressed, fits(compressed, "even when compressed: do not set cloudInit.insecureSkipSecretsManager, or reduce the files in kubeadmConfigSpec")
}

// fits returns an error with the advice if the data exceeds EC2's limit.
func fits(data []byte, advice string) error {
	if over := len(data) - MaxUserData; over > 0 {
		return fmt.Errorf("user data is %d bytes larger than the %d that EC2 allows: %s", over, MaxUserData, advice)
	}
	return nil
}

// IgnitionPointer returns a small configuration that makes Ignition load the bootstrap
// data from source, an s3:// or https:// URL. spec is AWSMachine.spec.ignition; nil means
// the defaults.
func IgnitionPointer(spec *infrav1.Ignition, source string) ([]byte, error) {
	if spec == nil {
		spec = &infrav1.Ignition{}
	}
	wanted := spec.Version
	if wanted == "" {
		wanted = infrav1.DefaultIgnitionVersion
	}
	version, err := semver.ParseTolerant(wanted)
	if err != nil {
		return nil, fmt.Errorf("ignition.version %q: %w", wanted, err)
	}
	meta := ignMeta{Version: version.String()}
	switch version.Major {
	case 2:
		if spec.Proxy != nil || spec.TLS != nil {
			return nil, fmt.Errorf("ignition.proxy and ignition.tls need version 3.1 or later, not %s", wanted)
		}
		meta.Config.Append = []ignSource{{Source: source}}
	case 3:
		meta.Config.Merge = []ignSource{{Source: source}}
		addProxy(&meta, spec)
	default:
		return nil, fmt.Errorf("ignition.version %q is not supported", wanted)
	}
	out, err := json.Marshal(ignConfig{Ignition: meta})
	if err != nil {
		return nil, fmt.Errorf("encode the Ignition configuration: %w", err)
	}
	return out, nil
}

// addProxy sets how Ignition reaches the source: proxies and additional certificate
// authorities.
func addProxy(meta *ignMeta, spec *infrav1.Ignition) {
	if p := spec.Proxy; p != nil {
		meta.Proxy = &ignProxy{}
		if p.HTTPProxy != nil {
			meta.Proxy.HTTPProxy = *p.HTTPProxy
		}
		if p.HTTPSProxy != nil {
			meta.Proxy.HTTPSProxy = *p.HTTPSProxy
		}
		for _, host := range p.NoProxy {
			meta.Proxy.NoProxy = append(meta.Proxy.NoProxy, string(host))
		}
	}
	if t := spec.TLS; t != nil {
		for _, ca := range t.CASources {
			meta.Security.TLS.CertificateAuthorities = append(meta.Security.TLS.CertificateAuthorities, ignSource{Source: string(ca)})
		}
	}
}
