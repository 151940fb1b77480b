package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/clusterapi"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Objects returns the Cluster API objects with which a management cluster takes the cluster
// over. The cluster has to be complete: a machine that is missing is a RefusedError.
func Objects(ctx context.Context, c *run.Cluster) (cluster.Objects, error) {
	l := begin(c, nil)
	if c.Manifest == nil {
		return cluster.Objects{}, &plan.RefusedError{Reasons: []error{errors.New("the objects of a cluster come from its manifest: use it")}}
	}
	out, err := l.objects(ctx, "")
	return out, err
}

// objects returns the objects. A token is written into the configurations of pools.
func (l *looking) objects(ctx context.Context, token string) (cluster.Objects, error) {
	if err := l.Look(ctx); err != nil {
		return cluster.Objects{}, err
	}
	s, err := l.clusterState(ctx)
	if err != nil {
		return cluster.Objects{}, err
	}
	s.Token = token
	items, err := clusterapi.Items(l.Cluster.Manifest, s)
	if err != nil {
		return cluster.Objects{}, &plan.RefusedError{Reasons: []error{err}}
	}
	out := cluster.Objects{Plan: l.PublicPlan()}
	for _, x := range items {
		o, err := objectOf(x)
		if err != nil {
			return cluster.Objects{}, err
		}
		out.Items = append(out.Items, o)
	}
	return out, nil
}

// clusterState reads what the objects mention.
func (l *looking) clusterState(ctx context.Context) (s clusterapi.State, err error) {
	for _, m := range l.Built.Machines {
		have, ok := m.Instance.Found()
		if !ok {
			return s, &plan.RefusedError{
				Reasons: []error{fmt.Errorf("%s does not exist yet: 'clusterawsadm cluster create' makes the cluster complete", m.Instance.ID())},
			}
		}
		s.Machines = append(s.Machines, clusterapi.Machine{Group: m.Group, InstanceState: have})
	}
	if vpc, ok := l.Built.VPC.Found(); ok && l.Cluster.Manifest.Infra.Spec.NetworkSpec.VPC.ID == "" {
		s.VPC = &vpc
		for _, x := range l.Built.Subnets {
			if have, ok := x.Found(); ok {
				s.Subnets = append(s.Subnets, clusterapi.Subnet{SubnetState: have, Public: x.Public})
			}
		}
	}
	if s.UserData, err = l.poolUserData(ctx); err != nil {
		return s, err
	}
	if l.Cluster.IsEKS() {
		if plane, ok := l.Built.Endpoint.EKS.Found(); ok {
			s.Services = plane.ServiceCIDR
		}
		if e, ok := l.Built.Endpoint.EKS.Desired().(*eks.Cluster); ok && l.Cluster.Manifest.EKS.NATAddresses {
			s.Clients = slices.DeleteFunc(e.PublicBlocks(), func(block string) bool { return block == plan.Unknown })
		}
		return s, nil
	}
	if s.Endpoint, err = l.controlPlaneEndpoint(); err != nil {
		return s, err
	}
	s.Balancer = l.Built.Endpoint.BalancerName()
	if s.PKI, err = secrets.StoredPKI(cloud.ReadOnly(ctx), l.Cloud); err != nil {
		return s, fmt.Errorf("read the keys of the cluster: %w", err)
	}
	if s.PKI == nil {
		return s, &plan.RefusedError{
			Reasons: []error{fmt.Errorf("the account has no keys of cluster %s: without them, no control plane can be managed", l.Cluster.Name)},
		}
	}
	s.Kubeconfig, err = boot.Kubeconfig(l.Cluster.Name, l.Built.Endpoint.String(), s.PKI, l.Cloud.Now())
	return s, err
}

// poolUserData reads the user data of the launch templates of pools, by pool.
func (l *looking) poolUserData(ctx context.Context) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, p := range l.Cluster.Manifest.Pools {
		if p.Template() == nil || !p.Object.Spec.Template.Spec.Bootstrap.ConfigRef.IsDefined() {
			continue
		}
		name := ""
		if p.Scaling != nil {
			name = p.Scaling.Name
		} else {
			name = topology.NodeGroupTemplate(l.Cluster.Manifest, p.Managed)
		}
		data, err := ec2.LaunchTemplateUserData(cloud.ReadOnly(ctx), l.Cloud, name)
		if err == nil && loadsIgnition(p) { // CAPA stores it in the bucket, too; otherwise it leaves the user data as it is
			data, err = bootdata.Stored(cloud.ReadOnly(ctx), l.Cloud, data)
		}
		if err != nil {
			return nil, fmt.Errorf("user data of MachinePool/%s: %w", p.Object.Name, err)
		}
		all[p.Object.Name] = data
	}
	return all, nil
}

// controlPlaneEndpoint returns the address of the API server.
func (l *looking) controlPlaneEndpoint() (e clusterv1.APIEndpoint, err error) {
	host, port, err := net.SplitHostPort(run.Known(l.Built.Endpoint.String()))
	if err != nil {
		return e, &plan.RefusedError{Reasons: []error{fmt.Errorf("cluster %s has no load balancer in %s yet: create it first", l.Cluster.Name, l.Cluster.Region)}}
	}
	n, err := strconv.ParseInt(port, 10, 32)
	return clusterv1.APIEndpoint{Host: host, Port: int32(n)}, err
}

// objectOf converts an item.
func objectOf(x clusterapi.Item) (o cluster.Object, err error) {
	data, err := json.Marshal(x.Object)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(data, &o.Content); err != nil {
		return o, err
	}
	delete(o.Content, "status")
	o.Status = x.Status
	dropTimestamps(o.Content)
	if x.Owner != nil {
		gvk := x.Owner.GetObjectKind().GroupVersionKind()
		o.Owner = &cluster.ObjectOwner{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: x.Owner.GetName(), Controller: x.Owner.Controller}
	}
	return o, nil
}

// dropTimestamps removes "creationTimestamp: null", which Go writes into metadata.
func dropTimestamps(v any) {
	switch v := v.(type) {
	case map[string]any:
		if at, ok := v["creationTimestamp"]; ok && at == nil {
			delete(v, "creationTimestamp")
		}
		for _, below := range v {
			dropTimestamps(below)
		}
	case []any:
		for _, below := range v {
			dropTimestamps(below)
		}
	}
}
