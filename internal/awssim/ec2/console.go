package ec2

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Boot is the state of a machine that has booted.
type Boot struct {
	At           time.Time // start of kubeadm
	Failed       string    // why it failed; "" if it has not
	Joined       time.Time // zero: not joined
	Node         string    // name of its Node
	Named        string    // name in its registration; a template is its host name, and so is none
	Host         string    // host name of its API server
	Token        string
	Hashes       []string
	ControlPlane bool
	Advertised   string // address of the API server and etcd of a control plane
	NodeIP       string // argument node-ip of the kubelet
	Version      string
	External     bool              // kubelet with an external cloud provider
	Labels       map[string]string // that the kubelet sets
	Taints       []any             // of the Node; nil: those of kubeadm
	Sysctls      []string          `json:",omitempty"` // that the kubelet permits beside the safe ones
	MaxPods      int               `json:",omitempty"` // most pods of a node of EKS; 0 for others
	PodSubnet    string            `json:",omitempty"` // of a node of EKS: subnet of the pods' addresses
	Tries        []Try             // attempts to join that have failed
	RepeatsFor   time.Duration     // how long kubeadm join is repeated; 0: it is not
	Data         []byte            `json:",omitempty"` // the cloud-config or Ignition configuration, compressed or not; empty for machines of EKS
	Retry        time.Time         // next attempt
	Halted       bool              // the machine is stopped, and its Node does not respond
	Learns       time.Time         // when its etcd became a learner; zero: it has not, or its kubeadm ran init

	// A timer that renews bootstrap tokens with a description.
	KeepsEvery, KeepsFor time.Duration
	KeepsThose           string    // in base64
	Kept                 time.Time // last renewal
}

// Try is a failed attempt to join.
type Try struct {
	At  time.Time
	Why string
}

// getConsoleOutput returns the console output of an instance. Before it has booted, the
// field is missing, as in EC2.
func (svc *Service) getConsoleOutput(in *ec2.GetConsoleOutputInput) (*ec2.GetConsoleOutputOutput, error) {
	i, err := lookup(svc, svc.state.Instances, in.InstanceId)
	if err != nil {
		return nil, err
	}
	if !svc.shows(i) {
		return nil, i.kind().notFound(i.ID)
	}
	out := &ec2.GetConsoleOutputOutput{InstanceId: in.InstanceId, Timestamp: aws.Time(svc.Now())}
	text := i.waitingLines()
	if i.Boot != nil {
		text += i.Boot.Output()
	}
	if text != "" {
		out.Output = aws.String(base64.StdEncoding.EncodeToString([]byte(text)))
	}
	return out, nil
}

// waitingLines are the console messages of a boot script that waits for a connection.
func (i *Instance) waitingLines() (text string) {
	if i.Offline.IsZero() {
		return ""
	}
	at, service := i.Offline.UTC().Format(time.RFC3339), "secretsmanager.amazonaws.com:443"
	text = fmt.Sprintf("[%s] user data: waiting for a connection to %s, for up to 900 seconds\n", at, service)
	if i.Late {
		text += fmt.Sprintf("[%s] user data: this machine boots again when it has a connection to %s\n", at, service)
	}
	return text
}

// Output returns the output of a machine during boot, with the messages of cloud-init,
// the AWS CLI and kubeadm, and with secrets, as on real machines.
func (b *Boot) Output() string {
	lines := []string{
		"[    0.000000] Linux version 6.8.0-1021-aws",
		"cloud-init[812]: Cloud-init v. 24.1.3-0ubuntu3 running 'init' at " + b.At.UTC().Format("Mon, 02 Jan 2006 15:04:05 +0000"),
	}
	say := func(format string, args ...any) {
		lines = append(lines, "cloud-init[1203]: "+fmt.Sprintf(format, args...))
	}
	switch began := b.Host != ""; {
	case began && b.Token != "":
		say("[preflight] Running pre-flight checks")
		say("kubeadm join --token %s --discovery-token-ca-cert-hash %s", b.Token, strings.Join(b.Hashes, ","))
	case began:
		say("[init] Using Kubernetes version: %s", b.Version)
	}
	if !b.Joined.IsZero() {
		say("This node has joined the cluster:")
	}
	for n, try := range b.Tries {
		for _, line := range b.failureLines(try.Why) {
			say("%s", line)
		}
		if b.RepeatsFor > 0 {
			say("[%s] kubeadm join: attempt %d failed with exit code 1", try.At.UTC().Format(time.RFC3339), n+1)
		}
	}
	switch {
	case len(b.Tries) == 0:
		for _, line := range b.failureLines(b.Failed) {
			say("%s", line)
		}
	case b.RepeatsFor > 0 && b.Failed == FailedMember:
		say("kubeadm join: gives up: this machine is a member of etcd already, and has to be replaced")
	case b.RepeatsFor > 0 && b.Failed != "":
		say("kubeadm join: gives up after %.0f seconds: the join token may expire", b.Tries[len(b.Tries)-1].At.Sub(b.At).Seconds())
	}
	return strings.Join(lines, "\n") + "\n"
}

// failureLines returns the console messages of a failure.
func (b *Boot) failureLines(why string) []string {
	const join = "error execution phase preflight: couldn't validate the identity of the API Server: "
	switch {
	case why == "":
		return nil
	case why == FailedNoRoute:
		return []string{"Could not connect to the endpoint URL: \"https://secretsmanager.amazonaws.com/\"", "user data: chunk 0 cannot be fetched"}
	case why == FailedNoRole:
		return []string{"Unable to locate credentials. You can configure credentials by running \"aws configure\".", "user data: chunk 0 cannot be fetched"}
	case strings.HasPrefix(why, "there is no secret"):
		return []string{
			"An error occurred (ResourceNotFoundException) when calling the GetSecretValue operation: Secrets Manager can't find the specified secret.",
			"user data: chunk 0 cannot be fetched",
		}
	case strings.HasPrefix(why, "there is no parameter"):
		return []string{"An error occurred (ParameterNotFound) when calling the GetParameter operation: ", "user data: chunk 0 cannot be fetched"}
	case why == FailedHash:
		return []string{join + "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys " + fmt.Sprintf("%q", b.Hashes) + " are pinned"}
	case why == FailedToken:
		return []string{join + "could not find a JWS signature in the cluster-info ConfigMap for token ID \"" + strings.Split(b.Token, ".")[0] + "\""}
	case why == FailedUnauthorized:
		return []string{"error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to get config map: Unauthorized"}
	}
	return []string{"error: " + why}
}

// Reasons for a failed boot.
const (
	FailedNoRoute = "the machine has no way to the APIs of AWS"
	FailedNoRole  = "the machine has no role that may fetch its boot data"
	FailedHash    = "the cluster CA is another one than the hash says"
	FailedToken   = "the bootstrap token is not valid"

	// FailedName is the refusal of kubeadm join for the name of a Node that is ready (runKubeletStartJoinPhase
	// in cmd/kubeadm/app/cmd/phases/join/kubelet.go of Kubernetes v1.34.2).
	FailedName = "a Node with the name of the machine and status \"Ready\" already exists in the cluster"

	// FailedMember is what kubeadm join says after an etcd that it has started does not answer
	// (WaitForClusterAvailable in cmd/kubeadm/app/util/etcd/etcd.go of Kubernetes v1.34.2).
	FailedMember = "error execution phase etcd-join: error creating local etcd static pod manifest file: timeout waiting for etcd cluster to be available"

	// FailedUnauthorized is the answer of an API server that has just started, and does
	// not know the token yet.
	FailedUnauthorized = "the API server does not know the bootstrap token yet"
)

// ReachesAWS reports whether an instance can reach a service of AWS: by a default route
// that is not a blackhole, or an endpoint of the service. Interface endpoints are not
// simulated, so Secrets Manager and Parameter Store have none.
func (svc *Service) ReachesAWS(i *Instance, service string) bool {
	table := svc.tableFor(i)
	if table == nil || !svc.sends(i) || !svc.resolves(i) {
		return false
	}
	for _, e := range svc.state.Endpoints {
		if e.Deleted.IsZero() && strings.HasSuffix(e.Service, "."+service) && slices.Contains(e.RouteTables, table.ID) {
			return true
		}
	}
	public, ipv6 := svc.addresses(i)
	if !svc.passesOut(i.Subnet, ipv6) {
		return false
	}
	return slices.ContainsFunc(table.Routes, func(r Route) bool {
		four, six := r.Destination == "0.0.0.0/0", r.Destination == "::/0" && ipv6
		if n := svc.state.NATGateways[r.Target]; n != nil && !svc.passesOut(n.Subnet, false) {
			return false
		}
		return (four || six) && svc.leads(table, r.Target) && (six || public || prefixOf(r.Target) == "nat")
	})
}

// IsPublic reports whether the route table of a subnet leads to an internet gateway.
func (svc *Service) IsPublic(s *Subnet) bool {
	table := svc.tableFor(&Instance{Subnet: s.ID, VPC: s.VPC})
	return table != nil && slices.ContainsFunc(table.Routes, func(r Route) bool { return r.Destination == "0.0.0.0/0" && prefixOf(r.Target) == "igw" })
}

// tableFor returns the route table of an instance: that of its subnet, or the main one of its VPC.
func (svc *Service) tableFor(i *Instance) (table *RouteTable) {
	for _, t := range core.ByKey(svc.state.RouteTables) {
		associated := slices.ContainsFunc(core.SortedKeys(t.Associations), func(id string) bool { return t.Associations[id] == i.Subnet })
		if t.VPC == i.VPC && associated {
			return t
		}
		if t.VPC == i.VPC && table == nil && t.Main != "" {
			table = t
		}
	}
	return table
}

// Egress returns the addresses from which a server on the internet is called by an instance: its
// own, or those of the NAT gateways of its routes.
func (svc *Service) Egress(i *Instance) (from []string) {
	table := svc.tableFor(i)
	if table == nil || !svc.sends(i) || !svc.resolves(i) {
		return nil
	}
	for _, r := range table.Routes {
		if !svc.leads(table, r.Target) {
			continue
		}
		if n := svc.state.NATGateways[r.Target]; n != nil && r.Destination == "0.0.0.0/0" {
			if a := svc.state.Addresses[n.Address]; a != nil {
				from = append(from, a.PublicIP)
			}
			continue
		}
		for _, id := range i.Interfaces {
			switch n := svc.state.Interfaces[id]; {
			case n == nil:
			case r.Destination == "0.0.0.0/0" && n.PublicIP != "":
				from = append(from, n.PublicIP)
			case r.Destination == "::/0":
				from = append(from, n.IPv6...)
			}
		}
	}
	return from
}

// resolves reports whether an instance can resolve DNS names. If enableDnsSupport of its VPC is off, the Amazon DNS server does not answer ("DNS
// attributes for your VPC", VPC user guide). Custom DNS servers in DHCP option sets are not simulated.
func (svc *Service) resolves(i *Instance) bool {
	v := svc.state.VPCs[i.VPC]
	return v == nil || v.DNSSupport
}

// sends reports whether a security group of an instance has an outbound rule. Without one, the instance can only answer
// (https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html). Destinations of rules are not simulated.
func (svc *Service) sends(i *Instance) bool {
	for _, id := range i.Interfaces {
		n := svc.state.Interfaces[id]
		if n != nil && slices.ContainsFunc(n.Groups, func(g string) bool { x := svc.state.SecurityGroups[g]; return x != nil && len(x.Egress) > 0 }) {
			return true
		}
	}
	return false
}

// addresses reports whether an instance has a public IPv4 and an IPv6 address.
func (svc *Service) addresses(i *Instance) (public, ipv6 bool) {
	for _, id := range i.Interfaces {
		if n := svc.state.Interfaces[id]; n != nil {
			public, ipv6 = public || n.PublicIP != "", ipv6 || len(n.IPv6) > 0
		}
	}
	return public, ipv6
}
