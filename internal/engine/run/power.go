package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// power is the phase of "cluster stop" and "cluster start". It stops or starts machines, and sets the sizes of pools
// (docs/adr/0047-stop-and-start.md).
type power struct {
	*Looking
	starts bool

	all        *Deleting       // all that the cluster has
	before     *cloud.Stopped  // what the record of the lock says; nil: the cluster is not stopped
	managed    bool            // EKS runs the control plane
	auto       bool            // EKS Auto Mode launches machines
	control    []existing      // machines of the control plane, and the bastion
	workers    []existing      // other machines that are in no pool
	groups     []existingGroup // Auto Scaling groups
	nodeGroups []existingNodes // managed node groups of EKS
	fargate    []string        // names of Fargate profiles
	keys       *boot.PKI       // of a self-managed cluster
	token      bool            // the account has its join token
	endpoint   string          // host:port of its API server
	cost       *plan.Cost      // nil: not known
}

// existing is a machine, and its resource in the graph of the cluster.
type existing struct {
	ec2.InstanceState
	in graph.Resource
}

type existingGroup struct {
	autoscaling.GroupState
	in     graph.Resource
	server cost.Server // a machine that it launches
}

type existingNodes struct {
	eks.NodeGroupState
	in graph.Resource
}

// PlanStop returns what Stop would do. It changes nothing.
func (c *Cluster) PlanStop(ctx context.Context) (plan.Plan, error) { return c.planPower(ctx, false) }

// PlanStart returns what Start would do. It changes nothing.
func (c *Cluster) PlanStart(ctx context.Context) (plan.Plan, error) { return c.planPower(ctx, true) }

// Stop stops the machines of the cluster, and empties its pools.
func (c *Cluster) Stop(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return c.setPower(ctx, o, false)
}

// Start starts the machines that Stop has stopped, and restores the sizes of the pools.
func (c *Cluster) Start(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	return c.setPower(ctx, o, true)
}

// StartCommand is the command of a run that starts a stopped cluster.
const StartCommand = "start"

func (c *Cluster) planPower(ctx context.Context, starts bool) (plan.Plan, error) {
	p := &power{Looking: &Looking{Session: Begin(c, nil)}, starts: starts}
	last, err := p.Cloud.LastRun(cloud.ReadOnly(ctx))
	if err != nil {
		return plan.Plan{}, Refused(fmt.Errorf("read the lock: %w", err))
	}
	if last != nil {
		p.before = last.Stopped
	}
	err = p.look(ctx)
	if err == nil {
		err = p.checkPower(ctx)
	}
	return p.public(), err
}

func (c *Cluster) setPower(ctx context.Context, o cluster.Options, starts bool) (cluster.Result, error) {
	p, command := &power{Looking: &Looking{Session: Begin(c, o.Observe)}, starts: starts}, "stop"
	if starts {
		command = StartCommand
	}
	if err := p.Lock(ctx, command); err != nil {
		return p.result(err)
	}
	defer p.Unlock(ctx)
	p.before = p.Cloud.Lock.Stopped()
	for _, step := range []func(context.Context) error{
		p.look,
		func(context.Context) error { return p.CheckManager() },
		p.checkPower,
		func(context.Context) error { return p.confirmed(o.Confirm, p.public()) },
		p.carryOut,
	} {
		if err := step(ctx); err != nil {
			return p.result(err)
		}
	}
	return p.result(nil)
}

// carryOut records that the cluster is stopped before the first machine is, and that it runs after the last one has started.
func (p *power) carryOut(ctx context.Context) error {
	if !p.starts && !p.Plan.Empty() {
		if err := p.Cloud.Lock.SetStopped(ctx, p.record()); err != nil {
			return fmt.Errorf("record that the cluster is stopped: %w", err)
		}
	}
	if p.starts && p.before != nil && !p.Plan.Empty() {
		begun := *p.before
		begun.Starting = true
		if err := p.Cloud.Lock.SetStopped(ctx, &begun); err != nil {
			return fmt.Errorf("record that the cluster starts: %w", err)
		}
	}
	if !p.Plan.Empty() {
		if err := p.executor.Apply(ctx, p.Built.Graph); err != nil {
			return err
		}
	}
	if p.starts && p.lostQuorum() {
		return &plan.NoQuorumError{Cluster: p.Cluster.Name, Members: p.before.Members, Left: len(p.members())}
	}
	if p.starts && p.before != nil {
		if err := p.Cloud.Lock.SetStopped(ctx, nil); err != nil {
			return fmt.Errorf("record that the cluster runs: %w", err)
		}
	}
	return nil
}

// record returns what the record of the lock says of a cluster that this run stops. The sizes that an earlier run has
// recorded stay.
func (p *power) record() *cloud.Stopped {
	s := &cloud.Stopped{Since: p.Cloud.Now().UTC(), Pools: map[string]cloud.PoolSize{}, Members: len(p.members())}
	for _, g := range p.groups {
		s.Pools[groupKey(g.ID)] = cloud.PoolSize{Min: g.Min, Max: g.Max, Desired: g.Desired}
	}
	for _, g := range p.nodeGroups {
		s.Pools[nodesKey(g.Name)] = cloud.PoolSize{Min: g.MinSize, Max: g.MaxSize, Desired: g.Desired}
	}
	if p.before != nil {
		s.Since, s.Members = p.before.Since, max(p.before.Members, s.Members)
		for name, size := range p.before.Pools {
			s.Pools[name] = size
		}
	}
	return s
}

func groupKey(name string) string { return autoscaling.GroupKind + "/" + name }

func nodesKey(name string) string { return eks.NodeGroupKind + "/" + name }

// public returns the plan with its cost.
func (p *power) public() plan.Plan {
	out := p.PublicPlan()
	out.Cost = p.cost
	return out
}

// result returns what the run has done.
func (p *power) result(err error) (cluster.Result, error) {
	res, err := p.Result(p.public(), err)
	res.Endpoint = p.endpoint
	res.NotFound = p.all != nil && len(p.all.Plan.Steps) == 0 && p.before == nil
	return res, err
}

// look reads what the cluster has, and plans.
func (p *power) look(ctx context.Context) error {
	p.all = NewDeleting(p.Session, cluster.Options{})
	if err := p.all.Look(ctx, false); err != nil {
		return err
	}
	reading := cloud.InSnapshot(cloud.ReadOnly(ctx))
	if err := p.readControlPlane(reading); err != nil {
		return Refused(err)
	}
	p.sort()
	if err := p.connect(reading); err != nil {
		return Refused(err)
	}
	p.Built = topology.Cluster{Graph: p.graph()}
	var err error
	if p.Plan, err = p.executor.Plan(ctx, p.Built.Graph); err != nil {
		return Refused(err)
	}
	setAreas(p.Plan.Steps)
	p.price(ctx)
	return nil
}

// readControlPlane reads whether EKS runs the control plane.
func (p *power) readControlPlane(ctx context.Context) error {
	p.managed = p.Cluster.IsEKS()
	if p.Cluster.Manifest != nil && !p.managed {
		return nil
	}
	tagged, err := eks.Tagged(ctx, p.Cloud)
	if tagged != nil {
		p.managed, p.auto = true, tagged.Auto.Enabled
	}
	return err
}

// sort finds the machines and pools among the resources of the cluster.
func (p *power) sort() {
	templates := map[string]cost.Server{} // by ID
	for _, n := range p.all.Built.Resources() {
		if t, is := n.Observed().(*ec2.LaunchTemplateState); is {
			templates[t.ID] = t.Server
		}
	}
	for _, n := range p.all.Built.Resources() {
		switch have := n.Observed().(type) {
		case *ec2.InstanceState:
			switch m := (existing{*have, n}); {
			case have.IsTerminating():
			case slices.Contains([]string{topology.RoleControlPlane, topology.RoleBastion}, have.Tags[cloud.RoleTag]):
				p.control = append(p.control, m)
			default:
				p.workers = append(p.workers, m)
			}
		case *autoscaling.GroupState:
			if !have.Deleting() {
				p.groups = append(p.groups, existingGroup{*have, n, templates[have.TemplateID()]})
			}
		case *eks.NodeGroupState:
			if have.IsOwned(p.Cloud) && !have.Deleting() {
				p.nodeGroups = append(p.nodeGroups, existingNodes{*have, n})
			}
		case *eks.FargateProfileState:
			p.fargate = append(p.fargate, have.Name)
		}
	}
}

// members returns the machines of the control plane, without the bastion.
func (p *power) members() (out []ec2.InstanceState) {
	for _, m := range p.control {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane {
			out = append(out, m.InstanceState)
		}
	}
	return out
}

// halted reports whether a machine of the control plane is stopped: etcd cannot be asked any more.
func (p *power) halted() bool {
	return slices.ContainsFunc(p.members(), func(m ec2.InstanceState) bool { return m.Stopped })
}

// idle reports whether there is nothing to start: no run has stopped the cluster, and no machine is stopped.
func (p *power) idle() bool {
	stopped := func(m existing) bool { return m.Stopped }
	return p.before == nil && !slices.ContainsFunc(p.control, stopped) && !slices.ContainsFunc(p.workers, stopped)
}

// lostQuorum reports whether so many machines of the control plane were lost while the cluster was stopped that etcd has no quorum. The API
// server then does not answer, even after the other machines have started.
func (p *power) lostQuorum() bool {
	return p.before != nil && !p.managed && len(p.members()) < plan.Quorum(p.before.Members)
}

// connect reads how the API server of a self-managed cluster is reached.
func (p *power) connect(ctx context.Context) (err error) {
	if p.managed || len(p.members()) == 0 {
		return nil
	}
	if p.keys, err = secrets.StoredPKI(ctx, p.Cloud); err != nil {
		return fmt.Errorf("read the keys of the cluster: %w", err)
	}
	if p.keys == nil {
		return fmt.Errorf("the account has no keys of cluster %s in %s: without them, neither etcd nor the API server can be asked", p.Cluster.Name, p.Cluster.Region)
	}
	stored, err := secrets.PKIParameters(ctx, p.Cloud)
	if err != nil {
		return err
	}
	p.token = len(stored.Parts[secrets.TokenName]) > 0
	if p.endpoint, err = p.knownEndpoint(ctx); err != nil && p.Cluster.Manifest == nil {
		err = errors.Join(err, errors.New("name its manifest with -f FILE"))
	}
	return err
}

// api connects the graph to the API server.
func (p *power) api(g *graph.Graph) *incluster.API {
	host, port, _ := net.SplitHostPort(p.endpoint) // it is one of a load balancer, or of the manifest
	number, _ := strconv.ParseInt(port, 10, 32)
	keys := graph.Use(g, secrets.PKIKind, func(ctx context.Context, c *cloud.Clients) (*secrets.PKIState, error) {
		stored, err := secrets.StoredPKI(ctx, c)
		if stored == nil || err != nil {
			return nil, err
		}
		return &secrets.PKIState{Path: c.ParameterPath("pki"), PKI: stored}, nil
	})
	return &incluster.API{Endpoint: bootdata.Endpoint{Host: host, Port: int32(number)}, PKI: keys, Without: "a network that reaches the API server"}
}

// graph returns the graph of the run: when the cluster stops, the control plane is last, when it starts, first.
func (p *power) graph() *graph.Graph {
	g := graph.New()
	if !p.starts {
		gone := append(p.addMachines(g, p.workers, nil), p.addPools(g, nil)...)
		if len(p.members()) > 0 && !p.halted() && !p.managed {
			gone = []graph.Resource{graph.Expect(g, "etcd-members", &incluster.EtcdHealth{
				API: p.api(g), Machines: len(p.members()), After: graph.On(gone...),
			})}
		}
		p.addMachines(g, p.control, graph.On(gone...))
		return g
	}
	if p.idle() {
		return g
	}
	first := p.addMachines(g, p.control, nil)
	p.addMachines(g, p.workers, graph.On(first...)) // their kubelets wait for the API server, and a later run can repair what keeps it from answering
	if p.lostQuorum() {
		return g
	}
	if len(p.members()) > 0 && !p.managed {
		api := p.api(g)
		first = []graph.Resource{graph.Expect(g, incluster.APIServerKind, &incluster.APIServer{API: api, After: graph.On(first...)})}
		if len(p.groups) > 0 && p.token {
			first = append(first, graph.Install(g, incluster.JoinTokenKind, topology.KeptJoinToken(api, p.members(), graph.On(first...))))
		}
	}
	p.addPools(g, graph.On(first...))
	return g
}

// addMachines adds machines.
func (p *power) addMachines(g *graph.Graph, all []existing, after []graph.Edge) (added []graph.Resource) {
	for _, m := range all {
		added = append(added, graph.Add(g, m.in.ID(), &ec2.Power{ID: m.ID, On: p.starts, Needed: after}, p.from(m.in)))
	}
	return added
}

// addPools adds the pools.
func (p *power) addPools(g *graph.Graph, after []graph.Edge) (added []graph.Resource) {
	for _, x := range p.groups {
		size, known := p.size(groupKey(x.ID))
		if known {
			added = append(added, graph.Add(g, x.in.ID(), &autoscaling.GroupSize{
				Name: x.ID, Min: size.Min, Max: size.Max, Desired: size.Desired, Server: x.server, Needed: after,
			}, p.from(x.in)))
		}
	}
	for _, x := range p.nodeGroups {
		size, known := p.size(nodesKey(x.Name))
		if known {
			added = append(added, graph.Add(g, x.in.ID(), &eks.NodeGroupSize{
				Cluster: x.Cluster, Name: x.Name, Min: size.Min, Desired: size.Desired, Needed: after,
			}, p.from(x.in)))
		}
	}
	return added
}

// from returns the option for the part of the manifest that defines a resource. By name, there is no manifest.
func (p *power) from(r graph.Resource) graph.Option {
	if p.Cluster.Manifest == nil {
		return graph.From("")
	}
	return graph.From(r.Origin())
}

// size returns the size that a pool gets: none, or the one that it had before. A pool of which nothing is recorded keeps its size.
func (p *power) size(key string) (size cloud.PoolSize, known bool) {
	if !p.starts {
		return cloud.PoolSize{}, true
	}
	if p.before != nil {
		size, known = p.before.Pools[key]
	}
	return size, known
}

// price computes what the cluster costs before and after the run. What the run does not touch costs the same.
func (p *power) price(ctx context.Context) {
	if t := p.Cluster.Target; t.Cost && !p.Plan.Empty() {
		list := cost.NewList(p.Cloud, cost.OpenCache(t.CacheDir, p.Cloud.Region, p.Cloud.Clock.Now))
		ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
		report := cost.Begin(ctx, list, p.Built.Graph).Finish(p.Built.Graph, p.Plan)
		rest := p.all.Plan
		rest.Steps = slices.DeleteFunc(slices.Clone(rest.Steps), func(s plan.Step) bool { return p.Built.Resource(s.Resource) != nil })
		same := cost.Begin(ctx, list, graph.New()).Finish(p.all.Built.Graph, rest)
		for _, l := range same.Lines {
			l.After = l.Before
			report.Lines = append(report.Lines, l)
		}
		report.Unpriced, report.NotCounted = append(report.Unpriced, same.Unpriced...), append(report.NotCounted, same.NotCounted...)
		for _, w := range append(report.Warnings, same.Warnings...) {
			p.Warn("%s", w)
		}
		if len(report.Lines) > 0 {
			p.cost = costOf(report)
		}
	}
}
