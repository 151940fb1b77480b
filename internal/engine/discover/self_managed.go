package discover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// SelfManaged is a cluster whose control plane consists of machines with kubeadm, or the part of
// an EKS cluster that consists of machines and Auto Scaling groups.
type SelfManaged struct {
	Name, Namespace, Region string
	Network
	Groups    map[infrav1.SecurityGroupRole]ec2.SecurityGroupState // that were made with the cluster, by role
	Addresses []string                                             // of NAT gateways
	Machines  []ec2.InstanceState                                  // without those of pools
	Pools     []Pool
	Balancers []Balancer                   // of the API server, that of the endpoint first
	Classic   *Classic                     // nil: none
	Marker    *secrets.InitMarkerState     // nil: Cluster API made the cluster
	Protected bool                         // from deletion
	Bucket    *s3.BucketState              // nil: none
	Config    *boot.ClusterConfig          // as kubeadm stores it in the cluster; nil: not read
	Unread    []string                     // what could not be read, and why
	Nodes     map[string]incluster.Marks   // labels and taints of Nodes, by the ID of the machine; nil: the API server was not asked
	Charts    []incluster.HelmReleaseState // that runs have installed
	Booted    map[string]*boot.Booted      // what machines booted with, by the ID of the machine or launch template; those that were read
	Pinned    map[string]bool              // names of pools whose image a run would otherwise change
	Sealed    bool                         // the default security group of the VPC has no rules

	plane  *EKS                              // nil: kubeadm
	specs  map[string]infrav1.AWSMachineSpec // by ID of the machine
	images map[string]string                 // names, by ID
	groups []machineGroup
}

// ReadSelfManaged reads a self-managed cluster: what AWS says of it. The clients are those of
// a cluster of its name. It returns nil if there are neither machines nor a VPC of that name.
func ReadSelfManaged(ctx context.Context, c *cloud.Clients) (*SelfManaged, error) {
	s := &SelfManaged{Name: c.Cluster, Region: c.Region, Namespace: defaultNamespace, Pinned: map[string]bool{}}
	var err error
	if s.Machines, err = ec2.Instances(ctx, c); err != nil {
		return nil, fmt.Errorf("machines of the cluster: %w", err)
	}
	vpc, err := s.vpcID(ctx, c)
	if vpc == "" || err != nil {
		return nil, err
	}
	if s.Network, err = readNetwork(ctx, c, vpc); err != nil {
		return nil, err
	}
	for _, m := range s.Machines {
		if namespace, _, ok := strings.Cut(m.Tags[infrav1.MachineNameTagKey], "/"); ok {
			s.Namespace = namespace
		}
	}
	for _, read := range []func(context.Context, *cloud.Clients) error{s.readSecurity, s.readRecords, s.readBalancers, s.readMachines} {
		if err := read(ctx, c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// vpcID returns the VPC that the cluster owns, or that of its machines.
func (s *SelfManaged) vpcID(ctx context.Context, c *cloud.Clients) (string, error) {
	owned, err := ec2.OwnedVPCs(ctx, c)
	if err != nil || len(owned) > 0 {
		return strings.Join(owned[:min(1, len(owned))], ""), err
	}
	for _, m := range s.Machines {
		if m.VPC != "" {
			return m.VPC, nil
		}
	}
	return "", nil
}

func (s *SelfManaged) readSecurity(ctx context.Context, c *cloud.Clients) error {
	all, err := ec2.SecurityGroups(ctx, c, s.VPC.ID)
	if err != nil {
		return fmt.Errorf("security groups of %s: %w", s.VPC.ID, err)
	}
	s.Groups = map[infrav1.SecurityGroupRole]ec2.SecurityGroupState{}
	for _, g := range all {
		if role := infrav1.SecurityGroupRole(g.Tags[cloud.RoleTag]); role != "" && g.IsOwned(c) {
			s.Groups[role] = g
		}
		if g.Name == "default" {
			s.Sealed = len(g.Ingress)+len(g.Egress) == 0
		}
	}
	addresses, err := ec2.Addresses(ctx, c)
	if err != nil {
		return fmt.Errorf("elastic IP addresses: %w", err)
	}
	for _, a := range addresses {
		s.Addresses = append(s.Addresses, a.PublicIP)
	}
	if !s.Owned {
		var ids []string
		for _, x := range s.Subnets {
			ids = append(ids, x.ID)
		}
		s.Addresses, err = ec2.NATAddresses(ctx, c, ids)
	}
	return err
}

// readRecords reads what runs have recorded in the account.
func (s *SelfManaged) readRecords(ctx context.Context, c *cloud.Clients) (err error) {
	if s.Marker, err = secrets.ReadInitMarker(ctx, c); err != nil {
		return fmt.Errorf("record of the control plane: %w", err)
	}
	protection, err := secrets.ReadDeletionProtection(ctx, c)
	if err != nil {
		return fmt.Errorf("deletion protection: %w", err)
	}
	s.Protected = protection != nil
	if s.Bucket, err = s3.ReadBucket(ctx, c); err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	return nil
}

func (s *SelfManaged) readMachines(ctx context.Context, c *cloud.Clients) (err error) {
	s.Machines = slices.DeleteFunc(s.Machines, func(m ec2.InstanceState) bool { return m.VPC != s.VPC.ID || m.IsTerminating() })
	var ids, images []string
	for _, m := range s.Machines {
		ids, images = append(ids, m.ID), append(images, m.Image)
	}
	if s.Pools, err = readPools(ctx, c); err != nil {
		return err
	}
	for _, p := range s.Pools {
		images = append(images, p.Template.Image)
	}
	slices.Sort(images)
	if s.specs, err = ec2.LaunchedSpecs(ctx, c, ids); err != nil {
		return fmt.Errorf("machines of the cluster: %w", err)
	}
	if s.images, err = ec2.ImageNames(ctx, c, slices.Compact(images)); err != nil {
		return fmt.Errorf("look up the images of the machines: %w", err)
	}
	return nil
}

// ControlPlane lists the IDs of the machines of the control plane.
func (s *SelfManaged) ControlPlane() (ids []string) {
	for _, m := range s.Machines {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// External reports whether somebody else manages the infrastructure of the cluster: nothing
// but machines was made with it.
func (s *SelfManaged) External() bool {
	if s.plane != nil {
		return false
	}
	own := slices.ContainsFunc(s.Balancers, func(b Balancer) bool { return b.Owned })
	return !s.Owned && len(s.Groups) == 0 && !own && (s.Classic == nil || !s.Classic.Owned)
}

// Remarks are sentences for the reader of the manifest.
func (s *SelfManaged) Remarks() []string {
	return append(remarks(true), unread(s.Unread)...)
}

// remarks lists what the manifest of an import does not contain. ofClusterAPI reports whether the
// cluster may have had other objects in a management cluster.
func remarks(ofClusterAPI bool) []string {
	all := "Objects in Kubernetes are not part of this manifest."
	if ofClusterAPI {
		all += " Neither AWS nor Kubernetes knows MachineHealthChecks, ClusterResourceSets, repositories and values of Helm charts, annotations of Machines, and how machines are replaced (rollout, deletion, remediation): add them, if the cluster had any."
	}
	return strings.Split(text.Wrap(all, commentWidth), "\n")
}

// unread returns a paragraph for each part of the cluster that the import could not read.
func unread(all []string) (out []string) {
	for _, x := range all {
		out = append(out, strings.Split("\n"+text.Wrap("Not read: "+x+".", commentWidth), "\n")...)
	}
	return out
}
