package topology

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// group is a set of machines that differ only in their names and zones: a
// KubeadmControlPlane, a MachineDeployment, a single Machine, or a MachinePool.
type group struct {
	name         string // of the object
	origin       string // object and path in the manifest: "MachineDeployment/demo-md-0 spec"
	zoneAt       string // object and path of the zone; "" if the manifest names none
	controlPlane bool
	single       bool // a stand-alone Machine
	pool         bool // an Auto Scaling group launches the machines
	count        int
	version      string
	spec         infrav1.AWSMachineSpec
	specAt       string // object of spec, for messages: "AWSMachineTemplate/demo-md-0"
	specPath     string // path of spec in it: "spec.template.spec"
	boot         source // of the bootstrap configuration
	machine      source // of version and failureDomain
	kubeadm      *bootstrapv1.KubeadmConfigSpec
	eks          *bootdata.EKSJoin // only for machines of an EKS cluster
	data         []byte            // bootstrap data of the manifest, if there is no configuration
	zone         string            // failureDomain
	labels       map[string]string // labels of the Nodes

	surge, unavailable *intstr.IntOrString // rolling update; nil: Cluster API's defaults
	inFlight           int                 // most unhealthy machines that a run replaces, in a MachineDeployment
	onDelete           bool                // strategy OnDelete: a run does not replace machines
	rolloutAfter       time.Time           // machines launched earlier are replaced
	renewBefore        time.Duration       // how long before its certificates expire a machine is replaced; 0: never
	deletionOrder      clusterv1.MachineSetDeletionOrder
	instanceName       func(i int) string
	machineName        func(i int) string // name of the Machine object
}

// groupsAndPools lists all groups whose machines are launched by a run or by
// Auto Scaling. plane is the EKS cluster, nil for others.
func (in inputs) groupsAndPools(plane *graph.Ref[eks.ClusterState]) []group {
	all := in.groupsOfMachines(plane)
	for _, p := range in.m.Pools {
		if p.Scaling != nil {
			all = append(all, in.poolGroup(p, plane))
		}
	}
	return all
}

// groupsOfMachines lists the groups whose machines are launched by a run, those
// of the control plane first.
func (in inputs) groupsOfMachines(plane *graph.Ref[eks.ClusterState]) (out []group) {
	if in.m.ControlPlane != nil {
		out = append(out, in.controlPlaneGroup())
	}
	out = append(out, in.singleMachines(true, plane)...)
	for _, d := range in.m.Deployments {
		out = append(out, in.deploymentGroup(d, plane))
	}
	return append(out, in.singleMachines(false, plane)...)
}

// source is a part of an object in the manifest: "KubeadmConfigTemplate/md-0",
// "spec.template.spec".
type source struct{ object, path string }

// templatePath is the path of the machine's spec in an AWSMachineTemplate.
const templatePath = "spec.template.spec"

func (in inputs) controlPlaneGroup() group {
	cp := in.m.ControlPlane
	name := cp.Object.Name
	machine := func(i int) string { return shorten(name, 6) + "-" + suffix(in.m.Namespace, name, strconv.Itoa(i)) }
	return group{
		name: name, origin: in.m.Origin("KubeadmControlPlane/"+name, "spec"), controlPlane: true, count: cp.Replicas(),
		version: cp.Object.Spec.Version, spec: cp.Template.Spec.Template.Spec, specAt: "AWSMachineTemplate/" + cp.Template.Name, specPath: templatePath,
		kubeadm: &cp.Object.Spec.KubeadmConfigSpec, instanceName: machine, machineName: machine,
		surge: cp.Object.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, rolloutAfter: cp.Object.Spec.Rollout.After.Time,
		boot: source{"KubeadmControlPlane/" + name, "spec.kubeadmConfigSpec"}, machine: source{"KubeadmControlPlane/" + name, "spec"},
		renewBefore: time.Duration(cp.Object.Spec.Rollout.Before.CertificatesExpiryDays) * day,
		labels:      NodeLabels(cp.Object.Spec.MachineTemplate.ObjectMeta.Labels),
	}
}

func (in inputs) deploymentGroup(d manifest.Deployment, plane *graph.Ref[eks.ClusterState]) group {
	name, spec := d.Object.Name, d.Object.Spec
	machine := func(i int) string {
		return shorten(name, 12) + "-" + suffix(in.m.Namespace, name) + "-" + suffix(in.m.Namespace, name, strconv.Itoa(i))
	}
	g := group{
		name: name, origin: in.m.Origin("MachineDeployment/"+name, "spec"), count: d.Replicas(), version: spec.Template.Spec.Version,
		spec: d.Template.Spec.Template.Spec, specAt: "AWSMachineTemplate/" + d.Template.Name, specPath: templatePath,
		zoneAt: in.m.Origin("MachineDeployment/"+name, "spec.template.spec.failureDomain"),
		zone:   spec.Template.Spec.FailureDomain, instanceName: machine, machineName: machine, labels: NodeLabels(spec.Template.Labels),
		surge: spec.Rollout.Strategy.RollingUpdate.MaxSurge, unavailable: spec.Rollout.Strategy.RollingUpdate.MaxUnavailable,
		machine:      source{"MachineDeployment/" + name, templatePath},
		onDelete:     spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType,
		rolloutAfter: spec.Rollout.After.Time, deletionOrder: spec.Deletion.Order, inFlight: d.Replicas(),
	}
	if most := spec.Remediation.MaxInFlight; most != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(most, d.Replicas(), true); err == nil {
			g.inFlight = n
		}
	}
	switch {
	case d.Bootstrap != nil:
		g.kubeadm, g.boot = &d.Bootstrap.Spec.Template.Spec, source{"KubeadmConfigTemplate/" + d.Bootstrap.Name, templatePath}
	case d.EKSBootstrap != nil:
		g.eks, g.boot = in.eksJoin(plane, &d.EKSBootstrap.Spec.Template.Spec, nil), source{"EKSConfigTemplate/" + d.EKSBootstrap.Name, templatePath}
	case d.NodeadmBootstrap != nil:
		g.eks, g.boot = in.eksJoin(plane, nil, &d.NodeadmBootstrap.Spec.Template.Spec), source{"NodeadmConfigTemplate/" + d.NodeadmBootstrap.Name, templatePath}
	case spec.Template.Spec.Bootstrap.DataSecretName != nil:
		g.data = in.givenData(*spec.Template.Spec.Bootstrap.DataSecretName)
	}
	return g
}

// singleMachines lists the stand-alone Machines, each a group.
func (in inputs) singleMachines(controlPlane bool, plane *graph.Ref[eks.ClusterState]) (out []group) {
	for _, m := range in.m.Machines {
		if m.ControlPlane != controlPlane {
			continue
		}
		g := group{
			name:         m.Object.Name,
			origin:       in.m.Origin("Machine/"+m.Object.Name, "spec"),
			zoneAt:       in.m.Origin("Machine/"+m.Object.Name, "spec.failureDomain"),
			controlPlane: controlPlane,
			single:       true,
			count:        1,
			version:      m.Object.Spec.Version,
			spec:         m.Infra.Spec,
			specAt:       "AWSMachine/" + m.Infra.Name,
			specPath:     "spec",
			machine:      source{"Machine/" + m.Object.Name, "spec"},
			zone:         m.Object.Spec.FailureDomain,
			instanceName: func(int) string { return m.Infra.Name },
			machineName:  func(int) string { return m.Object.Name },
			labels:       NodeLabels(m.Object.Labels),
		}
		switch {
		case m.Bootstrap != nil:
			g.kubeadm, g.boot = &m.Bootstrap.Spec, source{"KubeadmConfig/" + m.Bootstrap.Name, "spec"}
		case m.EKSBootstrap != nil:
			g.eks, g.boot = in.eksJoin(plane, &m.EKSBootstrap.Spec, nil), source{"EKSConfig/" + m.EKSBootstrap.Name, "spec"}
		case m.NodeadmBootstrap != nil:
			g.eks, g.boot = in.eksJoin(plane, nil, &m.NodeadmBootstrap.Spec), source{"NodeadmConfig/" + m.NodeadmBootstrap.Name, "spec"}
		case m.Object.Spec.Bootstrap.DataSecretName != nil:
			g.data = in.givenData(*m.Object.Spec.Bootstrap.DataSecretName)
		}
		out = append(out, g)
	}
	return out
}

// poolGroup returns the group of a pool. A launch template without a key pair has none:
// Cluster API's default key pair is for single machines only.
func (in inputs) poolGroup(p manifest.Pool, plane *graph.Ref[eks.ClusterState]) group {
	var (
		t        expinfrav1.AWSLaunchTemplate
		name, at string
		more     infrav1.Tags
		ignition *infrav1.Ignition
	)
	if m := p.Managed; m != nil {
		t, name, at, more = *m.Spec.AWSLaunchTemplate, NodeGroupTemplate(in.m, m), "AWSManagedMachinePool/"+m.Name, m.Spec.AdditionalTags
	} else {
		s := &p.Scaling.Spec
		t, name, at, more, ignition = s.AWSLaunchTemplate, p.Scaling.Name, "AWSMachinePool/"+p.Scaling.Name, s.AdditionalTags, s.Ignition
	}
	machine, key := p.Object.Spec.Template.Spec, text(t.SSHKeyName)
	g := group{
		name: name, pool: true, origin: in.m.Origin("MachinePool/"+p.Object.Name, "spec"), version: machine.Version,
		specAt: at, specPath: "spec.awsLaunchTemplate",
		spec: infrav1.AWSMachineSpec{
			InstanceType: t.InstanceType, AMI: t.AMI, ImageLookupFormat: t.ImageLookupFormat, ImageLookupOrg: t.ImageLookupOrg,
			ImageLookupBaseOS: t.ImageLookupBaseOS, AdditionalTags: more, IAMInstanceProfile: t.IamInstanceProfile,
			AdditionalSecurityGroups: t.AdditionalSecurityGroups, SSHKeyName: &key, Ignition: ignition,
			CloudInit: infrav1.CloudInit{InsecureSkipSecretsManager: true}, // the user data contains no secret
		},
	}
	switch c := p.Bootstrap; {
	case c.Kubeadm != nil:
		if g.kubeadm = &c.Kubeadm.Spec; boot.ByToken(g.kubeadm) {
			g.spec.CloudInit = in.poolSecrets()
		}
		if g.kubeadm.Format == bootstrapv1.Ignition && ignition == nil && in.spec.S3Bucket == nil { // as in CAPA, the user data then contains all of it
			g.spec.Ignition = &infrav1.Ignition{Version: infrav1.DefaultIgnitionVersion, StorageType: infrav1.IgnitionStorageTypeOptionUnencryptedUserData}
		}
	case c.EKS != nil:
		g.eks = in.eksJoin(plane, &c.EKS.Spec, nil)
	case c.Nodeadm != nil:
		g.eks = in.eksJoin(plane, nil, &c.Nodeadm.Spec)
	case machine.Bootstrap.DataSecretName != nil:
		g.data = in.givenData(*machine.Bootstrap.DataSecretName)
	}
	return g
}

// NodeGroupTemplate is the name of the launch template of a node group.
func NodeGroupTemplate(m *manifest.Cluster, pool *expinfrav1.AWSManagedMachinePool) string {
	return m.EKS.ControlPlane.Name + "-" + pool.Name
}

// poolSecrets returns the backend for machines of pools, which an AWSMachinePool does not
// specify: that of the control plane. The join token is renewed there, and a launch
// template would keep an old one.
func (in inputs) poolSecrets() (c infrav1.CloudInit) {
	if cp := in.m.ControlPlane; cp != nil {
		c.SecureSecretsBackend = cp.Template.Spec.Template.Spec.CloudInit.SecureSecretsBackend
	}
	return c
}

// eksJoin says how machines join an EKS cluster.
func (in inputs) eksJoin(
	plane *graph.Ref[eks.ClusterState],
	config *eksbootstrapv1.EKSConfigSpec,
	nodeadm *eksbootstrapv1.NodeadmConfigSpec,
) *bootdata.EKSJoin {
	return &bootdata.EKSJoin{Cluster: plane, Config: config, Nodeadm: nodeadm, Secret: in.secret}
}

// givenData returns bootstrap data from a Secret of the manifest.
func (in inputs) givenData(secret string) []byte {
	if s := in.m.Secrets[secret]; s != nil {
		return s.Data["value"]
	}
	return nil
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
