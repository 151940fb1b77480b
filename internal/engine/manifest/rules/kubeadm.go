package rules

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkKubeadm checks a configuration as kubeadm does before it does anything: see the functions
// Validate… in cmd/kubeadm/app/apis/kubeadm/validation/validation.go of Kubernetes. Workers use a
// part of it.
func (c *checks) checkKubeadm(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion, plane bool) {
	if plane {
		c.checkClusterConfiguration(o, prefix+".clusterConfiguration", &spec.ClusterConfiguration, v)
		c.checkEndpoint(o, prefix+".initConfiguration.localAPIEndpoint", spec.InitConfiguration.LocalAPIEndpoint)
		c.checkRegistration(o, prefix+".initConfiguration.nodeRegistration", &spec.InitConfiguration.NodeRegistration, v, plane)
		c.checkKubeletFiles(
			o, prefix, ".initConfiguration.nodeRegistration.kubeletExtraArgs",
			manifest.KubeletArguments(spec.InitConfiguration.NodeRegistration.KubeletExtraArgs), spec, v,
		)
		if config := spec.JoinConfiguration.ControlPlane; config != nil {
			c.checkEndpoint(o, prefix+".joinConfiguration.controlPlane.localAPIEndpoint", config.LocalAPIEndpoint)
		}
	}
	join := &spec.JoinConfiguration
	if !plane && join.ControlPlane != nil {
		c.fail(o.Problem(prefix+".joinConfiguration.controlPlane", "the machines are workers", "remove it"))
	}
	c.checkRegistration(o, prefix+".joinConfiguration.nodeRegistration", &join.NodeRegistration, v, plane)
	if p := join.CACertPath; p != "" && (!path.IsAbs(p) || !strings.HasSuffix(p, ".crt")) {
		c.fail(
			o.Problem(
				prefix+".joinConfiguration.caCertPath",
				fmt.Sprintf("%q is not an absolute path that ends in .crt", p),
				"use /etc/kubernetes/pki/ca.crt, or remove it",
			),
		)
	}
	c.checkDiscovery(o, prefix+".joinConfiguration.discovery", &join.Discovery)
	c.checkKubeletFiles(
		o, prefix, ".joinConfiguration.nodeRegistration.kubeletExtraArgs", manifest.KubeletArguments(join.NodeRegistration.KubeletExtraArgs), spec, v,
	)
}

// checkJoinAddress checks the address at which kubelets reach the API server. As in Cluster API, it takes precedence over
// that of the load balancer.
func (c *checks) checkJoinAddress(o *manifest.Entry, path, address string) {
	is := func(host string, port int32) bool { return address == net.JoinHostPort(host, strconv.Itoa(int(port))) }
	cluster := c.cluster.Object.Spec.ControlPlaneEndpoint
	switch {
	case address == "":
	case !isHostPort(address):
		c.fail(o.Problem(path, fmt.Sprintf("%q is not a host with a port", address), "remove it: the run sets it"))
	case is(cluster.Host, cluster.Port):
	case c.cluster.Infra != nil && is(c.cluster.Infra.Spec.ControlPlaneEndpoint.Host, c.cluster.Infra.Spec.ControlPlaneEndpoint.Port):
	case c.unreachable(address) != "" && !isInScripts(o.Value, address):
		c.fail(o.Problem(path, c.unreachable(address)+": no machine could join", "remove it: the run sets the address of the load balancer"))
	default:
		c.warn(
			o.Problem(path, "the machines use this address of the API server instead of that of the load balancer", "remove it, unless it leads to the load balancer"),
		)
	}
}

func (c *checks) checkClusterConfiguration(o *manifest.Entry, path string, config *bootstrapv1.ClusterConfiguration, v kubernetesVersion) {
	c.checkControlPlaneArguments(o, path, config, v)
	c.checkReplaced(o, path, config)
	c.checkAbsolute(o, path+".certificatesDir", config.CertificatesDir)
	c.checkRepository(o, path+".imageRepository", config.ImageRepository)
	c.checkRepository(o, path+".dns.imageRepository", config.DNS.ImageRepository)
	c.checkNames(o, path+".apiServer.certSANs", config.APIServer.CertSANs)
	c.checkJoinAddress(o, path+".controlPlaneEndpoint", config.ControlPlaneEndpoint)
	if config.Etcd.External.IsDefined() {
		external := config.Etcd.External
		for i, e := range external.Endpoints {
			if !strings.HasPrefix(e, "https://") {
				c.fail(o.Problem(fmt.Sprintf("%s.etcd.external.endpoints[%d]", path, i), fmt.Sprintf("%q is not a URL that begins with https://", e), "change it"))
			}
		}
		c.checkAbsolute(o, path+".etcd.external.caFile", external.CAFile)
		c.checkAbsolute(o, path+".etcd.external.certFile", external.CertFile)
		c.checkAbsolute(o, path+".etcd.external.keyFile", external.KeyFile)
		return
	}
	local := &config.Etcd.Local
	c.checkAbsolute(o, path+".etcd.local.dataDir", local.DataDir)
	c.checkEtcdArguments(o, path+".etcd.local.extraArgs", config, v)
	c.checkRepository(o, path+".etcd.local.imageRepository", local.ImageRepository)
	c.checkNames(o, path+".etcd.local.serverCertSANs", local.ServerCertSANs)
	c.checkNames(o, path+".etcd.local.peerCertSANs", local.PeerCertSANs)
}

func (c *checks) checkAbsolute(o *manifest.Entry, at, value string) {
	if value != "" && !path.IsAbs(value) {
		c.fail(o.Problem(at, fmt.Sprintf("%q is not an absolute path", value), "begin it with /"))
	}
}

// checkImageTags refuses tags that the images of Kubernetes do not have in their registry, whose preflight check pulls them (ImagePullCheck in
// cmd/kubeadm/app/preflight/checks.go of Kubernetes): those of CoreDNS begin with v, and those of etcd end with a revision, as DefaultEtcdVersion
// and CoreDNSVersion in cmd/kubeadm/app/constants do. A configuration of containerd may name a mirror.
func (c *checks) checkImageTags(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	config := &spec.ClusterConfiguration
	ignored := spec.InitConfiguration.NodeRegistration.IgnorePreflightErrors
	if slices.Contains(ignored, "ImagePull") || slices.Contains(ignored, "all") ||
		strings.Contains(fmt.Sprint(spec.Files, spec.PreKubeadmCommands, spec.BootCommands), "registry.k8s.io") {
		return
	}
	const registry = "registry.k8s.io"
	at := prefix + ".clusterConfiguration"
	if tag := config.DNS.ImageTag; cmp.Or(config.DNS.ImageRepository, config.ImageRepository, registry) == registry && regex.Of(`^1\.\d+\.\d+$`).MatchString(tag) {
		c.fail(o.Problem(at+".dns.imageTag", fmt.Sprintf("%s has no image of CoreDNS with the tag %s", registry, tag), "write v"+tag))
	}
	local := config.Etcd.Local
	if tag := local.ImageTag; cmp.Or(local.ImageRepository, config.ImageRepository, registry) == registry && regex.Of(`^v?3\.\d+\.\d+$`).MatchString(tag) {
		c.fail(o.Problem(
			at+".etcd.local.imageTag", fmt.Sprintf("%s has no image of etcd with the tag %s", registry, tag), "write "+strings.TrimPrefix(tag, "v")+"-0",
		))
	}
}

// checkRepository checks a repository of images (github.com/distribution/reference).
func (c *checks) checkRepository(o *manifest.Entry, path, value string) {
	host, rest, found := strings.Cut(value, "/")
	named := regex.Of(`^([a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	hosted := regex.Of(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?$`)
	if value == "" || hosted.MatchString(host) && (!found || named.MatchString(rest)) {
		return
	}
	c.fail(o.Problem(path, fmt.Sprintf("%q is not a repository of images such as registry.k8s.io", value), "change it"))
}

// checkNames checks names in a certificate.
func (c *checks) checkNames(o *manifest.Entry, path string, names []string) {
	for i, name := range names {
		_, err := netip.ParseAddr(name)
		if err != nil && len(validation.IsDNS1123Subdomain(name)) > 0 && len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			c.fail(
				o.Problem(
					fmt.Sprintf("%s[%d]", path, i),
					fmt.Sprintf("%q is neither an IP address nor a name in DNS", name),
					"change it; a name has no port, and no capital letters",
				),
			)
		}
	}
}

// isHostPort reports whether kubeadm accepts an endpoint: ParseHostPort in cmd/kubeadm/app/util.
func isHostPort(endpoint string) bool {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		host, port = strings.Trim(endpoint, "[]"), "1"
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > mostPort {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(host)) == 0
}

func (c *checks) checkEndpoint(o *manifest.Entry, path string, e bootstrapv1.APIEndpoint) {
	if e.BindPort < 0 || e.BindPort > mostPort {
		c.fail(o.Problem(path+".bindPort", fmt.Sprintf("%d is not a port", e.BindPort), fmt.Sprintf("use 1 to %d, or remove it", mostPort)))
		return
	}
	if e.BindPort != 0 && e.BindPort != apiPort && c.hasLoadBalancer() {
		c.fail(
			o.Problem(
				path+".bindPort",
				fmt.Sprintf("the load balancer forwards to port %d of the machines, and the API server would listen on %d", apiPort, e.BindPort),
				"remove it",
			),
		)
	}
}

// hasLoadBalancer reports whether a run creates a load balancer for the API server.
func (c *checks) hasLoadBalancer() bool {
	return c.cluster.Infra != nil && !c.cluster.External && c.wantsLoadBalancer()
}

// wantsLoadBalancer reports whether the manifest leaves the load balancer of the API server enabled.
func (c *checks) wantsLoadBalancer() bool {
	lb := c.cluster.Infra.Spec.ControlPlaneLoadBalancer
	return lb == nil || lb.LoadBalancerType != infrav1.LoadBalancerTypeDisabled
}

// checkRegistration checks how a machine registers its Node.
func (c *checks) checkRegistration(o *manifest.Entry, path string, r *bootstrapv1.NodeRegistrationOptions, v kubernetesVersion, plane bool) {
	// Only the text around variables is checked: cloud-init or a script replaces them. The kubelet converts the name to
	// lower case (GetHostname in k8s.io/component-helpers/node/util).
	name := strings.ToLower(regex.Of(`\{\{.*?\}\}|\$\{.*?\}|\$\(.*?\)`).ReplaceAllString(r.Name, "x"))
	if bad := validation.IsDNS1123Subdomain(name); name != "" && !strings.ContainsAny(name, "${}") && len(bad) > 0 {
		c.fail(o.Problem(path+".name", fmt.Sprintf("%q is not the name of a Node: %s", r.Name, bad[0]), "change it, or remove it"))
	}
	c.checkSocket(o, path+".criSocket", r.CRISocket, v)
	c.checkKubeletArguments(o, path+".kubeletExtraArgs", manifest.KubeletArguments(r.KubeletExtraArgs), v)
	c.checkReplacedOfKubelet(o, path, r, plane)
	if r.Taints == nil {
		return
	}
	for i, t := range *r.Taints {
		c.checkTaint(o, fmt.Sprintf("%s.taints[%d]", path, i), t.Key, t.Value, string(t.Effect))
	}
}

// checkTaint checks a taint as the API server does: the kubelet cannot register with another one
// (ValidateNode in pkg/apis/core/validation of Kubernetes).
func (c *checks) checkTaint(o *manifest.Entry, path, key, value, effect string) {
	switch bad := badLabel(key, value); {
	case bad != "":
		c.fail(o.Problem(path, strings.Replace(bad, "a label", "a taint", 1), "change the taint"))
	case effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute":
		c.fail(o.Problem(path, fmt.Sprintf("%q is not the effect of a taint", effect), "use NoSchedule, PreferNoSchedule or NoExecute"))
	}
}

// badLabel says what is wrong with the key or value of a label; "" for nothing.
func badLabel(key, value string) string {
	if bad := validation.IsQualifiedName(key); len(bad) > 0 {
		return fmt.Sprintf("%q is not the key of a label: %s", key, bad[0])
	}
	if bad := validation.IsValidLabelValue(value); len(bad) > 0 {
		return fmt.Sprintf("%q is not the value of a label: %s", value, bad[0])
	}
	return ""
}

// checkDiscovery checks how a machine finds its cluster.
func (c *checks) checkDiscovery(o *manifest.Entry, path string, d *bootstrapv1.Discovery) {
	if p := d.File.KubeConfigPath; p != "" && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "https://") { // ValidateDiscoveryKubeConfigPath
		c.fail(o.Problem(path+".file.kubeConfigPath", fmt.Sprintf("%q is neither an absolute path nor a URL that begins with https://", p), "change it"))
	}
	if d.File.IsDefined() && d.BootstrapToken.IsDefined() { // ValidateDiscovery
		c.fail(o.Problem(path, "kubeadm accepts bootstrapToken or file, not both", "remove one of them"))
	}
	token := regex.Of(`^[a-z0-9]{6}\.[a-z0-9]{16}$`) // k8s.io/cluster-bootstrap/token/api
	if t := d.BootstrapToken.Token; t != "" && !token.MatchString(t) {
		c.fail(o.Problem(path+".bootstrapToken.token", "is not a bootstrap token", "write six letters or digits, a dot and sixteen more, or remove it"))
	}
	if t := d.TLSBootstrapToken; t != "" && !token.MatchString(t) {
		c.fail(o.Problem(path+".tlsBootstrapToken", "is not a bootstrap token", "write six letters or digits, a dot and sixteen more, or remove it"))
	}
	if e := d.BootstrapToken.APIServerEndpoint; e != "" && !isHostPort(e) {
		c.fail(o.Problem(path+".bootstrapToken.apiServerEndpoint", fmt.Sprintf("%q is not a host with a port", e), "remove it: the run sets it"))
	}
	for i, hash := range d.BootstrapToken.CACertHashes {
		if !regex.Of(`^sha256:[0-9a-fA-F]{64}$`).MatchString(hash) {
			c.fail(
				o.Problem(
					fmt.Sprintf("%s.bootstrapToken.caCertHashes[%d]", path, i),
					fmt.Sprintf("%q is not the hash of a certificate", hash),
					"write sha256: and 64 hexadecimal digits, or remove it: the run sets it",
				),
			)
		}
	}
}
