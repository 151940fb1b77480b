package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// checkPower returns a RefusedError if the machines of the cluster should not be stopped, and warns of what a stop changes.
func (p *power) checkPower(ctx context.Context) error {
	switch {
	case p.starts:
		return nil
	case len(p.Plan.Steps) == 0 && len(p.all.Plan.Steps) > 0:
		return &plan.RefusedError{Reasons: []error{p.nothingToStop()}}
	case p.Plan.Empty():
		return nil
	}
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	var reasons []string
	for _, find := range []func(context.Context) ([]string, error){p.machinesThatStay, p.poolsThatStay, p.controlPlaneAtRisk} {
		found, err := find(ctx)
		if err != nil {
			return Refused(err)
		}
		reasons = append(reasons, found...)
	}
	if err := plan.RefusalFor(reasons); err != nil {
		return err
	}
	if err := p.record().Fits(); err != nil {
		return Refused(err)
	}
	if err := p.askEtcd(ctx); err != nil {
		return Refused(err)
	}
	return p.warnOfStop(ctx)
}

// autoStays is the reason why a cluster with EKS Auto Mode cannot be stopped.
const autoStays = "EKS Auto Mode launches machines for the pods that lose theirs, and stops none: scale the workloads to zero instead, and EKS terminates its machines"

// nothingToStop returns the error for a cluster that has no machines and no pools that could be stopped.
func (p *power) nothingToStop() error {
	switch {
	case p.auto:
		return errors.New(autoStays)
	case len(p.fargate) > 0:
		return fmt.Errorf("%w; to stop pods on Fargate, scale their workloads to zero", errNothingToStop)
	}
	return errNothingToStop
}

// machinesThatStay lists the machines that EC2 does not stop.
func (p *power) machinesThatStay(ctx context.Context) (reasons []string, err error) {
	if p.auto {
		reasons = append(reasons, autoStays)
	}
	for n, m := range slices.Concat(p.control, p.workers) {
		why := ""
		switch {
		case m.Stopped:
		case !m.IsOwned(p.Cloud):
			why = "a controller in the cluster, such as Karpenter, has launched it, and would launch others: delete its NodePools first"
		case m.Spot:
			why = "it is a Spot Instance of a one-time request, which EC2 does not stop: set the replicas of its group to 0 and run 'cluster create' first"
		case m.Block:
			why = "it is in a Capacity Block, which is paid for in advance, and which EC2 does not stop"
		case m.InstanceStore:
			why = "its root volume is an instance store volume, which EC2 does not stop"
		case n < mostProtectionReads:
			if why, err = ec2.StopProtection(ctx, p.Cloud, m.ID); cloud.Denied(err) {
				why, err = "", nil // EC2 says it later
			}
		}
		if err != nil {
			return nil, err
		}
		if why != "" {
			reasons = append(reasons, fmt.Sprintf("machine %s (%s): %s", m.ID, m.in.ID(), why))
		}
	}
	return reasons, nil
}

// poolsThatStay lists the pools that keep machines.
func (p *power) poolsThatStay(ctx context.Context) (reasons []string, err error) {
	for _, g := range p.groups {
		why, err := g.WhyNotEmptied(ctx, p.Cloud)
		if err != nil {
			return nil, err
		}
		if why != "" {
			reasons = append(reasons, fmt.Sprintf("pool %s: %s", g.ID, why))
		}
	}
	return reasons, nil
}

// controlPlaneAtRisk lists the reasons why a control plane might not start again.
func (p *power) controlPlaneAtRisk(ctx context.Context) (reasons []string, err error) {
	types, err := p.withInstanceStore(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range p.members() {
		switch {
		case m.Stopped && p.before == nil:
			reasons = append(reasons, fmt.Sprintf("machine %s of the control plane is stopped, so that etcd is not whole: "+
				"'clusterawsadm cluster start %s' starts it", m.ID, p.Cluster.Name))
		case !m.Stopped && types[m.Type]:
			reasons = append(reasons, fmt.Sprintf(
				"machine %s of the control plane is a %s, whose instance store volumes lose their data when it stops: etcd may be there", m.ID, m.Type,
			))
		}
	}
	return reasons, nil
}

// withInstanceStore returns which instance types of the machines have instance store volumes. What the caller may not read is not
// known.
func (p *power) withInstanceStore(ctx context.Context) (map[string]bool, error) {
	var names []string
	for _, m := range slices.Concat(p.control, p.workers) {
		if !m.Stopped {
			names = append(names, m.Type)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	found, err := ec2.InstanceTypes(ctx, p.Cloud, slices.Compact(names))
	out := map[string]bool{}
	for name, t := range found {
		out[name] = t.InstanceStore
	}
	return out, err
}

// The attempts to ask etcd: a load balancer sends to a lost machine for a while.
const (
	etcdAttempts = 3
	etcdPause    = 5 * time.Second
)

// askEtcd returns an error if a member of etcd is not healthy, or nobody can ask it.
func (p *power) askEtcd(ctx context.Context) error {
	if p.managed || p.halted() || len(p.members()) == 0 {
		return nil
	}
	k, err := incluster.Administrator(p.Cloud, p.endpoint, p.keys)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		unhealthy, err := incluster.CheckEtcd(ctx, p.Cloud, k, p.keys, len(p.members()))
		if err == nil && unhealthy == "" {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("etcd is not healthy, and might not have a quorum after a start: %s", unhealthy)
		} else if why, unavailable := kube.Unavailable(err); unavailable {
			err = fmt.Errorf("the API server at %s does not answer (%s), so that etcd cannot be asked whether its members are healthy", p.endpoint, why)
		}
		if try == etcdAttempts || ctx.Err() != nil {
			return err
		}
		if err := p.Cloud.Clock.Sleep(ctx, etcdPause); err != nil {
			return err
		}
	}
}

// The certificates of kubeadm ("Certificate Management with kubeadm", Kubernetes documentation).
const (
	certificatesLast = 365 * 24 * time.Hour
	certificatesSoon = 60 * 24 * time.Hour
)

// warnOfStop warns of what is different after a start.
func (p *power) warnOfStop(ctx context.Context) error {
	var public, local []string
	types, err := p.withInstanceStore(ctx)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(p.endpoint)
	for _, m := range slices.Concat(p.control, p.workers) {
		if m.Stopped {
			continue
		}
		if m.PublicIP != "" {
			public = append(public, m.PublicIP)
		}
		if types[m.Type] {
			local = append(local, m.ID+" ("+m.Type+")")
		}
		if host != "" && m.PublicIP == host {
			p.Warn("the API server has the public address of machine %s and no load balancer: unless that is an Elastic IP address, "+
				"it is not reached any more after a start", m.ID)
		}
	}
	if len(public) > 0 {
		p.Warn("%s will be other ones after a start, unless they are Elastic IP addresses", text.Several(public))
	}
	if len(local) > 0 {
		p.Warn("instance store volumes lose their data: %s", text.Several(local))
	}
	if len(p.fargate) > 0 {
		p.Warn("pods on Fargate go on, and cost the same: profiles %s", strings.Join(p.fargate, ", "))
	}
	p.warnOfCertificates()
	if len(p.members()) > 0 && !p.managed {
		p.Warn("back up the cluster before: 'clusterawsadm cluster backup %s'; if a volume of the control plane is lost, so are all objects", p.Cluster.Name)
	}
	return nil
}

// warnOfCertificates warns if certificates that kubeadm has made at the launch of a machine expire soon.
func (p *power) warnOfCertificates() {
	for _, m := range p.members() {
		until := m.LaunchedAt.Add(certificatesLast)
		if m.Stopped || until.Sub(p.Cloud.Now()) > certificatesSoon {
			continue
		}
		p.Warn("the certificates that kubeadm made on machine %s expire on %s, unless somebody has renewed them: "+
			"after that, a control plane that is stopped does not start", m.ID, until.UTC().Format(time.DateOnly))
	}
}

// errNothingToStop says that a cluster has no machines that could be stopped.
var errNothingToStop = errors.New("the cluster has no machines and no pools")
