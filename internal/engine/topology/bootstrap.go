package topology

import (
	"fmt"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// boot returns what the i-th machine of a group boots with.
func (b *builder) boot(g group, i int, id graph.ID) *bootdata.Data {
	if g.kubeadm == nil && g.eks == nil {
		return &bootdata.Data{Plain: g.data}
	}
	d := &bootdata.Data{
		EKS: g.eks, Endpoint: b.endpoint, PKI: b.keys, Backend: backendOf(g), Prefix: g.spec.CloudInit.SecretPrefix,
		Uncompressed: g.spec.UncompressedUserData, Ignition: g.spec.Ignition, Bucket: b.store,
	}
	if g.kubeadm != nil {
		d.Machine = boot.Machine{
			Role: b.role(g, i), Version: g.version, Cluster: b.m.Object, Spec: *g.kubeadm, TokenTTL: TokenTTL, Secret: b.secret,
		}
	}
	kind, shared := "node/", !g.controlPlane
	if g.pool {
		kind = "machine-pool/"
	}
	if g.controlPlane {
		kind = "control-plane/"
		d.ID = bootdata.SecretID(b.m.Namespace, b.m.Name, string(id))
		d.Object = kind + g.nameOf(i)
	} else {
		d.ID = bootdata.SecretID(b.m.Namespace, b.m.Name, "machine/"+g.name)
		d.Object = kind + g.name // all of a group load the same one
	}
	d.Keep = shared
	owner := string(id)
	if shared {
		owner = ec2.GroupNode(owner)
	}
	role := roleNode
	if g.controlPlane {
		role = roleControlPlane
	}
	d.Tags = b.machineTags(role, nil).With(cloud.Tags{"Name": strings.TrimPrefix(d.Object, kind), cloud.ResourceTag: owner})
	if g.kubeadm != nil {
		b.joinToken(g, d)
	}
	if s := b.spec.S3Bucket; s != nil && s.PresignedURLDuration != nil {
		d.Presigned = s.PresignedURLDuration.Duration
	}
	return d
}

// role is the part a machine plays: the first of the control plane begins it,
// unless that has happened and others carry it on.
func (b *builder) role(g group, i int) boot.Role {
	switch {
	case !g.controlPlane:
		return boot.JoinWorker
	case i > 0 || b.made != nil || b.inv.Initialized && b.othersControl():
		return boot.JoinControlPlane
	}
	return boot.Init
}

// othersControl reports whether the control plane has machines.
func (b *builder) othersControl() bool {
	for _, m := range b.inv.Machines {
		if m.Tags[cloud.RoleTag] == roleControlPlane && m.Status != "shutting-down" {
			return true
		}
	}
	return false
}

// secret looks up a key of a Secret of the manifest.
func (b *builder) secret(name, key string) ([]byte, error) {
	s := b.m.Secrets[name]
	if s == nil {
		return nil, fmt.Errorf("secret %s is not in the manifest", name)
	}
	value, ok := s.Data[key]
	if !ok {
		return nil, fmt.Errorf("secret %s has no key %s", name, key)
	}
	return value, nil
}

// backendOf says how a group's machines get their data (facts C.1).
func backendOf(g group) boot.Backend {
	s := g.spec
	switch {
	case g.eks != nil && g.eks.Nodeadm != nil: // it reads the user data itself
		return boot.UserData
	case g.kubeadm == nil && g.eks == nil:
		return boot.UserData
	case g.kubeadm != nil && g.kubeadm.Format == "ignition" || s.Ignition != nil:
		if s.Ignition != nil && s.Ignition.StorageType == infrav1.IgnitionStorageTypeOptionUnencryptedUserData {
			return boot.UserData
		}
		return boot.ObjectStore
	case s.CloudInit.InsecureSkipSecretsManager:
		return boot.UserData
	case s.CloudInit.SecureSecretsBackend == infrav1.SecretBackendSSMParameterStore:
		return boot.ParameterStore
	}
	return boot.SecretsManager
}

// image adds the lookup of a group's image: the one the manifest names, or the
// newest that matches CAPA's pattern (facts C.2).
func (b *builder) image(g group) *graph.Ref[ec2.ImageState] {
	if id := g.spec.AMI.ID; id != nil && *id != "" {
		return b.givenImage(g, *id)
	}
	if b.m.EKS != nil && g.spec.ImageLookupFormat == "" && g.spec.ImageLookupOrg == "" && g.spec.ImageLookupBaseOS == "" {
		return b.eksImage(g)
	}
	q := ec2.ImageQuery{
		Owner: first(g.spec.ImageLookupOrg, b.spec.ImageLookupOrg, "819546954734"), Version: g.version,
		Architecture: first(b.inv.Types[g.spec.InstanceType].Architecture, "x86_64"),
	}
	base := first(g.spec.ImageLookupBaseOS, b.spec.ImageLookupBaseOS, "ubuntu-24.04")
	format := first(g.spec.ImageLookupFormat, b.spec.ImageLookupFormat, "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*")
	var err error
	if q.Name, err = imageName(format, base, strings.TrimPrefix(g.version, "v")); err != nil {
		b.fail("%s: %w", b.m.Origin(g.specAt, g.specPath+".imageLookupFormat"), err)
	}
	id := fmt.Sprintf("image/%s/%s/%s", base, strings.TrimPrefix(g.version, "v"), q.Architecture)
	if format != "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*" || q.Owner != "819546954734" {
		id += "/" + suffix(format, q.Owner)
	}
	return use(b, graph.ID(id), ec2.ImageByName(q), g.specAt, "spec")
}

// givenImage adds the lookup of an image that the manifest names. For machines of
// another architecture it is another question.
func (b *builder) givenImage(g group, image string) *graph.Ref[ec2.ImageState] {
	id, kind := graph.ID("image/"+image), b.inv.Types[g.spec.InstanceType]
	arch := kind.Architecture
	if kind.VCPUs == 0 {
		arch = "" // it is assumed
	}
	if arch == "arm64" {
		id += "/arm64"
	}
	return use(b, id, ec2.ImageFor(image, g.spec.InstanceType, arch), g.specAt, g.specPath+".ami.id")
}

// imageName fills in an image lookup format, a Go template of which only the
// two values are supported: a template engine would cost the binary its size.
func imageName(format, base, version string) (string, error) {
	var out strings.Builder
	for rest := format; ; {
		text, after, found := strings.Cut(rest, "{{")
		out.WriteString(text)
		if !found {
			return out.String(), nil
		}
		action, tail, closed := strings.Cut(after, "}}")
		switch strings.TrimSpace(strings.Trim(strings.TrimSpace(action), "-")) {
		case ".BaseOS":
			out.WriteString(base)
		case ".K8sVersion":
			out.WriteString(version)
		default:
			closed = false
		}
		if !closed {
			return "", fmt.Errorf("%q is not understood: only {{.BaseOS}} and {{.K8sVersion}} are", format)
		}
		rest = tail
	}
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}
