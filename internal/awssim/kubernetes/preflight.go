package kubernetes

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// What kubeadm requires of a machine of the control plane
// (cmd/kubeadm/app/constants/constants.go: ControlPlaneNumCPU, ControlPlaneMem).
const (
	kubeadmCPUs   = 2
	kubeadmMemory = 1700
)

// preflight returns the first check before "kubeadm init" or "kubeadm join --control-plane" that a machine
// does not pass (cmd/kubeadm/app/preflight/checks.go); "" if it passes all.
func (svc *Service) preflight(i *ec2.Instance, ignored []string) string {
	cpus, memory := svc.EC2.SizeOf(i.Type)
	skips := func(check string) bool { return slices.Contains(ignored, check) || slices.Contains(ignored, "all") }
	switch {
	case cpus > 0 && cpus < kubeadmCPUs && !skips("NumCPU"):
		return fmt.Sprintf("[ERROR NumCPU]: the number of available CPUs %d is less than the required %d", cpus, kubeadmCPUs)
	case memory > 0 && memory < kubeadmMemory && !skips("Mem"):
		return fmt.Sprintf("[ERROR Mem]: the system RAM (%d MB) is less than the minimum %d MB", memory, kubeadmMemory)
	}
	return ""
}

// takenRefused returns the error of kubeadm's preflight checks if a machine already has a file that kubeadm writes; "" if it has none. The checks
// are InitNodeChecks and JoinNodeChecks in cmd/kubeadm/app/preflight/checks.go of Kubernetes 1.34.
func takenRefused(files map[string]string, command string, plane bool, ignored []string) string {
	taken := []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf"}
	switch {
	case command == "init":
		taken = nil
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
			taken = append(taken, "/etc/kubernetes/manifests/"+component+".yaml")
		}
	case !plane:
		taken = append(taken, "/etc/kubernetes/pki/ca.crt")
	}
	for _, file := range taken {
		check := "FileAvailable-" + strings.ReplaceAll(file, "/", "-")
		if _, is := files[file]; is && !slices.Contains(ignored, check) && !slices.Contains(ignored, "all") {
			return fmt.Sprintf("[ERROR %s]: %s already exists", check, file)
		}
	}
	return ""
}

// skipsRefused returns why kubeadm fails if it leaves out some phases and nothing else does their work ("kubeadm init phase" in the
// documentation of Kubernetes). The first machine is refused also for phases that only later machines need.
func skipsRefused(phases []string, command string) string {
	needed := map[string]string{
		"init": "certs kubeconfig etcd control-plane kubelet-start upload-config bootstrap-token",
		"join": "kubelet-start control-plane-prepare etcd-join",
	}
	const dispensable = "ca etcd-ca front-proxy-ca sa super-admin download-certs" // what they make is on the machine already, or unused
	for _, phase := range phases {
		of, part, _ := strings.Cut(phase, "/")
		if slices.Contains(strings.Fields(needed[command]), of) && !slices.Contains(strings.Fields(dispensable), part) {
			return fmt.Sprintf("kubeadm %s: what the phase %s does was not done", command, phase)
		}
	}
	return ""
}

// configRefused returns what kubeadm finds wrong in a ClusterConfiguration
// (cmd/kubeadm/app/apis/kubeadm/validation), or why a component does not start with it and the files of the machine.
func configRefused(text, version string, files map[string]string) string {
	var doc struct {
		CertificatesDir   string
		FeatureGates      map[string]bool
		Networking        struct{ DNSDomain, ServiceSubnet string }
		APIServer         staticPod
		ControllerManager staticPod
		Scheduler         staticPod
		Etcd              struct {
			External *struct{}
			Local    struct {
				ExtraArgs         any
				ExtraEnvs         []variable
				ImageTag, DataDir string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "kubeadm: " + err.Error()
	}
	if doc.CertificatesDir != "" && !path.IsAbs(doc.CertificatesDir) {
		return fmt.Sprintf("kubeadm: certificatesDir: Invalid value: %q: path is not absolute", doc.CertificatesDir)
	}
	for gate := range doc.FeatureGates {
		if minor := minorOf(
			version,
		); minor > 0 &&
			!slices.ContainsFunc(kubeadmGates(), func(c change) bool { return c.name == gate && minor >= c.first && minor <= c.last }) {
			return fmt.Sprintf("kubeadm: featureGates: %s is not a valid feature name", gate)
		}
	}
	if d := doc.Networking.DNSDomain; d != "" && !regex.Of(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).MatchString(d) {
		return fmt.Sprintf("kubeadm: networking.dnsDomain: Invalid value: %q", d)
	}
	keys := cmp.Or(doc.CertificatesDir, "/etc/kubernetes/pki")
	for _, c := range []struct {
		name string
		staticPod
	}{{"kube-apiserver", doc.APIServer}, {"kube-controller-manager", doc.ControllerManager}, {"kube-scheduler", doc.Scheduler}} {
		if why := componentRefuses(c.name, version, c.ExtraArgs); why != "" {
			return why
		}
		if why := podRefused(c.name, keys, c.ExtraVolumes, c.ExtraEnvs); why != "" {
			return why
		}
		if why := fileRefused(c.name, keys, c.ExtraArgs, c.ExtraVolumes); why != "" {
			return c.name + ": " + why
		}
		if why := fileContentRefused(c.name, version, c.ExtraArgs, c.ExtraVolumes, files); why != "" {
			return why
		}
	}
	if why := cmp.Or(
		replacedServer(doc.APIServer.ExtraArgs, doc.Networking.ServiceSubnet, doc.Etcd.External == nil),
		unserved(argument(doc.APIServer.ExtraArgs, "runtime-config")),
		exchanged(doc.APIServer.ExtraArgs, doc.ControllerManager.ExtraArgs, keys, doc.Etcd.External == nil, files),
		idle(doc.ControllerManager.ExtraArgs),
		boundElsewhere("kube-controller-manager", doc.ControllerManager.ExtraArgs), boundElsewhere("kube-scheduler", doc.Scheduler.ExtraArgs),
	); why != "" {
		return why
	}
	local := doc.Etcd.Local
	if why := podRefused("etcd", keys, nil, local.ExtraEnvs); why != "" {
		return why
	}
	if why := etcdVariablesRefused(local.ExtraEnvs, local.ExtraArgs); why != "" {
		return why
	}
	return etcdRefused(local.ExtraArgs, local.ImageTag, version, keys, cmp.Or(local.DataDir, "/var/lib/etcd"))
}

// staticPod has the fields of a component of the control plane in a ClusterConfiguration that are simulated.
type staticPod struct {
	ExtraArgs    any
	ExtraVolumes []hostVolume
	ExtraEnvs    []variable
}

// refused returns what kubeadm or the kubelet of a machine finds wrong in the registration of a Node.
func (r nodeRegistration) refused(version string, m machine) string {
	if r.CRISocket != "" {
		socket := r.CRISocket
		if path.IsAbs(socket) {
			socket = "unix://" + socket
		}
		if u, err := url.Parse(socket); err != nil || u.Scheme != "unix" {
			return fmt.Sprintf("kubeadm: criSocket: Invalid value: %q: only URL scheme \"unix\" is supported", r.CRISocket)
		}
		if strings.Contains(socket, "dockershim") && minorOf(version) > 23 {
			return "[ERROR CRI]: container runtime is not running: dial unix /var/run/dockershim.sock: connect: no such file or directory"
		}
	}
	if strings.HasSuffix(r.CRISocket, "/docker.sock") && minorOf(version) > 23 {
		return "[ERROR CRI]: container runtime is not running: validate CRI v1 runtime API: rpc error: code = Unavailable"
	}
	if !regex.Of(`^(?i:[-a-z0-9.]|\{\{[^}]*\}\}|\$[{(][^})]*[})])*$`).MatchString(r.Name) {
		return fmt.Sprintf("kubeadm: nodeRegistration.name: Invalid value: %q", r.Name)
	}
	if len(r.IgnorePreflightErrors) > 1 && slices.Contains(r.IgnorePreflightErrors, "all") {
		return "kubeadm: ignore-preflight-errors: Invalid value: don't specify individual checks if 'all' is used"
	}
	if r.Taints != nil {
		for _, x := range *r.Taints {
			taint, _ := x.(map[string]any)
			if effect := fmt.Sprint(taint["effect"]); !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
				return fmt.Sprintf("kubelet: Node is invalid: spec.taints.effect: Unsupported value: %q", effect)
			}
		}
	}
	if why := componentRefuses("kubelet", version, r.KubeletExtraArgs); why != "" {
		return why
	}
	return replacedKubelet(r.KubeletExtraArgs, r.Name, m)
}

// authorityRefused returns why kubeadm does not use a CA that it finds
// (cmd/kubeadm/app/phases/certs: "certificate is not a certificate authority").
func authorityRefused(ca string) string {
	block, _ := pem.Decode([]byte(ca))
	if block == nil {
		return "kubeadm: failure loading ca certificate: no certificate in PEM format"
	}
	c, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "kubeadm: failure loading ca certificate: " + err.Error()
	case !c.IsCA:
		return "kubeadm: ca certificate is not a certificate authority"
	}
	return ""
}

// madeRefused returns the error of kubeadm if a machine of the control plane has a certificate or a kubeconfig that kubeadm makes, and that it cannot
// use; "" if not (writeCertificateFilesIfNotExist in cmd/kubeadm/app/phases/certs/certs.go, validateKubeConfig in
// cmd/kubeadm/app/phases/kubeconfig/kubeconfig.go of Kubernetes v1.34.2).
func madeRefused(files map[string]string, plane bool) string {
	if !plane {
		return ""
	}
	const pki = "/etc/kubernetes/pki/"
	for _, x := range []struct{ name, ca string }{
		{"apiserver", "ca"},
		{"apiserver-kubelet-client", "ca"},
		{"front-proxy-client", "front-proxy-ca"},
		{"apiserver-etcd-client", "etcd/ca"},
		{"etcd/server", "etcd/ca"},
		{"etcd/peer", "etcd/ca"},
		{"etcd/healthcheck-client", "etcd/ca"},
	} {
		cert, hasCert := files[pki+x.name+".crt"]
		_, hasKey := files[pki+x.name+".key"]
		if !hasCert && !hasKey || x.ca == "etcd/ca" && files[pki+"etcd/ca.key"] == "" { // an external etcd
			continue
		}
		if !hasKey {
			return "kubeadm: failure loading " + x.name + " key: couldn't load the private key file"
		}
		if !hasCert {
			return "kubeadm: failure loading " + x.name + " certificate: couldn't load the certificate file"
		}
		block, _ := pem.Decode([]byte(cert))
		if block == nil {
			return "kubeadm: failure loading " + x.name + " certificate: the certificate file is not valid"
		}
		own, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "kubeadm: failure loading " + x.name + " certificate: " + err.Error()
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(files[pki+x.ca+".crt"]))
		if _, err := own.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: own.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			return "kubeadm: certificate " + x.name + " is not signed by corresponding CA"
		}
	}
	return madeKubeconfigRefused(files)
}

func madeKubeconfigRefused(files map[string]string) string {
	for _, name := range []string{"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf"} {
		file := "/etc/kubernetes/" + name
		text, is := files[file]
		if !is {
			continue
		}
		var c struct {
			Kind           string
			CurrentContext string `json:"current-context"`
			Contexts       []struct {
				Name    string
				Context struct{ Cluster string }
			}
			Clusters []struct {
				Name    string
				Cluster struct {
					Data []byte `json:"certificate-authority-data"`
					File string `json:"certificate-authority"`
				}
			}
		}
		if err := yaml.Unmarshal([]byte(text), &c); err != nil || c.Kind != "Config" {
			return "kubeadm: failed to load kubeconfig file " + file + " that already exists on disk"
		}
		cluster, ca := "", ""
		for _, x := range c.Contexts {
			if x.Name == c.CurrentContext {
				cluster = x.Context.Cluster
			}
		}
		for _, x := range c.Clusters {
			if x.Name == cluster {
				ca = cmp.Or(string(x.Cluster.Data), files[x.Cluster.File])
			}
		}
		if strings.TrimSpace(ca) != strings.TrimSpace(files["/etc/kubernetes/pki/ca.crt"]) {
			return fmt.Sprintf("kubeadm: a kubeconfig file %q exists already but has got the wrong CA cert", file)
		}
	}
	return ""
}
