package loader

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// aside is an object of the input that is not used as an object of the cluster.
type aside struct {
	*manifest.Entry
	group     string
	failed    bool // its problem is reported: that it is missing is only a consequence
	encrypted bool // with SOPS
}

// provider is a Cluster API provider other than those that this program implements.
type provider struct {
	what string // "RKE2 clusters"
	from string // who provides it
}

// providers returns the providers by the beginning of the names of their kinds.
// https://cluster-api.sigs.k8s.io/reference/providers
func providers() map[string]provider {
	return map[string]provider{
		"RKE2":          {"RKE2 clusters", "the RKE2 provider of Rancher (cluster-api-provider-rke2)"},
		"K0s":           {"k0s clusters", "the k0s provider (k0smotron)"},
		"K0smotron":     {"k0s clusters", "the k0s provider (k0smotron)"},
		"Talos":         {"Talos clusters", "the Talos providers of Sidero (cluster-api-control-plane-provider-talos)"},
		"MicroK8s":      {"MicroK8s clusters", "the MicroK8s provider of Canonical (cluster-api-control-plane-provider-microk8s)"},
		"CK8s":          {"clusters of Canonical Kubernetes", "the provider of Canonical (cluster-api-k8s)"},
		"Kamaji":        {"control planes of Kamaji", "the Kamaji provider of Clastix (cluster-api-control-plane-provider-kamaji)"},
		"KThrees":       {"K3s clusters", "the K3s provider (cluster-api-k3s)"},
		"VCluster":      {"virtual clusters", "the vCluster provider of Loft (cluster-api-provider-vcluster)"},
		"Nested":        {"nested clusters", "the nested provider (cluster-api-provider-nested)"},
		"Karpenter":     {"pools of Karpenter", "an operator for Karpenter in the management cluster"},
		"ROSA":          {"ROSA clusters", "Cluster API Provider AWS, with the service of Red Hat"},
		"Azure":         {"clusters on Azure", "Cluster API Provider Azure"},
		"GCP":           {"clusters on Google Cloud", "Cluster API Provider GCP"},
		"VSphere":       {"clusters on vSphere", "Cluster API Provider vSphere"},
		"Docker":        {"clusters on Docker", "Cluster API, for development"},
		"Dev":           {"clusters on Docker", "Cluster API, for development"},
		"OpenStack":     {"clusters on OpenStack", "Cluster API Provider OpenStack"},
		"Metal3":        {"clusters on Metal3", "Cluster API Provider Metal3"},
		"Nutanix":       {"clusters on Nutanix", "Cluster API Provider Nutanix"},
		"Proxmox":       {"clusters on Proxmox", "Cluster API Provider Proxmox"},
		"Hetzner":       {"clusters on Hetzner", "Cluster API Provider Hetzner"},
		"HCloud":        {"clusters on Hetzner", "Cluster API Provider Hetzner"},
		"OCI":           {"clusters on Oracle Cloud", "Cluster API Provider OCI"},
		"IBM":           {"clusters on IBM Cloud", "Cluster API Provider IBM Cloud"},
		"Remote":        {"machines that are reached with SSH", "the k0s provider (k0smotron)"},
		"Byo":           {"hosts of one's own", "Cluster API Provider BYOH"},
		"Extension":     {"runtime extensions", "a service in the management cluster"},
		"InClusterIP":   {"pools of addresses", "the in-cluster IPAM provider"},
		"GlobalInClust": {"pools of addresses", "the in-cluster IPAM provider"},
	}
}

// providerOf returns the provider of a kind; ok is false if it is unknown.
func providerOf(kind string) (found provider, ok bool) {
	longest := 0
	for prefix, p := range providers() {
		if strings.HasPrefix(kind, prefix) && len(prefix) > longest {
			found, ok, longest = p, true, len(prefix)
		}
	}
	return found, ok
}

// setAside keeps an object that is not used as an object of the cluster.
func (l *loader) setAside(o *manifest.Entry, group string, failed bool) *aside {
	a := &aside{Entry: o, group: group, failed: failed}
	l.asides = append(l.asides, a)
	return a
}

// asideNamed returns the object of that kind and name that is not used; without one, an object
// of that name whose kind is misspelt, or one of that kind without a name.
func (l *loader) asideNamed(kind, name string) *aside {
	var similar *aside
	for _, a := range l.asides {
		switch {
		case a.Kind == kind && a.Name == name:
			return a
		case a.failed && (a.Kind == kind && a.Name == "" || a.Name == name && suggest.Nearest(a.Kind, []string{kind}) != ""):
			similar = a
		}
	}
	return similar
}

// missingObject reports that the input lacks an object that something refers to. It does not
// if the object is there and its own problem is reported.
func (l *loader) missingObject(from *manifest.Entry, path, kind, name string) {
	switch a := l.asideNamed(kind, name); {
	case a != nil && a.encrypted:
		l.fail(a.Problem("sops", "the object is encrypted with SOPS", decryptFix))
	case a != nil && a.failed:
		l.consequence = true
	default:
		fix := l.namesOf(kind, name)
		if other := l.ofOtherProvider(kind, name); other != nil && len(l.ofKind(kind)) == 0 {
			fix = fmt.Sprintf("the input has %s, which is not supported", other.Title())
		}
		l.absent(from.Problem(path, fmt.Sprintf("there is no %s/%s in the input", kind, name), fix))
	}
}

// ofOtherProvider returns an object of another provider that has the name; without one, an object for the same purpose, such as
// RKE2ConfigTemplate for KubeadmConfigTemplate.
func (l *loader) ofOtherProvider(kind, name string) (found *aside) {
	purpose := strings.TrimPrefix(strings.TrimPrefix(kind, "Kubeadm"), "AWS")
	for _, a := range l.asides {
		if _, known := providerOf(a.Kind); !known || !manifest.IsClusterGroup(a.group) {
			continue
		}
		if a.Name == name {
			return a
		}
		if strings.HasSuffix(a.Kind, purpose) && found == nil {
			found = a
		}
	}
	return found
}

// decryptFix is the fix for an encrypted object.
const decryptFix = "decrypt it first: sops decrypt FILE | clusterawsadm cluster … -f -"

// isForeign reports whether a reference names a kind of another provider.
func (l *loader) isForeign(r reference) bool {
	if _, ours := l.kinds[r.kind]; ours || r.kind == "" {
		return false
	}
	_, known := providerOf(r.kind)
	return known || l.misspelt(r.kind, r.group) == ""
}

// foreignReference reports a reference to a kind of another provider: once for each provider.
func (l *loader) foreignReference(r reference, choice string) {
	p, known := providerOf(r.kind)
	if choice == manifest.KindControlPlane || p.what == "ROSA clusters" {
		choice = planes
	}
	what := fmt.Sprintf("%s is not supported", r.kind)
	if known {
		what = fmt.Sprintf("%s are not supported: %s comes from %s", p.what, r.kind, p.from)
	}
	if key := cmp.Or(p.what, r.kind); !l.told[key] {
		l.told[key] = true
		l.fail(r.from.Problem(r.path+".kind", what, "this program takes "+choice))
	}
	l.consequence = true
}

// refusesForeign reports whether a Cluster, or its ClusterClass, refers to kinds of other providers. Then these references
// are the only problems: nobody has to convert such a manifest, correct its fields or look for its values, only to hear
// that it is refused with all of them.
func (l *loader) refusesForeign() bool {
	before := len(l.problems)
	for _, r := range l.providerReferences() {
		if _, known := providerOf(r.kind); !known {
			continue
		}
		choice := planes
		switch {
		case r.path == "spec.infrastructureRef":
			choice = manifest.KindAWSCluster
		case strings.HasPrefix(r.path, "spec.infrastructure."):
			choice = manifest.KindAWSClusterTemplate + ", and " + manifest.KindManagedClusterTemplate + " for EKS"
		case strings.HasPrefix(r.path, "spec.controlPlane."):
			choice = manifest.KindControlPlaneTemplate + ", and " + manifest.KindManagedPlaneTemplate + " for EKS"
		}
		l.foreignReference(r, choice)
	}
	if len(l.problems) == before {
		return false
	}
	l.problems = l.problems[before:]
	return true
}

// providerReferences returns the references of the Clusters, and of their ClusterClasses, to what the providers of
// infrastructure and of control planes describe. Clusters of older API versions count if there are no others.
func (l *loader) providerReferences() (found []reference) {
	clusters := l.ofKind(manifest.KindCluster)
	if len(clusters) == 0 {
		for _, a := range l.asides {
			if a.Kind == manifest.KindCluster && a.group == manifest.GroupCore {
				clusters = append(clusters, a.Entry)
			}
		}
	}
	add := func(o *manifest.Entry, paths ...string) {
		for _, path := range paths {
			kind, _ := manifest.ValueAt(o.Value, path+".kind").(string)
			found = append(found, reference{from: o, path: path, kind: kind})
		}
	}
	for _, o := range clusters {
		add(o, "spec.infrastructureRef", "spec.controlPlaneRef")
		name, _ := manifest.ValueAt(o.Value, "spec.topology.classRef.name").(string)
		if name == "" {
			name, _ = manifest.ValueAt(o.Value, "spec.topology.class").(string)
		}
		for _, class := range l.ofKind(manifest.KindClusterClass) {
			if class.Name == name {
				add(class, "spec.infrastructure.templateRef", "spec.controlPlane.templateRef", "spec.infrastructure.ref", "spec.controlPlane.ref")
			}
		}
	}
	return found
}

// unknownKind handles an object of a kind that is not read.
func (l *loader) unknownKind(o *manifest.Entry, gv apischema.GroupVersion) {
	if _, recorded := recordKinds()[o.Kind]; recorded && manifest.IsClusterGroup(gv.Group) {
		reason := recordKinds()[o.Kind]
		l.ignore(o, gv.Group, fmt.Sprintf("%s is ignored: %s", o.Kind, reason), "are ignored: "+strings.ReplaceAll(reason, " it", " them"))
		return
	}
	p, known := providerOf(o.Kind)
	switch {
	case gv.Group == "kustomize.config.k8s.io":
		l.unreadable = true
		l.fail(o.Problem("kind", fmt.Sprintf("a %s changes other files", o.Kind), "build it first: kustomize build "+filepath.Dir(o.Lines[""].File)+pipe))
	case o.Kind == kindMachineSet && manifest.IsClusterGroup(gv.Group):
		l.sets = append(l.sets, o) // ignoreMade knows whether its MachineDeployment is there
	case manifest.IsClusterGroup(gv.Group) && known:
		what := fmt.Sprintf("%s is ignored: %s are not supported, and nothing in the input refers to it", o.Kind, p.what)
		l.ignore(o, gv.Group, what, fmt.Sprintf("are ignored: %s are not supported, and nothing in the input refers to them", p.what))
	case manifest.IsClusterGroup(gv.Group) || gv.Group == "":
		if meant := l.misspelt(o.Kind, gv.Group); meant != "" {
			l.fail(o.Problem("kind", fmt.Sprintf("there is no kind %s in %s", o.Kind, gv), fmt.Sprintf("did you mean %q?", meant)))
			l.setAside(o, gv.Group, true)
			return
		}
		fallthrough
	default:
		l.ignoreOther(o, gv)
	}
}

// ignoreOther warns about an object that is not one of Cluster API.
func (l *loader) ignoreOther(o *manifest.Entry, gv apischema.GroupVersion) {
	is, fix := "not part of a cluster", "to apply it to the cluster, pass it with --addon FILE, or put it into a ConfigMap of a ClusterResourceSet"
	switch {
	case isOfManagement(gv.Group):
		is, fix = "for a management cluster", ""
	case isOfDomain(gv.Group, "eksctl.io"):
		is, fix = "for eksctl", ""
	case manifest.IsClusterGroup(gv.Group):
		fix = ""
	}
	p := o.Problem("kind", fmt.Sprintf("%s in %s is %s and is ignored", o.Kind, gv, is), fix)
	p.Several = "are " + is + " and are ignored"
	l.warn(p)
	l.setAside(o, gv.Group, false)
}

// isOfManagement reports whether an API group belongs to a tool that runs in a management cluster, such as Argo CD. Its objects describe
// other clusters.
func isOfManagement(group string) bool {
	return slices.ContainsFunc([]string{
		"argoproj.io",
		"bitnami.com", // SealedSecret
		"cattle.io",
		"crossplane.io",
		"external-secrets.io",
		"fluxcd.io",
		"giantswarm.io",
		"karmada.io",
		"mirantis.com",
		"open-cluster-management.io",
		"projectsveltos.io",
		"services.k8s.aws",
		"upbound.io",
		"weave.works",
	}, func(domain string) bool { return isOfDomain(group, domain) })
}

// ignore warns about an object and keeps it aside. Several is what is said of several of them.
func (l *loader) ignore(o *manifest.Entry, group, what, several string) {
	p := o.Problem("kind", what, "")
	p.Several = several
	l.warn(p)
	l.setAside(o, group, false)
}

// misspelt returns the kind that a kind of the same group was probably meant to be.
func (l *loader) misspelt(kind, group string) string {
	var names []string
	for name, k := range l.kinds {
		if k.group == group && max(len(name), len(kind))-min(len(name), len(kind)) <= 2 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	meant := suggest.Nearest(kind, names)
	// Two kinds of different providers may be as near to each other as a kind and a misspelt one,
	// but they begin differently.
	if meant == "" || !strings.EqualFold(meant[:1], kind[:1]) {
		return ""
	}
	return meant
}

// kindMachineSet is a kind that Cluster API creates, and people hardly ever.
const kindMachineSet = "MachineSet"

// recordKinds returns the kinds that controllers create, with the reason to ignore them.
func recordKinds() map[string]string {
	const record = "Cluster API creates and maintains it"
	return map[string]string{
		"ClusterResourceSetBinding": record, "IPAddress": record, "IPAddressClaim": record, "MachinePoolMachine": record,
		"AWSMachinePoolMachine": record, "ProviderConfig": record, "HelmReleaseProxy": "the Helm add-on provider creates and maintains it",
	}
}
