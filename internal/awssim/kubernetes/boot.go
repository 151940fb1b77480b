package kubernetes

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// boot simulates the boot of a machine: it fetches the boot data, and runs kubeadm.
func (svc *Service) boot(i *ec2.Instance) *ec2.Boot {
	at := i.Running.Add(BootTakes)
	if !i.Offline.IsZero() {
		at = later(at, svc.Now().Add(RestTakes))
	}
	if i.Late {
		at = svc.Now().Add(BootTakes)
	}
	b, err := svc.booted(i, at)
	if err != nil {
		return &ec2.Boot{At: at, Failed: err.Error()}
	}
	b.At = at
	return b
}

func (svc *Service) booted(i *ec2.Instance, at time.Time) (*ec2.Boot, error) {
	if i.Metadata.Endpoint == "disabled" { // "Instance metadata and user data", EC2 user guide: user data are read there
		return nil, errors.New("cloud-init: no data source: the metadata service does not answer")
	}
	if c := svc.eksOf(i); c != nil {
		return svc.bootEKS(i, c)
	}
	stored, err := svc.userData(i)
	if err != nil {
		return nil, err
	}
	data, err := inflated(stored)
	if err != nil {
		return nil, err
	}
	if why := misread(svc.EC2.Image(i.Image), data); why != "" {
		return nil, errors.New(why)
	}
	config, err := svc.rendered(i, data)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(config)
	if err != nil {
		return nil, err
	}
	if err := firstStage(config, files); err != nil {
		return nil, err
	}
	for _, name := range []string{"/run/kubeadm/kubeadm.yaml", "/run/kubeadm/kubeadm-join-config.yaml", "/etc/kubeadm.yml"} {
		if text, ok := files[name]; ok {
			files[bootText] = string(data) + files["/etc/kubeadm.sh"]
			b, err := svc.kubeadm(i, files, text, at)
			if b != nil {
				b.Data = stored
				keepsTokens(b, files, string(data))
				repeatsJoin(b, files, string(data))
			}
			return b, err
		}
	}
	return nil, errors.New("the user data has nothing for kubeadm to do")
}

// misread returns why an operating system does nothing with boot data: coreos-cloudinit of Flatcar has no field for commands
// (CloudConfig in config/config.go of flatcar/coreos-cloudinit), and cloud-init ignores what it does not know ("User data formats").
func misread(image *ec2.Image, data []byte) string {
	if image == nil {
		return ""
	}
	if image.Windows && !bytes.Contains(data, []byte("<powershell>")) { // "Run commands when you launch an EC2 instance with user data", EC2 user guide
		return "EC2Launch: user data without <script> or <powershell>: nothing runs kubeadm"
	}
	return misreadName(image.Name, data)
}

// isIgnition reports whether boot data are an Ignition configuration, which is JSON.
func isIgnition(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

func misreadName(image string, data []byte) string {
	ignition := isIgnition(data)
	switch flatcar := strings.Contains(image, "flatcar"); {
	case flatcar && !ignition:
		return "coreos-cloudinit: ignoring the unknown field runcmd: nothing runs kubeadm"
	case ignition && strings.Contains(image, "ubuntu"):
		return "cloud-init: Unhandled non-multipart (text/x-not-multipart) userdata"
	}
	return ""
}

// offline reports whether the script in the user data of a machine waits for a
// connection. A machine that has waited too long goes on without its boot data, and boots
// again when it has a connection.
func (svc *Service) offline(i *ec2.Instance) bool {
	if i.Waits == nil {
		waits := svc.waits(i)
		i.Waits = &waits
	}
	if *i.Waits == 0 || svc.EC2.ReachesAWS(i, "secretsmanager") {
		return false
	}
	if i.Offline.IsZero() {
		i.Offline = i.Running.Add(BootTakes)
	}
	i.Late = svc.Now().Sub(i.Offline) > *i.Waits
	return true
}

// waits returns for how long the script in the user data of a machine waits for a
// connection; 0 if it does not.
func (svc *Service) waits(i *ec2.Instance) time.Duration {
	data, err := svc.rawUserData(i)
	if err != nil || setting(data, "PROBE") == "" {
		return 0
	}
	seconds, _ := strconv.Atoi(setting(data, "WAIT"))
	return max(1, time.Duration(seconds)*time.Second)
}

// rawUserData returns the user data of an instance, not compressed.
func (svc *Service) rawUserData(i *ec2.Instance) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(i.UserData)
	if err != nil {
		return nil, err
	}
	return inflated(data)
}

// setting returns a setting of the script in user data; "" for none.
func setting(data []byte, name string) string {
	m := regexp.MustCompile(`(?m)^` + name + `='(.*)'$`).FindSubmatch(data)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// userData returns the cloud-config or the Ignition configuration of an instance,
// wherever it is stored; it may be compressed.
func (svc *Service) userData(i *ec2.Instance) ([]byte, error) {
	data, err := svc.rawUserData(i)
	if err != nil {
		return nil, err
	}
	switch {
	case setting(data, "PREFIX") != "" && !svc.EC2.ReachesAWS(i, "secretsmanager"):
		return nil, errors.New(ec2.FailedNoRoute)
	case setting(data, "PREFIX") != "" && svc.IAM.ProfileRole(i.Profile) == "":
		return nil, errors.New(ec2.FailedNoRole)
	case setting(data, "PREFIX") != "":
		return svc.fetched(setting(data, "BACKEND"), setting(data, "PREFIX"), setting(data, "CHUNKS"), setting(data, "KEEP") == "yes")
	case strings.HasPrefix(strings.TrimSpace(string(data)), "{"):
		return svc.pointed(data, svc.IAM.ProfileRole(i.Profile))
	}
	return data, nil
}

func inflated(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// fetched returns the data that the script in the user data fetches. Unless keep is set,
// it is deleted.
func (svc *Service) fetched(backend, prefix, chunks string, keep bool) ([]byte, error) {
	n, err := strconv.Atoi(chunks)
	if err != nil {
		return nil, err
	}
	var all []byte
	for k := range n {
		if backend == "ssm-parameter-store" {
			name := fmt.Sprintf("%s/%d", prefix, k)
			p := svc.SSM.Parameter(name)
			if p == nil {
				return nil, errors.New("there is no parameter " + name)
			}
			all = append(all, p.Value...)
			if !keep {
				svc.SSM.RemoveParameter(name)
			}
			continue
		}
		name := fmt.Sprintf("%s-%d", prefix, k)
		s := svc.SecretsManager.Secret(name)
		if s == nil || !s.Asked.IsZero() || len(s.Versions) == 0 {
			return nil, errors.New("there is no secret " + name)
		}
		all = append(all, s.Versions[len(s.Versions)-1].Binary...)
		if !keep {
			svc.SecretsManager.RemoveSecret(name) // the script deletes it without a recovery window
		}
	}
	if backend == "ssm-parameter-store" {
		if all, err = base64.StdEncoding.DecodeString(string(all)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pointed returns the Ignition configuration that another one refers to, or the other one. Ignition reads s3:// with the role of the machine,
// and other links as they are.
func (svc *Service) pointed(data []byte, role string) ([]byte, error) {
	var pointer struct {
		Ignition struct {
			Config struct {
				Append, Merge []struct{ Source string }
			}
		}
	}
	if err := json.Unmarshal(data, &pointer); err != nil {
		return nil, err
	}
	sources := append(pointer.Ignition.Config.Append, pointer.Ignition.Config.Merge...)
	if len(sources) == 0 {
		return data, nil
	}
	u, err := url.Parse(sources[0].Source)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "s3" {
		return svc.linked(sources[0].Source)
	}
	key := strings.TrimPrefix(u.Path, "/")
	b := svc.S3.Bucket(u.Host)
	switch {
	case b == nil || b.Objects[key] == nil:
		return nil, errors.New("there is no object " + u.Host + u.Path)
	case !svc.S3.MayRead(b, key, role):
		return nil, errors.New("ignition: failed to fetch config: AccessDenied: Access Denied, status code: 403")
	}
	return b.Objects[key].Body, nil
}

// readFiles returns the files in a cloud-config or an Ignition configuration, by path.
func readFiles(data []byte) (map[string]string, error) {
	files := map[string]string{}
	if isIgnition(data) {
		var doc struct {
			Storage struct {
				Files []struct {
					Path     string
					Contents struct{ Source string }
				}
			}
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			return nil, err
		}
		for _, f := range doc.Storage.Files {
			_, encoded, _ := strings.Cut(f.Contents.Source, ",")
			if strings.Contains(f.Contents.Source, ";base64,") {
				raw, err := base64.StdEncoding.DecodeString(encoded)
				if err != nil {
					return nil, err
				}
				files[f.Path] = string(raw)
				continue
			}
			text, err := url.PathUnescape(encoded)
			if err != nil {
				return nil, err
			}
			files[f.Path] = text
		}
		return files, nil
	}
	var doc struct {
		Files []struct{ Path, Content, Encoding string } `json:"write_files"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	for _, f := range doc.Files {
		text, err := decoded(f.Content, f.Encoding)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		files[f.Path] = text
	}
	return files, nil
}

// decoded returns what cloud-init writes for content with an encoding such as gzip+base64 (canonicalize_extraction in
// cloudinit/config/cc_write_files.py).
func decoded(content, encoding string) (string, error) {
	if regex.Of(`b64|base64`).MatchString(encoding) {
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), ""))
		if err != nil {
			return "", err
		}
		content = string(raw)
	}
	if !regex.Of(`^gz`).MatchString(encoding) {
		return content, nil
	}
	text, err := inflated([]byte(content))
	return string(text), err
}

// bootText is the name for the boot data itself, among the files in it.
const bootText = "boot data"

// kubeadmDocument has the fields of kubeadm documents that are simulated.
type kubeadmDocument struct {
	Kind, KubernetesVersion, ControlPlaneEndpoint string
	BootstrapTokens                               []bootstrapToken
	NodeRegistration                              nodeRegistration
	SkipPhases                                    []string
	LocalAPIEndpoint                              apiEndpoint
	Patches                                       struct{ Directory string }
	ControlPlane                                  *struct{ LocalAPIEndpoint apiEndpoint }
	Discovery                                     struct {
		BootstrapToken struct {
			Token, APIServerEndpoint string
			CACertHashes             []string
		}
		File *struct{ KubeConfigPath string }
	}
}

// skips reports whether kubeadm skips a phase, or the one that it is part of.
func (d *kubeadmDocument) skips(phase string) bool {
	whole, _, _ := strings.Cut(phase, "/")
	return slices.Contains(d.SkipPhases, phase) || slices.Contains(d.SkipPhases, whole)
}

type apiEndpoint struct{ AdvertiseAddress string }

// kubeadm runs kubeadm init or prepares kubeadm join.
func (svc *Service) kubeadm(i *ec2.Instance, files map[string]string, text string, at time.Time) (*ec2.Boot, error) {
	b := &ec2.Boot{Version: versionOf(svc.EC2.Image(i.Image))}
	ca := files["/etc/kubernetes/pki/ca.crt"]
	own := func(address string) bool { return svc.hasAddress(i, address) }
	for part := range strings.SplitSeq(text, "\n---\n") {
		var doc kubeadmDocument
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(part, "---\n")), &doc); err != nil {
			return nil, err
		}
		doc.NodeRegistration.unquote()
		doc.NodeRegistration.substitute(files, i, svc.address(i, ""))
		switch doc.Kind {
		case "ClusterConfiguration":
			b.Version, b.ControlPlane = doc.KubernetesVersion, true
			b.Host, _, _ = strings.Cut(doc.ControlPlaneEndpoint, ":")
		case "InitConfiguration":
			if err := svc.advertise(i, b, doc.LocalAPIEndpoint); err != nil {
				return nil, err
			}
			if err := doc.NodeRegistration.apply(b); err != nil {
				return nil, err
			}
			if why := cmp.Or(
				takenRefused(files, "init", true, doc.NodeRegistration.IgnorePreflightErrors),
				madeRefused(files, true),
				skipsRefused(doc.SkipPhases, "init"),
				svc.preflight(i, doc.NodeRegistration.IgnorePreflightErrors),
				doc.NodeRegistration.nameRefused(files),
				doc.NodeRegistration.refused(b.Version, machine{true, own}),
				svc.overReserved(i, doc.NodeRegistration.KubeletExtraArgs),
				tokensRefused(doc.BootstrapTokens),
				patchesRefused(doc.Patches.Directory, files, b.Version, machine{true, own}),
				fileContentRefused("kubelet", b.Version, doc.NodeRegistration.KubeletExtraArgs, nil, files),
			); why != "" {
				return nil, errors.New(why)
			}
			b.Named = doc.NodeRegistration.Name
			defer func() { svc.initialize(i, b, files, text, doc, at) }()
		case "JoinConfiguration":
			t := doc.Discovery.BootstrapToken
			b.ControlPlane = doc.ControlPlane != nil
			if err := doc.NodeRegistration.apply(b); err != nil {
				return nil, err
			}
			b.Named = doc.NodeRegistration.Name
			if doc.Discovery.File != nil && t.Token != "" { // ValidateDiscovery in cmd/kubeadm/app/apis/kubeadm/validation
				return nil, errors.New("kubeadm: discovery: Invalid value: bootstrapToken and file cannot both be set")
			}
			if why := cmp.Or(
				takenRefused(files, "join", b.ControlPlane, doc.NodeRegistration.IgnorePreflightErrors),
				madeRefused(files, b.ControlPlane),
				skipsRefused(doc.SkipPhases, "join"),
				doc.NodeRegistration.nameRefused(files),
				doc.NodeRegistration.refused(b.Version, machine{b.ControlPlane, own}),
				svc.overReserved(i, doc.NodeRegistration.KubeletExtraArgs),
				patchesRefused(doc.Patches.Directory, files, b.Version, machine{b.ControlPlane, own}),
				fileContentRefused("kubelet", b.Version, doc.NodeRegistration.KubeletExtraArgs, nil, files),
			); why != "" {
				return nil, errors.New(why)
			}
			if doc.ControlPlane != nil {
				if why := svc.preflight(i, doc.NodeRegistration.IgnorePreflightErrors); why != "" {
					return nil, errors.New(why)
				}
			}
			b.Token, b.Hashes = t.Token, t.CACertHashes
			b.Host, _, _ = strings.Cut(t.APIServerEndpoint, ":")
			if doc.ControlPlane != nil {
				if err := svc.advertise(i, b, doc.ControlPlane.LocalAPIEndpoint); err != nil {
					return nil, err
				}
			}
		}
	}
	if b.ControlPlane && ca == "" {
		return nil, errors.New("a control plane needs the cluster's CA")
	}
	return b, nil
}

// advertise sets the address at which the API server and etcd of a machine are reached: one of the machine's own.
func (svc *Service) advertise(i *ec2.Instance, b *ec2.Boot, endpoint apiEndpoint) error {
	b.Advertised = svc.address(i, endpoint.AdvertiseAddress)
	if !svc.hasAddress(i, b.Advertised) {
		return fmt.Errorf("etcd: listen tcp %s: bind: cannot assign requested address", b.Advertised)
	}
	return nil
}

// versionOf returns the Kubernetes version of an image.
func versionOf(i *ec2.Image) string {
	if i == nil {
		return ""
	}
	return regex.Of(`v?\d+\.\d+\.\d+`).FindString(i.Name)
}

// initialize simulates kubeadm init. A second one with the same endpoint would be another
// cluster, and is rejected as not simulated.
func (svc *Service) initialize(i *ec2.Instance, b *ec2.Boot, files map[string]string, text string, doc kubeadmDocument, at time.Time) {
	if svc.clusters[b.Host] != nil && svc.hasData(b.Host) {
		b.Failed = "there is a cluster at " + b.Host + " already: a second kubeadm init would tear it apart"
		return
	}
	if !svc.ELB.Resolves(b.Host) { // UploadConfiguration uses the address in admin.conf
		b.Failed = fmt.Sprintf("kubeadm init: could not create ConfigMap kubeadm-config: dial tcp: lookup %s: no such host", b.Host)
		return
	}
	config, _, _ := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	config, err := uploaded(config)
	if err != nil {
		b.Failed = "kubeadm init: " + err.Error()
		return
	}
	if b.Failed = cmp.Or(
		configRefused(config, b.Version, files),
		externalEtcdOf(config).refused(files),
		etcdFolderRefused(files, etcdFolder(config), doc.NodeRegistration.IgnorePreflightErrors),
		authorityRefused(files["/etc/kubernetes/pki/ca.crt"]),
		serverRefuses(config, b.Advertised),
	); b.Failed != "" {
		return
	}
	proxy, dns, err := systemImages(config, b.Version)
	if err != nil {
		b.Failed = "kubeadm init: " + err.Error()
		return
	}
	c, err := svc.restored(files, files[bootText], doc.NodeRegistration.IgnorePreflightErrors, b.Version, at.Add(InitTakes))
	if err != nil {
		b.Failed = err.Error()
		return
	}
	if c == nil {
		c = kubesim.New(b.Version, at.Add(InitTakes))
	} else {
		svc.loseGone(c)
	}
	c.CA, c.ExternalEtcd = []byte(files["/etc/kubernetes/pki/ca.crt"]), externalEtcdOf(config) != nil
	svc.clusters[b.Host] = c
	c.Put(c.Up, kubesim.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": kubesim.Object{"name": "kubeadm-config", "namespace": "kube-system"},
		"data": kubesim.Object{"ClusterConfiguration": config},
	})
	if !doc.skips("bootstrap-token") { // cmd/kubeadm/app/phases/bootstraptoken/clusterinfo
		c.Put(c.Up, kubesim.Object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": kubesim.Object{"name": "cluster-info", "namespace": "kube-public"},
		})
	}
	if !doc.skips("addon/kube-proxy") {
		putConfig(c, "kube-proxy")
		putSystem(c, c.Up, proxy)
	}
	if !doc.skips("addon/coredns") {
		putConfig(c, "coredns")
		putSystem(c, c.Up, dns)
	}
	for _, t := range doc.BootstrapTokens {
		id, secret, _ := strings.Cut(t.Token, ".")
		data := kubesim.Object{
			"token-id":                       id,
			"token-secret":                   secret,
			"usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing":        "true",
			"description":                    t.Description,
		}
		if ttl, err := time.ParseDuration(t.TTL); err == nil && ttl > 0 {
			data["expiration"] = c.Up.Add(ttl).UTC().Format(time.RFC3339)
		}
		for k, v := range data {
			data[k] = base64.StdEncoding.EncodeToString([]byte(v.(string)))
		}
		c.Put(c.Up, kubesim.Object{
			"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
			"metadata": kubesim.Object{"name": "bootstrap-token-" + id, "namespace": "kube-system"}, "data": data,
		})
	}
	b.Joined, b.Node = c.Up, svc.nodeName(i)
	c.TwoTags = c.TwoTags || b.ControlPlane && hasTwoTags(i)
	c.Join(c.Up, svc.machineOf(i, b))
}
