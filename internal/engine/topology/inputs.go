package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// inputs has everything from which a graph is built. They are not changed.
type inputs struct {
	m    *manifest.Cluster
	spec *infrav1.AWSClusterSpec
	inv  Inventory
	o    Options
}

// infra returns an option that names a part of the AWSCluster as the origin.
func (in inputs) infra(path string) graph.Option {
	return graph.From(in.m.Origin(in.m.InfraObject(), path))
}

// Values of the role tag.
const (
	roleCommon       = "common"
	rolePublic       = "public"
	rolePrivate      = "private"
	roleAPIServer    = "apiserver"
	RoleBastion      = "bastion"
	RoleControlPlane = "control-plane"
	RoleNode         = "node"
)

// tags returns the tags of a resource: namedTags, and the identity tag, by which a later run
// finds the resource.
func (in inputs) tags(id plan.ID, name, role string, more ...cloud.Tags) cloud.Tags {
	tags := in.namedTags(name, role, more...)
	tags[cloud.ResourceTag] = string(id)
	return tags
}

// namedTags returns the tags of a resource, in the order in which CAPA's infrav1.Build adds
// them: its name, what the user adds, the cluster and the role. They are enough for
// resources whose name is unique in AWS, by which a later run finds them. CAPA removes other
// tags from load balancers and from resources of EKS: with an identity tag, a handover would
// change them.
func (in inputs) namedTags(name, role string, more ...cloud.Tags) cloud.Tags {
	tags := cloud.Tags{"Name": name}.With(cloud.Tags(in.spec.AdditionalTags))
	for _, t := range more {
		tags = tags.With(t)
	}
	tags[cloud.ClusterTagPrefix+in.m.Name] = cloud.Owned
	tags[cloud.RoleTag] = role
	return tags
}

// machineTags are the tags that all machines of a role share.
func (in inputs) machineTags(role string, additional map[string]string) cloud.Tags {
	return cloud.Tags(in.spec.AdditionalTags).With(additional).With(in.cloudProvider(cloud.Owned)).With(cloud.Tags{
		cloud.ClusterTagPrefix + in.m.Name: cloud.Owned, cloud.RoleTag: role,
	})
}

// cloudProviderKey is the key of the cloud provider tag. The AWS cloud controller manager
// uses resources with this tag; on resources of EKS and IAM, it is Cluster API's owned
// tag.
func (in inputs) cloudProviderKey() string {
	return cloud.CloudProviderTagPrefix + in.m.KubernetesName()
}

// ownedByName is the tag by which CAPA knows add-ons and access entries. It has the name of
// the Cluster object.
func (in inputs) ownedByName() cloud.Tags {
	return cloud.Tags{cloud.CloudProviderTagPrefix + in.m.Name: cloud.Owned}
}

func (in inputs) cloudProvider(value string) cloud.Tags {
	return cloud.Tags{in.cloudProviderKey(): value}
}

// usesAPIServer reports whether a run uses the API server.
func (in inputs) usesAPIServer() bool { return in.o.Wait == plan.APIServer || in.waitsForNodes() }

// waitsForNodes reports whether a run waits for the Nodes of all machines.
func (in inputs) waitsForNodes() bool {
	return in.o.Wait == plan.NodesJoined || in.o.Wait == plan.NodesReady
}

// hasControlPlane reports whether the control plane has machines.
func (in inputs) hasControlPlane() bool {
	for _, m := range in.inv.Machines {
		if m.Tags[cloud.RoleTag] == RoleControlPlane {
			return true
		}
	}
	return false
}

// launchedControlPlane reports whether a run has launched a machine of the control plane, which may
// be terminating. The machines that Cluster API has launched have no template tag.
func (in inputs) launchedControlPlane() bool {
	return slices.ContainsFunc(slices.Concat(in.inv.Machines, in.inv.Terminating), func(m ec2.InstanceState) bool {
		return m.Tags[cloud.RoleTag] == RoleControlPlane && m.Tags[cloud.TemplateTag] != ""
	})
}

// initialized reports whether the cluster has, or had, an API server.
func (in inputs) initialized() bool {
	return in.m.EKS != nil || in.inv.Initialized || in.hasControlPlane()
}

// clusterConfiguration returns kubeadm's ClusterConfiguration and its path in the
// manifest.
func (in inputs) clusterConfiguration() (config bootstrapv1.ClusterConfiguration, origin string) {
	if cp := in.m.ControlPlane; cp != nil {
		return cp.Object.Spec.KubeadmConfigSpec.ClusterConfiguration, in.m.Origin("KubeadmControlPlane/"+cp.Object.Name, "spec.kubeadmConfigSpec")
	}
	for _, m := range in.m.Machines { // the first of the control plane initializes the cluster
		if m.ControlPlane && m.Bootstrap != nil {
			return m.Bootstrap.Spec.ClusterConfiguration, in.m.Origin("KubeadmConfig/"+m.Bootstrap.Name, "spec")
		}
	}
	return config, ""
}

// etcdCertificates is the folder of etcd's certificates on the machines of the control
// plane; stacked is false if etcd does not run there.
func (in inputs) etcdCertificates() (folder string, stacked bool) {
	config, _ := in.clusterConfiguration()
	return boot.CertificatesDir(&config) + "/etcd", len(config.Etcd.External.Endpoints) == 0
}

// checkNamespace returns an error if a cluster of the same name exists that is in another
// namespace: their tags in AWS would be the same.
func (in inputs) checkNamespace() error {
	for _, m := range in.inv.Machines {
		if other, _, ok := strings.Cut(m.Tags[infrav1.MachineNameTagKey], "/"); ok && other != in.m.Namespace {
			return &NamespaceError{in.m.Region, in.m.Name, other}
		}
	}
	return nil
}

// checkControlPlane refuses a manifest whose control plane is not the one that the cluster has. Its objects would be lost, or the cluster would
// have two control planes. EKS does not rename clusters. CAPA makes the name of an EKS cluster from the namespace and the name of the
// AWSManagedControlPlane, and does not let it change either (validateEKSClusterNameSame in its webhooks).
func (in inputs) checkControlPlane() error {
	const otherwise = "choose another name for this one, or delete the cluster first (clusterawsadm cluster delete %s)"
	at, i := in.m.Origin(in.m.InfraObject(), "spec"), slices.IndexFunc(in.inv.Machines, isControlPlane)
	switch other := in.inv.OtherEKS; {
	case in.m.EKS != nil && other != "":
		return fmt.Errorf("%s: the cluster has the EKS cluster %s already, which EKS does not rename: set spec.eksClusterName: %s, or "+otherwise,
			at, other, other, in.m.Name)
	case other != "":
		return fmt.Errorf("%s: the cluster has the EKS cluster %s, whose objects a control plane of machines would not have: "+otherwise, at, other, in.m.Name)
	case in.m.EKS != nil && i >= 0:
		return fmt.Errorf("%s: the cluster has a control plane of machines (%s), whose objects an EKS cluster would not have: "+otherwise,
			at, in.inv.Machines[i].ID, in.m.Name)
	}
	return nil
}

// keyName returns the name of the key pair of a machine.
func (in inputs) keyName(own *string) string {
	name, _ := in.m.KeyPair(own)
	return name
}

// keyNames lists all key pairs that are used.
func (in inputs) keyNames() []string {
	names := map[string]bool{in.keyName(nil): in.spec.Bastion.Enabled}
	for _, g := range in.groupsAndPools(nil) {
		names[in.keyName(g.spec.SSHKeyName)] = true
	}
	for _, p := range in.m.Pools {
		if t := p.Template(); t != nil { // also that of a managed node group
			names[text(t.SSHKeyName)] = true
		}
	}
	maps.DeleteFunc(names, func(name string, used bool) bool { return name == "" || !used })
	return slices.Sorted(maps.Keys(names))
}

// secret looks up a key of a Secret of the manifest.
func (in inputs) secret(name, key string) ([]byte, error) {
	s := in.m.Secrets[name]
	if s == nil {
		return nil, fmt.Errorf("secret %s is not in the manifest", name)
	}
	value, ok := s.Data[key]
	if !ok {
		return nil, fmt.Errorf("secret %s has no key %s", name, key)
	}
	return value, nil
}

// lookup adds a lookup of an existing resource, once for each ID.
func lookup[S graph.State](g *graph.Graph, in inputs, id plan.ID, find graph.Lookup[S], at, path string, more ...graph.Option) *graph.Ref[S] {
	if r, ok := g.Resource(id).(*graph.Ref[S]); ok {
		return r
	}
	return graph.Use(g, id, find, append(more, graph.From(in.m.Origin(at, path)))...)
}

// lookupInVPC is lookup for a resource that is looked for in the VPC of the cluster.
func lookupInVPC[S graph.State](g *graph.Graph, in inputs, vpc *graph.Ref[ec2.VPCState], id plan.ID, find graph.Lookup[S], at, path string) *graph.Ref[S] {
	return lookup(g, in, id, find, at, path, graph.With(graph.On(vpc)))
}

// addKeyPair adds the lookup of a key pair. of is the launch template of a pool; nil for a machine.
func addKeyPair(g *graph.Graph, in inputs, x group, name string, of *ec2.LaunchTemplate) []graph.Edge {
	if name == "" {
		return nil
	}
	at, path := x.specAt, x.specPath+".sshKeyName"
	if _, inherited := in.m.KeyPair(x.spec.SSHKeyName); inherited {
		at, path = in.m.InfraObject(), "spec.sshKeyName"
	}
	find := ec2.Kept(of, ec2.KeyPairByName(name, in.keyNames()), ec2.KeptKey(name))
	return graph.Awaits(lookup(g, in, plan.ID("key-pair/"+name), find, at, path))
}

// addProfile adds the lookup of an instance profile. of is the launch template of a pool; nil for a machine.
func addProfile(g *graph.Graph, in inputs, x group, name string, of *ec2.LaunchTemplate) []graph.Edge {
	if name == "" {
		return nil
	}
	find := ec2.Kept(of, ec2.InstanceProfileByName(name), ec2.KeptProfile(name))
	return graph.Awaits(lookup(g, in, plan.ID("instance-profile/"+name), find, x.specAt, x.specPath+".iamInstanceProfile"))
}
