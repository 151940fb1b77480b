package topology

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// group is a set of machines that are alike but for their names and zones: a
// KubeadmControlPlane, a MachineDeployment, a single Machine, or an
// AWSMachinePool.
type group struct {
	name         string // of the object
	origin       string // object and path in the manifest: "MachineDeployment/demo-md-0 spec"
	controlPlane bool
	pool         bool // an Auto Scaling group makes the machines
	count        int
	version      string
	spec         infrav1.AWSMachineSpec
	specAt       string // object of spec, for messages: "AWSMachineTemplate/demo-md-0"
	specPath     string // path of spec in it: "spec.template.spec"
	kubeadm      *bootstrapv1.KubeadmConfigSpec
	eks          *bootdata.EKSJoin // of machines of a cluster of EKS
	data         []byte            // given bootstrap data, when there is no configuration
	zone         string            // failureDomain
	template     string            // templateOf it, as soon as machines are placed
	labels       map[string]string // that nodes are to have

	surge, unavailable *intstr.IntOrString // by how many there may be more or fewer while they are replaced; nil: Cluster API's defaults
	onDelete           bool                // only those are replaced that somebody removes
	after              time.Time           // machines that were launched before are replaced
	renew              time.Duration       // how long before its certificates expire a machine is replaced; 0: never
	order              clusterv1.MachineSetDeletionOrder
	nameOf             func(i int) string
	machineOf          func(i int) string // name of the Machine object
}

// machines adds all machines, and what they have in common.
func (b *builder) machines() {
	b.oneNamespace()
	if b.m.EKS == nil {
		b.certificates()
	}
	b.secrets()
	b.keepers()
	for _, g := range b.allGroups() {
		b.made = append(b.made, b.machinesOf(g)...)
	}
	pools := b.pools()
	after := b.control()
	b.rollWorkers(after)
	b.unlabelled()
	b.retireMachines()
	b.retirePools(pools)
}

// NamespaceError says that another cluster has the name already.
type NamespaceError struct{ Region, Name, Namespace string }

func (e *NamespaceError) Error() string {
	return fmt.Sprintf("%s has a cluster of the name %s in the namespace %s: choose another name", e.Region, e.Name, e.Namespace)
}

// oneNamespace refuses a cluster whose name another one has that is in another
// namespace: to AWS, as tags go, the two would be one.
func (b *builder) oneNamespace() {
	for _, m := range b.inv.Machines {
		if other, _, ok := strings.Cut(m.Tags["MachineName"], "/"); ok && other != b.m.Namespace {
			b.fail("%w", &NamespaceError{b.m.Region, b.m.Name, other})
		}
	}
}

// certificates adds the cluster's keys.
func (b *builder) certificates() {
	config, at := b.clusterConfiguration()
	b.keys = graph.Add(b.Graph, "certificates", &secrets.PKI{
		Given: boot.GivenPKI(b.m.Name, b.m.Secrets), Used: b.inv.Initialized || b.othersControl(),
		Algorithm: string(config.EncryptionAlgorithm), Days: config.CACertificateValidityPeriodDays,
	}, graph.From(at))
}

// secrets adds the places where machines fetch what they boot with, to be
// swept.
func (b *builder) secrets() {
	backends := map[boot.Backend]graph.ID{boot.SecretsManager: "bootstrap-secrets", boot.ParameterStore: "bootstrap-parameters"}
	for _, backend := range []boot.Backend{boot.SecretsManager, boot.ParameterStore} {
		if slices.ContainsFunc(b.groupsAndPools(), func(g group) bool { return backendOf(g) == backend }) {
			graph.Sweep(b.Graph, backends[backend], &secrets.BootstrapSecrets{Backend: backend})
		}
	}
}

// clusterConfiguration returns what kubeadm is told of the cluster as a whole,
// and where the manifest says so.
func (b *builder) clusterConfiguration() (config bootstrapv1.ClusterConfiguration, at string) {
	if cp := b.m.ControlPlane; cp != nil {
		return cp.Object.Spec.KubeadmConfigSpec.ClusterConfiguration, b.m.Origin("KubeadmControlPlane/"+cp.Object.Name, "spec.kubeadmConfigSpec")
	}
	for _, m := range b.m.Machines { // the first of the control plane begins the cluster
		if m.ControlPlane && m.Bootstrap != nil {
			return m.Bootstrap.Spec.ClusterConfiguration, b.m.Origin("KubeadmConfig/"+m.Bootstrap.Name, "spec")
		}
	}
	return config, ""
}

// allGroups lists the groups of machines, control plane first.
func (b *builder) allGroups() (out []group) {
	if cp := b.m.ControlPlane; cp != nil {
		name := cp.Object.Name
		machine := func(i int) string { return shorten(name, 6) + "-" + suffix(b.m.Namespace, name, strconv.Itoa(i)) }
		out = append(out, group{
			name: name, origin: b.m.Origin("KubeadmControlPlane/"+name, "spec"), controlPlane: true, count: cp.Replicas(),
			version: cp.Object.Spec.Version, spec: cp.Template.Spec.Template.Spec, specAt: "AWSMachineTemplate/" + cp.Template.Name, specPath: templatePath,
			kubeadm: &cp.Object.Spec.KubeadmConfigSpec, nameOf: machine, machineOf: machine,
			surge: cp.Object.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, after: cp.Object.Spec.Rollout.After.Time,
			renew:  time.Duration(cp.Object.Spec.Rollout.Before.CertificatesExpiryDays) * day,
			labels: nodeLabels(cp.Object.Spec.MachineTemplate.ObjectMeta.Labels),
		})
	}
	out = append(out, b.singles(true)...)
	for _, d := range b.m.Deployments {
		name := d.Object.Name
		machine := func(i int) string {
			return shorten(name, 12) + "-" + suffix(b.m.Namespace, name) + "-" + suffix(b.m.Namespace, name, strconv.Itoa(i))
		}
		g := group{
			name: name, origin: b.m.Origin("MachineDeployment/"+name, "spec"), count: d.Replicas(), version: d.Object.Spec.Template.Spec.Version,
			spec: d.Template.Spec.Template.Spec, specAt: "AWSMachineTemplate/" + d.Template.Name, specPath: templatePath,
			zone: d.Object.Spec.Template.Spec.FailureDomain, nameOf: machine, machineOf: machine, labels: nodeLabels(d.Object.Spec.Template.Labels),
		}
		g.strategy(d.Object)
		if d.Bootstrap != nil {
			g.kubeadm = &d.Bootstrap.Spec.Template.Spec
		} else if d.EKSBootstrap != nil {
			g.eks = b.join(&d.EKSBootstrap.Spec.Template.Spec, nil)
		} else if d.NodeadmBootstrap != nil {
			g.eks = b.join(nil, nodeadmSpec(d.NodeadmBootstrap))
		} else if s := d.Object.Spec.Template.Spec.Bootstrap.DataSecretName; s != nil {
			g.data = b.givenData(*s)
		}
		out = append(out, g)
	}
	return append(out, b.singles(false)...)
}

// templatePath is where an AWSMachineTemplate says what machines are like.
const templatePath = "spec.template.spec"

// singles lists the stand-alone Machines of one kind.
func (b *builder) singles(controlPlane bool) (out []group) {
	for _, m := range b.m.Machines {
		if m.ControlPlane != controlPlane {
			continue
		}
		g := group{
			name: m.Object.Name, origin: b.m.Origin("Machine/"+m.Object.Name, "spec"), controlPlane: controlPlane, count: 1, version: m.Object.Spec.Version,
			spec: m.Infra.Spec, specAt: "AWSMachine/" + m.Infra.Name, specPath: "spec", zone: m.Object.Spec.FailureDomain,
			nameOf: func(int) string { return m.Infra.Name }, machineOf: func(int) string { return m.Object.Name }, labels: nodeLabels(m.Object.Labels),
		}
		if m.Bootstrap != nil {
			g.kubeadm = &m.Bootstrap.Spec
		} else if m.EKSBootstrap != nil {
			g.eks = b.join(&m.EKSBootstrap.Spec, nil)
		} else if m.NodeadmBootstrap != nil {
			g.eks = b.join(nil, &m.NodeadmBootstrap.Spec)
		} else if s := m.Object.Spec.Bootstrap.DataSecretName; s != nil {
			g.data = b.givenData(*s)
		}
		out = append(out, g)
	}
	return out
}

// givenData returns bootstrap data that the manifest brings in a Secret.
func (b *builder) givenData(secret string) []byte {
	if s := b.m.Secrets[secret]; s != nil {
		return s.Data["value"]
	}
	return nil
}

// existing is a machine of the inventory that takes the place of an index.
type existing struct {
	name, machine, claimed string
	zone                   string
	state                  ec2.InstanceState
}

// assign gives the machines of the inventory their places in the group: by
// their node tag; or, made by Cluster API, by their names; or, launched
// together and not yet named, in any free place.
func (b *builder) assign(g group) map[int]existing {
	taken, base := map[int]existing{}, "machine/"+g.name
	var loose []existing
	likeOurs := b.machinePattern(g)
	for _, m := range b.inv.Machines {
		node, e := m.Tags[cloud.ResourceTag], existing{name: m.Tags["Name"], machine: strings.TrimPrefix(m.Tags["MachineName"], b.m.Namespace+"/"), zone: m.Zone, state: m}
		at, indexed := strings.CutPrefix(node, base+"/")
		i, err := strconv.Atoi(at)
		switch {
		case m.Status == "shutting-down":
		case indexed && err == nil:
			if !likeOurs.MatchString(m.Tags["MachineName"]) || e.name != e.machine { // else it may be Cluster API's name, and stays
				e = existing{zone: m.Zone, state: m}
			}
			taken[i] = e
		case node == base:
			loose = append(loose, existing{claimed: m.ID, zone: m.Zone, state: m})
		case node == "" && (likeOurs.MatchString(m.Tags["MachineName"]) || g.count == 1 && m.Tags["Name"] == g.nameOf(0)):
			loose = append(loose, e)
		}
	}
	fill(taken, loose)
	return taken
}

// machinePattern matches the MachineName tags that Cluster API gives to the
// machines of a group.
func (b *builder) machinePattern(g group) *regexp.Regexp {
	set := `-[a-z0-9]{5,10}` // of the MachineSet, which a control plane has none of
	if g.controlPlane {
		set = ""
	}
	return regexp.MustCompile(`^` + regexp.QuoteMeta(b.m.Namespace+"/"+g.name) + set + `-[a-z0-9]{5}$`)
}

// fill gives machines the lowest places that are free.
func fill(taken map[int]existing, loose []existing) {
	for i, next := 0, 0; next < len(loose); i++ {
		if _, ok := taken[i]; !ok {
			taken[i] = loose[next]
			next++
		}
	}
}

// machinesOf adds the machines of a group, but for those that are to take the
// place of others.
func (b *builder) machinesOf(g group) (out []Machine) {
	g.template = templateOf(g)
	taken := b.assign(g)
	occupied := map[int]bool{}
	for i := range taken {
		occupied[i] = true
	}
	b.warnOfExpiry(g, taken)
	old := b.outdated(g, taken)
	b.remarkOn(g, taken)
	stay, fresh := places(g.count, taken, occupied, g.order)
	for _, i := range stay {
		out = append(out, g.made(b.machine(g, i, taken[i], true)))
	}
	if len(old) > 0 {
		b.rollouts = append(b.rollouts, rollout{g, out, fresh, old})
		return out
	}
	after := graph.Awaits(b.etcdMembers(g, fresh)...)
	for _, i := range fresh {
		out = append(out, g.made(b.machine(g, i, existing{}, false, after...)))
	}
	return out
}

// made describes a machine of the group.
func (g group) made(n *graph.Ref[ec2.InstanceState]) Machine {
	return Machine{g.name, g.controlPlane, external(g), n, g.labels}
}

// machine adds one machine.
func (b *builder) machine(g group, i int, e existing, exists bool, after ...graph.Edge) *graph.Ref[ec2.InstanceState] {
	id := graph.ID(fmt.Sprintf("machine/%s/%d", g.name, i))
	r := b.instance(g, i, id, e)
	zone := g.zone
	switch {
	case exists && g.zone == "":
		zone = e.zone
	case zone == "" && g.controlPlane && g.count > 1:
		zone = b.spread(g, i)
	}
	r.Subnet, r.Pinned = b.placed(g, zone, exists)
	if r.Subnet == nil {
		return graph.Use(b.Graph, id, nothing) // b.err says why
	}
	if !exists {
		r.Image = b.image(g)
		data := b.boot(g, i, id)
		r.Boot = data
		b.keeps(g, r, data)
		r.Needed = append(r.Needed, b.keyPair(r.Key)...)
		r.Needed = append(r.Needed, b.profile(g.spec.IAMInstanceProfile)...)
		r.Needed = append(r.Needed, b.net.egress[b.subnetName(r.Subnet)]...)
	}
	return graph.Add(b.Graph, id, r, graph.From(g.origin), graph.With(after))
}

// instance returns a machine without its place.
func (b *builder) instance(g group, i int, id graph.ID, e existing) *ec2.Instance {
	role := roleNode
	if g.controlPlane {
		role = roleControlPlane
	}
	name, machine := g.nameOf(i), g.machineOf(i)
	if e.name != "" {
		name = e.name
	}
	if e.machine != "" {
		machine = e.machine
	}
	own := cloud.Tags{"Name": name, "MachineName": b.m.Namespace + "/" + machine, cloud.ResourceTag: string(id)}
	common := b.machineTags(role, g.spec.AdditionalTags)
	if given, ok := common["Name"]; ok {
		own["Name"] = given // the user's wins
	}
	r := &ec2.Instance{Spec: g.spec, Key: b.keyOf(g.spec.SSHKeyName), Tags: common.With(own), Batch: own, Claimed: e.claimed}
	if e.state.ID == "" || e.state.Tags[cloud.TemplateTag] != "" || b.o.Wait.asks() { // else nobody can be asked whether it is true
		r.Tags[cloud.TemplateTag] = g.template
	}
	r.Outdated = g.onDelete && b.outdatedBecause(g, e.state) != ""
	r.Groups, r.EKS = b.groupsOf(g)
	return r
}

// groupsOf returns the security groups of machines, and the cluster of EKS in
// whose own they are (facts C.4).
func (b *builder) groupsOf(g group) (groups []*graph.Ref[ec2.SecurityGroupState], cluster graph.Resource) {
	roles := []infrav1.SecurityGroupRole{infrav1.SecurityGroupNode, infrav1.SecurityGroupLB}
	switch {
	case b.m.EKS != nil && g.spec.SecurityGroupOverrides[infrav1.SecurityGroupNode] == "":
		roles, cluster = []infrav1.SecurityGroupRole{infrav1.SecurityGroupEKSNodeAdditional}, b.plane
	case b.m.EKS != nil:
		roles = []infrav1.SecurityGroupRole{infrav1.SecurityGroupNode, infrav1.SecurityGroupEKSNodeAdditional}
	case g.controlPlane:
		roles = append(roles, infrav1.SecurityGroupControlPlane)
	}
	for _, role := range roles {
		groups = append(groups, b.machineGroup(g, role))
	}
	for n, given := range g.spec.AdditionalSecurityGroups {
		if given.ID == nil {
			groups = append(groups, b.filteredGroup(g, n, given.Filters))
		}
	}
	return groups, cluster
}

// spread returns the zone of the i-th control-plane machine: round and round
// the zones that have a private subnet and offer the type.
func (b *builder) spread(g group, i int) string {
	var zones []string
	public := b.wantsPublic(g) || len(b.net.of(false)) == 0
	for _, s := range b.net.of(public) {
		if !slices.Contains(zones, s.zone) && b.offered(g.spec.InstanceType, s.zone) {
			zones = append(zones, s.zone)
		}
	}
	if len(zones) == 0 {
		return ""
	}
	return zones[i%len(zones)]
}

func (b *builder) wantsPublic(g group) bool { return g.spec.PublicIP != nil && *g.spec.PublicIP }

// offered reports whether a zone has the type. What is not known is hoped for.
func (b *builder) offered(instanceType, zone string) bool {
	t, ok := b.inv.Types[instanceType]
	return !ok || t.Zones == nil || slices.Contains(t.Zones, zone)
}
