package loader

import (
	"fmt"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// resolveSecrets finds the Secrets that bootstrap configurations name, and those that Cluster API finds
// by name.
func (l *loader) resolveSecrets() {
	if plane := l.cluster.ControlPlane; plane != nil {
		l.kubeadmSecrets(l.lookup(manifest.KindControlPlane, plane.Object.Name), "spec.kubeadmConfigSpec", &plane.Object.Spec.KubeadmConfigSpec)
	}
	const inTemplate = "spec.template.spec"
	for _, d := range l.cluster.Deployments {
		switch {
		case d.Bootstrap != nil:
			l.kubeadmSecrets(l.lookup(manifest.KindConfigTemplate, d.Bootstrap.Name), inTemplate, &d.Bootstrap.Spec.Template.Spec)
		case d.EKSBootstrap != nil:
			spec := d.EKSBootstrap.Spec.Template.Spec
			l.nodeSecrets(l.lookup(manifest.KindEKSConfigTemplate, d.EKSBootstrap.Name), inTemplate, spec.Files, spec.Users)
		case d.NodeadmBootstrap != nil:
			spec := d.NodeadmBootstrap.Spec.Template.Spec
			l.nodeSecrets(l.lookup(manifest.KindNodeadmTemplate, d.NodeadmBootstrap.Name), inTemplate, spec.Files, spec.Users)
		}
	}
	for _, m := range l.cluster.Machines {
		l.bootstrapSecrets(manifest.Bootstrap{Kubeadm: m.Bootstrap, EKS: m.EKSBootstrap, Nodeadm: m.NodeadmBootstrap})
	}
	for _, p := range l.cluster.Pools {
		l.bootstrapSecrets(p.Bootstrap)
	}
	if !l.managed {
		l.ownAuthorities()
	}
}

// bootstrapSecrets finds the Secrets of a configuration that is not a template.
func (l *loader) bootstrapSecrets(b manifest.Bootstrap) {
	switch {
	case b.Kubeadm != nil:
		l.kubeadmSecrets(l.lookup(manifest.KindConfig, b.Kubeadm.Name), "spec", &b.Kubeadm.Spec)
	case b.EKS != nil:
		l.nodeSecrets(l.lookup(manifest.KindEKSConfig, b.EKS.Name), "spec", b.EKS.Spec.Files, b.EKS.Spec.Users)
	case b.Nodeadm != nil:
		l.nodeSecrets(l.lookup(manifest.KindNodeadm, b.Nodeadm.Name), "spec", b.Nodeadm.Spec.Files, b.Nodeadm.Spec.Users)
	}
}

// kubeadmSecrets finds the Secrets of a configuration for kubeadm, and checks its Container Linux Config.
func (l *loader) kubeadmSecrets(o *manifest.Entry, path string, c *bootstrapv1.KubeadmConfigSpec) {
	for i, f := range c.Files {
		if f.ContentFrom.IsDefined() {
			l.secretKey(o, fmt.Sprintf("%s.files[%d].contentFrom.secret", path, i), f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)
		}
	}
	for i, u := range c.Users {
		if u.PasswdFrom.IsDefined() {
			l.secretKey(o, fmt.Sprintf("%s.users[%d].passwdFrom.secret", path, i), u.PasswdFrom.Secret.Name, u.PasswdFrom.Secret.Key)
		}
	}
	at := path + ".ignition.containerLinuxConfig.additionalConfig"
	ignored, err := boot.CheckContainerLinuxConfig(c.Ignition.ContainerLinuxConfig)
	if err != nil {
		l.fail(o.Problem(at, err.Error(), "change it: lines are counted from the first one of the text"))
	}
	for _, field := range ignored {
		l.warn(o.Problem(at, field+" does not exist, and is ignored", "remove it"))
	}
}

// nodeSecrets finds the Secrets of a configuration for nodes of EKS.
func (l *loader) nodeSecrets(o *manifest.Entry, path string, files []eksbootstrapv1.File, users []eksbootstrapv1.User) {
	for i, f := range files {
		if f.ContentFrom != nil {
			l.secretKey(o, fmt.Sprintf("%s.files[%d].contentFrom.secret", path, i), f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)
		}
	}
	for i, u := range users {
		if u.PasswdFrom != nil {
			l.secretKey(o, fmt.Sprintf("%s.users[%d].passwdFrom.secret", path, i), u.PasswdFrom.Secret.Name, u.PasswdFrom.Secret.Key)
		}
	}
}

// ownAuthorities finds the Secrets with the user's certificates, and those for an external etcd.
func (l *loader) ownAuthorities() {
	for _, suffix := range manifest.Authorities() {
		if o := l.lookup(manifest.KindSecret, l.cluster.Name+"-"+suffix); o != nil {
			o.Used = true
		}
	}
	if l.cluster.ControlPlane == nil || !l.cluster.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined() {
		return
	}
	o := l.lookup(manifest.KindControlPlane, l.cluster.ControlPlane.Object.Name)
	path := "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external"
	l.secretKey(o, path, l.cluster.Name+"-etcd", "tls.crt")
	l.secretKey(o, path, l.cluster.Name+"-apiserver-etcd-client", "tls.crt")
	l.secretKey(o, path, l.cluster.Name+"-apiserver-etcd-client", "tls.key")
}
