package diagnose

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awselb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// EtcdOf says where the etcd of an API server runs.
type EtcdOf struct {
	Members  int      // on the machines of the control plane, as far as the manifest and the account say
	External []string // its endpoints, if it does
}

// Server returns the diagnosis of an API server that does not respond. Any of the first
// machines can be the one that initializes the cluster.
func Server(s *incluster.APIServer, etcd EtcdOf) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		return checkServer(ctx, c, s, etcd)
	}
}

func checkServer(ctx context.Context, c *cloud.Clients, s *incluster.APIServer, etcd EtcdOf) (findings []string, look string) {
	var q *machineCheck
	for _, m := range s.Machines[:min(3, len(s.Machines))] {
		if q = newMachineCheck(c, m, true); q == nil {
			continue
		}
		if q.checkBoot(ctx); len(q.found) > 0 {
			break
		}
	}
	if q == nil {
		q = &machineCheck{c: c, ended: true}
	}
	balancers := &machineCheck{c: c, machine: q.machine}
	d := &serverCheck{balancers, s, etcd}
	balancers.run(ctx, d.reachable)
	first := len(balancers.found)
	balancers.run(ctx, d.network, d.classic)
	q.found = slices.Concat(balancers.found[:first], q.found, balancers.found[first:])
	q.failed = append(q.failed, balancers.failed...)
	return q.result(ctx)
}

// serverCheck looks for the reason why the API server cannot be reached.
type serverCheck struct {
	*machineCheck
	server *incluster.APIServer
	runs   EtcdOf
}

// reachable finds out why the API server does not answer.
func (d *serverCheck) reachable(ctx context.Context) (string, error) {
	k, err := d.server.API.Client(d.c)
	if err != nil || k == nil {
		return "", err
	}
	err = k.Ready(ctx)
	why, silent := kube.Unavailable(err)
	endpoint := d.server.API.Endpoint
	var dns *net.DNSError
	var api apierrors.APIStatus
	switch {
	case err == nil || !silent:
		return "", err
	case errors.As(err, &dns) && endpoint.Host != "":
		return fmt.Sprintf(
			"the name %s of the API server cannot be resolved from here (%s): create a DNS record for it that points to the load balancer, %s",
			endpoint.Host,
			dns.Err,
			d.balancer(),
		), nil
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s of the load balancer cannot be resolved from here (%s): check the DNS of this computer", dns.Name, dns.Err), nil
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Sprintf("at %s an API server answers whose certificate another CA has signed: that of another cluster, or a proxy in between", endpoint), nil
	case errors.As(err, &api) && api.Status().Code >= http.StatusInternalServerError && endpoint.EKS == nil:
		return d.etcd(why), nil
	case why == "no answer", strings.Contains(why, "timeout"):
		return d.fromOutside(), nil
	}
	return "", nil
}

// fromOutside says that the API server has only addresses in the VPC; "" if it has others.
func (d *serverCheck) fromOutside() string {
	endpoint, without := d.server.API.Endpoint, d.server.API.Without
	switch {
	case d.private():
		return fmt.Sprintf(
			"nothing answers at %s, and the endpoint of the EKS cluster is private: only machines that reach the VPC can wait for the API server; run this there, or with %s, or set spec.endpointAccess.public: true",
			endpoint,
			without,
		)
	case d.internal():
		return fmt.Sprintf(
			"nothing answers at %s, and its load balancer is internal: only machines that reach the VPC can wait for the API server; run this there, or with %s",
			endpoint,
			without,
		)
	}
	return ""
}

// etcd explains an API server on machines of the control plane that answers with an error.
func (d *serverCheck) etcd(why string) string {
	is := fmt.Sprintf("an API server runs, and is not ready (%s): usually ", why)
	if len(d.runs.External) > 0 {
		return fmt.Sprintf("%sits etcd, %s, which is external, does not answer: check it, and that the machines reach it", is, strings.Join(d.runs.External, ", "))
	}
	var machines []ec2.InstanceState
	for _, ref := range d.server.Machines {
		if m, ok := ref.Found(); ok {
			machines = append(machines, m)
		}
	}
	return is + quorum(machines, max(d.runs.Members, len(machines)))
}

// balancer is the DNS name of the load balancer.
func (d *serverCheck) balancer() string {
	e := d.server.API.Endpoint
	e.Host = ""
	name, _, _ := strings.Cut(e.String(), ":")
	return name
}

// private reports whether EKS gives the API server only addresses in the VPC.
func (d *serverCheck) private() bool {
	cluster, ok := d.server.API.Endpoint.EKS.Found()
	return ok && !cluster.Public
}

// internal reports whether the load balancer has only addresses in the VPC.
func (d *serverCheck) internal() bool {
	lb, _ := d.server.API.Endpoint.Network.Found()
	old, _ := d.server.API.Endpoint.Classic.Found()
	return lb.Internal || old.Internal
}

// network finds what prevents a network load balancer from sending traffic to the
// machines.
func (d *serverCheck) network(ctx context.Context) (string, error) {
	lb, ok := d.server.API.Endpoint.Network.Found()
	if !ok {
		return "", nil
	}
	all, err := elb.LoadBalancers(ctx, d.c)
	if err != nil {
		return "", err
	}
	for _, x := range all {
		if x.ID == lb.ID && x.Status != string(elbtypes.LoadBalancerStateEnumActive) {
			return fmt.Sprintf("the load balancer %s is %s, not active: AWS has not finished it, run this again", lb.Name, x.Status), nil
		}
	}
	listening, err := elb.Listeners(ctx, d.c, lb.ID)
	for _, l := range listening {
		if l.Port == d.server.API.Endpoint.Port {
			return d.health(ctx, l.Target)
		}
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"the load balancer %s does not listen on port %d any more: run this again, which adds the listener",
		lb.Name,
		d.server.API.Endpoint.Port,
	), nil
}

// health finds machines that are not registered with the load balancer, or are not
// healthy.
func (d *serverCheck) health(ctx context.Context, group string) (string, error) {
	out, err := d.c.ELBV2.DescribeTargetHealth(ctx, &awselb.DescribeTargetHealthInput{TargetGroupArn: &group})
	if err != nil {
		return "", err
	}
	var unhealthy []string
	for _, m := range identity.CloudIDs(d.server.Machines) {
		is := "not registered"
		for _, t := range out.TargetHealthDescriptions {
			if aws.ToString(t.Target.Id) == m && t.TargetHealth != nil {
				is = strings.TrimSuffix(fmt.Sprintf("%s, %s: %s", t.TargetHealth.State, t.TargetHealth.Reason, aws.ToString(t.TargetHealth.Description)), ", : ")
			}
		}
		if is == string(elbtypes.TargetHealthStateEnumHealthy) {
			return "", nil
		}
		unhealthy = append(unhealthy, m+" is "+is)
	}
	if len(unhealthy) == 0 {
		return "", nil
	}
	_, name, _ := strings.Cut(group, ":targetgroup/")
	return fmt.Sprintf(
		"no machine in the target group %s of the load balancer is healthy: %s. Run this again, which registers what is not; an unhealthy one has no API server, or its security groups keep the load balancer out",
		name,
		strings.Join(unhealthy, "; "),
	), nil
}

// classic finds a classic load balancer without machines of the control plane.
func (d *serverCheck) classic(ctx context.Context) (string, error) {
	lb, ok := d.server.API.Endpoint.Classic.Found()
	if !ok {
		return "", nil
	}
	all, err := elb.ClassicLoadBalancers(ctx, d.c)
	for _, x := range all {
		if x.ID == lb.ID && !slices.ContainsFunc(identity.CloudIDs(d.server.Machines), func(m string) bool { return slices.Contains(x.Instances, m) }) {
			return fmt.Sprintf("no machine of the control plane is registered with the load balancer %s: run this again, which registers them", lb.ID), nil
		}
	}
	return "", err
}
