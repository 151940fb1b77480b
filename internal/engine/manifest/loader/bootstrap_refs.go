package loader

import (
	"fmt"
	"slices"
	"strings"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
)

// bootstrap returns the bootstrap configuration of a machine, or its template, which must
// fit the type of cluster. It returns nil if a Secret with user data is used instead,
// which is checked, and if the object is missing or invalid, which is reported.
func (l *loader) bootstrap(o *manifest.Entry, path string, b clusterv1.Bootstrap, template bool) any {
	if !b.ConfigRef.IsDefined() {
		l.dataSecret(o, path+".dataSecretName", b.DataSecretName)
		return nil
	}
	l.checkDataSecret(o, path)
	here, elsewhere := []string{manifest.KindConfig}, []string{manifest.KindEKSConfig, manifest.KindNodeadm}
	cluster, other := "this cluster is self-managed", "nodes of EKS"
	if l.managed {
		here, elsewhere = []string{manifest.KindNodeadm, manifest.KindEKSConfig}, here
		cluster, other = "EKS runs the control plane of this cluster", "nodes of self-managed clusters"
	}
	if template {
		here, elsewhere = templates(here), templates(elsewhere)
	}
	r := contract(o, path+".configRef", b.ConfigRef)
	if slices.Contains(elsewhere, r.kind) {
		if found := l.lookup(r.kind, r.name); found != nil {
			found.Used = true
		}
		l.fail(o.Problem(r.path+".kind", fmt.Sprintf("%s is for %s, and %s", r.kind, other, cluster), "use "+strings.Join(here, " or ")))
		return nil
	}
	if found := l.follow(r, here...); found != nil {
		return found.Typed
	}
	return nil
}

// templates returns the kinds of the templates of kinds.
func templates(kinds []string) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k+"Template")
	}
	return out
}

func asBootstrap(typed any) (b manifest.Bootstrap) {
	switch x := typed.(type) {
	case *bootstrapv1.KubeadmConfig:
		b.Kubeadm = x
	case *eksbootstrapv1.EKSConfig: //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
		b.EKS = x
	case *eksbootstrapv1.NodeadmConfig:
		b.Nodeadm = x
	}
	return b
}

// dataSecret checks the Secret that contains the user data.
func (l *loader) dataSecret(o *manifest.Entry, path string, name *string) {
	switch {
	case name == nil:
	case *name == "":
		l.fail(o.Problem(path, "names no Secret, so the machines would have no user data", "set it, or set configRef"))
	default:
		l.secretKey(o, path, *name, "value")
	}
}

// secretKey checks that a Secret exists in the input and has a key.
func (l *loader) secretKey(o *manifest.Entry, path, name, entry string) {
	found := l.lookup(manifest.KindSecret, name)
	if found == nil {
		l.missingObject(o, path, manifest.KindSecret, name)
		return
	}
	found.Used = true
	s := l.cluster.Secrets[name]
	if s == nil {
		return
	}
	if slices.Contains(l.invalid[found], yamldoc.Join("data", entry)) { // it has one, which is no base64: that is reported
		return
	}
	if _, ok := s.Data[entry]; !ok {
		l.fail(o.Problem(path, fmt.Sprintf("Secret/%s has no key %q", name, entry), "add the key to the Secret"))
	}
}

// checkDataSecret warns about user data if there is also a bootstrap configuration. Cluster API
// replaces dataSecretName by the name of the Secret that it creates from the configuration.
func (l *loader) checkDataSecret(o *manifest.Entry, path string) {
	if path += ".dataSecretName"; o.IsSet(path) {
		l.warn(o.Problem(path, "has no effect: configRef is set, too", "remove one of them"))
	}
}
