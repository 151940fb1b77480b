package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Instance is a machine (CAPA: AWSMachine) or the bastion.
type Instance struct {
	// Spec is that of the AWSMachine, with the defaults of the cluster. The other fields
	// (subnet, groups, image, key) take precedence.
	Spec infrav1.AWSMachineSpec

	Subnet *graph.Ref[SubnetState]
	Pinned bool // the manifest sets the subnet or its zone
	Groups []*graph.Ref[SecurityGroupState]
	EKS    graph.Resource         // the EKS cluster whose security group is added; nil if self-managed
	Image  *graph.Ref[ImageState] // nil if the machine exists: its image is not needed
	Key    string                 // key pair; "" for none
	Boot   UserData               // nil if the machine exists
	Tags   cloud.Tags

	// Batch is the part of the tags that only this machine has, such as its name.
	// Machines that differ only in these are launched with one call.
	Batch cloud.Tags
	// Claimed is the ID of a machine that a run launched together with others, and that
	// has no identity tag of its own because the run ended before it set one.
	Claimed string
	// Stays is the reason why this run must not terminate a machine that is not in the manifest any more; "" if it may.
	Stays string
	// Outdated: it was launched with other settings. It is not changed until it is
	// replaced.
	Outdated bool
	// Adopt assumes that the machine was launched with these settings: a run changes the
	// template tag of a machine, and does not replace the machine.
	Adopt bool
	// Irreplaceable: etcd has no quorum without the data of the machine, which is stopped.
	Irreplaceable bool

	// Typed makes a check look for the instance type, as that of a bastion.
	Typed bool
	// Type has the properties of the instance type; none if they are not known yet.
	Type InstanceType
	// Enclave: it has Nitro Enclaves.
	Enclave bool

	// Needed lists resources that have to exist before the machine boots.
	Needed []graph.Edge
}

// UserData is the user data of an instance, with the bootstrap data.
type UserData interface {
	// Needs lists the edges to the resources from which the data is computed.
	Needs() []graph.Edge
	// Prepare stores the bootstrap data in its backend, and returns the user data.
	Prepare(ctx context.Context, c *cloud.Clients) ([]byte, error)
	// Fingerprint is a hash of the data; graph.Unknown if it cannot be computed yet.
	Fingerprint() string
}

// Storer stores the bootstrap data of machines that it launches.
type Storer interface {
	// StoredAs is the name of the kind of resource that the data is stored in; "" for none.
	StoredAs() string
}

// Losable is user data that leads to stored boot data.
type Losable interface {
	// Lost reports whether the boot data to which this user data leads is not stored any more, if it is this data.
	Lost(ctx context.Context, c *cloud.Clients, userData []byte) (bool, error)
}

// Renderer is user data that a plan can render.
type Renderer interface {
	// Refusal says why the data cannot be rendered, or why EC2 would not take it; "" for nothing.
	Refusal(ctx context.Context, c *cloud.Clients) string
}

// refusalOf returns why user data cannot be used; "" if nothing is known.
func refusalOf(ctx context.Context, c *cloud.Clients, data UserData) string {
	if r, ok := data.(Renderer); ok {
		if refusal := r.Refusal(ctx, c); refusal != "" {
			return "bootstrap data: " + refusal
		}
	}
	return ""
}

// StoredAs implements Storer.
func (i *Instance) StoredAs() string { return storedAs(i.Boot) }

// StoredAs implements Storer.
func (l *LaunchTemplate) StoredAs() string { return storedAs(l.Boot) }

func storedAs(data UserData) string {
	if s, ok := data.(Storer); ok {
		return s.StoredAs()
	}
	return ""
}

// SecurityGroupOwner is the state of a resource with a security group for instances: an
// EKS cluster.
type SecurityGroupOwner interface {
	// SecurityGroup is the ID of the group; "" before it exists.
	SecurityGroup() string
}

// eksSecurityGroups returns the cluster security group of an EKS cluster; nil without
// one.
func eksSecurityGroups(cluster graph.Resource) []string {
	if cluster == nil {
		return nil
	}
	if s, ok := cluster.Observed().(SecurityGroupOwner); ok && s.SecurityGroup() != "" {
		return []string{s.SecurityGroup()}
	}
	return []string{plan.Unknown}
}

// InstanceState is an EC2 instance, as AWS describes it.
type InstanceState struct {
	identity.Object
	Managed                         bool // a service of AWS manages it, such as EKS Auto Mode: only that terminates it
	Status                          string
	Type, Image, Subnet, VPC, Zone  string
	PrivateIP, PublicIP, PrivateDNS string
	IPv6                            string // the first one of its first interface; "" if it has none
	Key, Profile                    string
	Tenancy                         string // default, dedicated or host
	Groups                          []string
	Metadata                        Metadata
	Interfaces                      []string  // by device index
	Volumes                         []string  // IDs of the attached volumes
	OwnVolumes                      []string  // IDs of those that AWS deletes with the machine
	LaunchedAt                      time.Time // at its first start
	Spot, Stopped                   bool
	Block                           bool // of a Capacity Block
	InstanceStore                   bool // its root volume is an instance store volume
}

// Addresses are the private IPv4 address and the IPv6 address of the machine, as far as it
// has them.
func (s InstanceState) Addresses() (all []netip.Addr) {
	for _, text := range []string{s.PrivateIP, s.IPv6} {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// IsTerminating reports whether the machine is being terminated. Such a machine still exists, so that a
// deletion waits for it, but it is not a machine of the cluster any more: another one takes its place,
// and its member of etcd is lost. AWS never returns to another state
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html).
func (s InstanceState) IsTerminating() bool {
	return s.Status == string(types.InstanceStateNameShuttingDown) || s.Status == string(types.InstanceStateNameTerminated)
}

// IsRunning reports whether the machine is running. Load balancers accept no others.
func (s InstanceState) IsRunning() bool { return s.Status == string(types.InstanceStateNameRunning) }

// NotTerminating is the filter for machines of which IsTerminating is false.
func NotTerminating() types.Filter {
	return cloud.Filter("instance-state-name", "pending", "running", "stopping", "stopped")
}

// NotTerminated is the filter for machines that exist, also while they are being terminated.
func NotTerminated() types.Filter {
	return cloud.Filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down")
}

// Metadata contains the settings of the instance metadata service (IMDS).
type Metadata struct {
	Endpoint, IPv6, Tokens, Tags string
	HopLimit                     int32
}

// String prints the settings: "endpoint enabled, tokens required, …".
func (m Metadata) String() string {
	if m == (Metadata{}) {
		return ""
	}
	return fmt.Sprintf("endpoint %s, ipv6 %s, hop limit %d, tokens %s, tags %s", m.Endpoint, m.IPv6, m.HopLimit, m.Tokens, m.Tags)
}

var (
	_ graph.Managed[InstanceState]  = (*Instance)(nil)
	_ graph.Follower[InstanceState] = (*Instance)(nil)
	_ graph.Timed                   = (*Instance)(nil)
)

// Needs implements graph.Desired.
func (i *Instance) Needs() []graph.Edge {
	needs := graph.Exists(i.Subnet)
	for _, g := range i.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	needs = append(append(needs, graph.Reads(i.Image)...), graph.On(i.EKS)...)
	if i.Boot != nil {
		needs = append(needs, i.Boot.Needs()...)
	}
	return append(needs, i.Needed...)
}

// Takes implements graph.Timed.
func (i *Instance) Takes() (create, remove time.Duration) {
	return InstanceCreateTime, InstanceDeleteTime
}

// Find implements graph.Desired.
func (i *Instance) Find(ctx context.Context, c *cloud.Clients) (*InstanceState, error) {
	return i.Follow(ctx, c, &InstanceState{})
}

// Identify implements graph.Identified. A deletion waits for machines that are being terminated.
func (i *Instance) Identify(ctx context.Context, c *cloud.Clients, last *InstanceState) (*InstanceState, error) {
	if last == nil {
		last = &InstanceState{}
	}
	return i.find(ctx, c, last, func(all, stay []*InstanceState) []*InstanceState {
		if len(stay) == 0 {
			return all
		}
		return stay
	})
}

// Follow implements graph.Follower. A machine that was launched together with others is
// found by its ID until it has its own tags.
func (i *Instance) Follow(ctx context.Context, c *cloud.Clients, last *InstanceState) (*InstanceState, error) {
	return i.find(ctx, c, last, func(_, stay []*InstanceState) []*InstanceState { return stay })
}

// find finds the machine among all of its name and those of them that stay.
func (i *Instance) find(
	ctx context.Context,
	c *cloud.Clients,
	last *InstanceState,
	choose func(all, stay []*InstanceState) []*InstanceState,
) (*InstanceState, error) {
	if _, ok := i.Subnet.Found(); !ok && i.Boot != nil {
		return nil, nil // without its subnet, it cannot exist
	}
	all, err := InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	if i.Claimed != "" {
		return all.ByID[i.Claimed], nil
	}
	if known := all.ByID[last.ID]; known != nil && last.Tags[cloud.ResourceTag] != i.Tags[cloud.ResourceTag] && last.Tags[cloud.ResourceTag] != "" {
		return known, nil
	}
	named := all.byResource[i.Tags[cloud.ResourceTag]]
	found := choose(named, i.present(named, last.ID))
	if len(found) == 0 {
		named := all.byName[i.Tags["Name"]]
		for _, x := range choose(named, i.present(named, last.ID)) {
			if x.Tags[cloud.ResourceTag] == "" {
				found = append(found, x)
			}
		}
	}
	s, err := identity.AtMostOne(found, i.Tags[cloud.ResourceTag])
	switch {
	case err != nil:
		return nil, err
	case s != nil:
		return *s, nil
	case last.Status == string(types.InstanceStateNamePending):
		return nil, launchFailure(ctx, c, last.ID)
	}
	return nil, nil
}

// present leaves out machines that are being terminated, whose place another machine takes: not one
// that this run has launched, which is that of the ID known, and not one that still uses a network
// interface that the next one needs.
func (i *Instance) present(all []*InstanceState, known string) []*InstanceState {
	if len(i.Spec.NetworkInterfaces) > 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *InstanceState) bool { return s.IsTerminating() && s.ID != known })
}

// FailedToLaunch reports whether AWS has terminated a machine before it ran, as far as its reason says
// that without doubt (StateReason in the EC2 API reference). AWS shows it for about an hour.
func FailedToLaunch(ctx context.Context, c *cloud.Clients, id string) (bool, error) {
	err := launchFailure(ctx, c, id)
	var failed *launchError
	if !errors.As(err, &failed) {
		return false, err
	}
	for _, code := range []string{"Client.InternalError", "Client.InvalidKMSKey", "Client.InvalidSnapshot", "Client.VolumeLimitExceeded", "Server.InsufficientInstanceCapacity"} {
		if strings.HasPrefix(failed.code, code) {
			return true, nil
		}
	}
	return false, nil
}

// launchError says why AWS has terminated a machine before it ran.
type launchError struct{ id, code, why string }

func (e *launchError) Error() string {
	return fmt.Sprintf("instance %s was terminated at its launch: %s", e.id, e.why)
}

// launchFailure returns why AWS has terminated a machine before it ran: a KMS key that it
// may not use, a limit of volumes, an internal error. It returns nil for a machine that
// DescribeInstances does not show yet, and for one that somebody has terminated.
func launchFailure(ctx context.Context, c *cloud.Clients, id string) error {
	out, err := c.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if cloud.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, r := range out.Reservations {
		for _, x := range r.Instances {
			s := x.State
			if s == nil || s.Name != types.InstanceStateNameTerminated || x.StateReason == nil {
				continue
			}
			switch code := aws.ToString(x.StateReason.Code); {
			case strings.Contains(code, "InitiatedShutdown"), strings.HasPrefix(code, "Server.Spot"):
				return nil
			default:
				return &launchError{id, code, cmp.Or(aws.ToString(x.StateReason.Message), code)}
			}
		}
	}
	return nil
}

// IfStopped says whether a stopped machine may be terminated. etcd has no quorum without an irreplaceable one.
func IfStopped(irreplaceable bool) string {
	if irreplaceable {
		return "; do not terminate it: without its data, etcd cannot have a quorum any more"
	}
	return "; or terminate it, and the next run launches another machine"
}

// Diff implements graph.Desired.
func (i *Instance) Diff(have *InstanceState) (d plan.Diff) {
	if have.Stopped {
		d.Fixed(
			"state", have.Status, string(types.InstanceStateNameRunning),
			fmt.Sprintf("start it with '%s'", StartCommand("", *have))+IfStopped(i.Irreplaceable),
		)
	}
	d.Await("state", have.Status, string(types.InstanceStateNameRunning))
	if i.Outdated {
		return d
	}
	d.Fixed("instanceType", have.Type, i.Spec.InstanceType, i.changedByHand(have, "stop the machine, and change it back with 'aws ec2 "+
		"modify-instance-attribute --instance-id "+have.ID+" --instance-type Value="+i.Spec.InstanceType+"'"))
	if id := aws.ToString(i.Spec.AMI.ID); id != "" {
		d.Fixed("image", have.Image, id)
	} else if i.Image != nil && have.ID == "" {
		d.Fixed("image", "", i.Image.CloudID())
	}
	if len(i.Spec.NetworkInterfaces) == 0 && (i.Pinned || have.ID == "") { // otherwise the interfaces determine it
		d.Fixed("subnet", have.Subnet, i.Subnet.CloudID())
	}
	d.Fixed("profile", have.Profile, i.Spec.IAMInstanceProfile, i.changedByHand(have, "change it back with '"+i.profileCommand(have)+"'"))
	if i.Spec.SSHKeyName != nil || have.ID == "" { // that of the cluster is for machines that are launched from now on, as in CAPA
		d.Fixed("key", have.Key, i.Key)
	}
	d.Lines("securityGroup", have.Groups, i.groups())
	if i.Spec.InstanceMetadataOptions != nil {
		d.Set("metadata", have.Metadata, i.metadata())
	}
	if made, want := have.Tags[cloud.TemplateTag], i.Tags[cloud.TemplateTag]; made != "" && want != "" && !i.Adopt {
		d.Fixed("template", made, want, "a run that drains nodes and waits for them replaces the machine: run without --wait=infrastructure and --drain=false")
	}
	d.Tags(have.Tags, i.Tags)
	return d
}

// profileCommand is the command that gives a machine its instance profile back.
func (i *Instance) profileCommand(have *InstanceState) string {
	if have.Profile != "" {
		return "aws ec2 replace-iam-instance-profile-association"
	}
	return "aws ec2 associate-iam-instance-profile --instance-id " + have.ID + " --iam-instance-profile Name=" + i.Spec.IAMInstanceProfile
}

// changedByHand returns the advice for a machine that was launched from the template of the manifest, and differs from it: somebody has changed the
// machine. It is "" for others.
func (i *Instance) changedByHand(have *InstanceState, remedy string) string {
	if made := have.Tags[cloud.TemplateTag]; made == "" || made != i.Tags[cloud.TemplateTag] {
		return ""
	}
	return "somebody has changed the machine since it was launched: " + remedy + IfStopped(i.Irreplaceable)
}

func (i *Instance) groups() []string {
	ids := append(identity.CloudIDs(i.Groups), eksSecurityGroups(i.EKS)...)
	for _, g := range i.Groups {
		if g == nil {
			continue
		}
		if found, ok := g.Found(); ok {
			ids = append(ids, found.Also...)
		}
	}
	for _, g := range i.Spec.AdditionalSecurityGroups {
		if g.ID != nil {
			ids = append(ids, *g.ID)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

// metadata returns the desired metadata settings, with the defaults of CAPA (AWSMachine
// spec.instanceMetadataOptions).
func (i *Instance) metadata() Metadata {
	m := Metadata{Endpoint: "enabled", IPv6: "disabled", Tokens: "optional", Tags: "disabled", HopLimit: 1}
	o := i.Spec.InstanceMetadataOptions
	if o == nil {
		return m
	}
	m.Endpoint = cmp.Or(string(o.HTTPEndpoint), m.Endpoint)
	m.IPv6 = cmp.Or(string(o.HTTPProtocolIPv6), m.IPv6)
	m.Tokens = cmp.Or(string(o.HTTPTokens), m.Tokens)
	m.Tags = cmp.Or(string(o.InstanceMetadataTags), m.Tags)
	if o.HTTPPutResponseHopLimit > 0 {
		m.HopLimit = int32(o.HTTPPutResponseHopLimit) //nolint:gosec // validated: 1 to 64
	}
	return m
}

// Create implements graph.Creator.
func (i *Instance) Create(ctx context.Context, c *cloud.Clients) (*InstanceState, error) {
	if i.Boot == nil {
		return nil, errors.New("the machine was deleted during the run: run the command again")
	}
	data, err := i.Boot.Prepare(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("bootstrap data: %w", err)
	}
	return i.launch(ctx, c, data)
}

// Update implements graph.Updater.
func (i *Instance) Update(ctx context.Context, c *cloud.Clients, have *InstanceState, d plan.Diff) (*InstanceState, error) {
	after := *have
	if d.Has("securityGroup") {
		for _, eni := range have.Interfaces[:min(len(have.Interfaces), max(1, len(i.Spec.NetworkInterfaces)))] {
			_, err := c.EC2.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni, Groups: i.groups()})
			if err != nil {
				return nil, err
			}
		}
		after.Groups = i.groups()
	}
	if d.Has("metadata") {
		m := i.metadata()
		_, err := c.EC2.ModifyInstanceMetadataOptions(ctx, &ec2.ModifyInstanceMetadataOptionsInput{
			InstanceId: &have.ID, HttpEndpoint: types.InstanceMetadataEndpointState(m.Endpoint), HttpProtocolIpv6: types.InstanceMetadataProtocolState(m.IPv6),
			HttpTokens: types.HttpTokensState(m.Tokens), HttpPutResponseHopLimit: &m.HopLimit, InstanceMetadataTags: types.InstanceMetadataTagsState(m.Tags),
		})
		if err != nil {
			return nil, err
		}
		after.Metadata = m
	}
	if d.HasTags() {
		var err error
		if after.Object, err = changeTags(ctx, c, have.Object, i.Tags, d, have.taggedParts()...); err != nil {
			return nil, err
		}
	}
	return &after, nil
}

// taggedParts lists the network interfaces of a machine and the volumes that are deleted with it. They have its tags, as in CAPA
// (ensureStorageTags in controllers/awsmachine_controller.go of v2.13.0).
func (s *InstanceState) taggedParts() []string { return slices.Concat(s.Interfaces, s.OwnVolumes) }

// Delete implements graph.Deleter. Machines that are deleted at the same time share one
// call.
func (i *Instance) Delete(ctx context.Context, c *cloud.Clients, have *InstanceState) error {
	if err := i.releaseInterfaces(ctx, c, have); err != nil {
		return err
	}
	return terminate(ctx, c, have.ID)
}

func terminate(ctx context.Context, c *cloud.Clients, id string) error {
	refused, err := cloud.Batch(ctx, c, "terminate", id, func(ctx context.Context, ids []string) ([]error, error) { return terminateAll(ctx, c, ids), nil })
	return cmp.Or(err, refused)
}

// Terminate terminates machines of an Auto Scaling group. The group launches others in their place.
func Terminate(ctx context.Context, c *cloud.Clients, ids []string) error {
	return errors.Join(terminateAll(ctx, c, ids)...)
}

// terminateAll returns an error, or nil, for each machine.
func terminateAll(ctx context.Context, c *cloud.Clients, ids []string) []error {
	fails := func(err error) bool { return cloud.Rejected(err) && !cloud.Is(err, "OperationNotPermitted") }
	return callForAll(ids, fails, func(ids []string) error {
		_, err := c.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		return err
	})
}

// callForAll calls an operation for up to 500 machines at a time. It returns an error, or nil, for each machine. The operation
// fails for all machines of a call if EC2 refuses one of them. If an error may be of this kind, the operation is called again,
// for each machine alone.
func callForAll(ids []string, mayBeOfOne func(error) bool, call func(ids []string) error) []error {
	out := make([]error, 0, len(ids))
	for part := range slices.Chunk(ids, 500) {
		err := call(part)
		errs := slices.Repeat([]error{err}, len(part))
		if len(part) > 1 && mayBeOfOne(err) {
			var g crash.Group
			for n := range part {
				g.Go(func() { errs[n] = call(part[n : n+1]) })
			}
			g.Wait()
		}
		out = append(out, errs...)
	}
	return out
}

// releaseInterfaces removes the security groups of the cluster from existing network
// interfaces. These are not deleted, and would prevent the deletion of the groups.
func (i *Instance) releaseInterfaces(ctx context.Context, c *cloud.Clients, have *InstanceState) error {
	if len(i.Spec.NetworkInterfaces) == 0 {
		return nil
	}
	found, err := describeInterfaces(ctx, c, cloud.Filter("network-interface-id", i.Spec.NetworkInterfaces...))
	if err != nil {
		return err
	}
	for _, eni := range found {
		keep, err := i.remainingGroups(ctx, c, eni, have.VPC)
		if err != nil {
			return err
		}
		_, err = c.EC2.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: eni.NetworkInterfaceId, Groups: keep})
		if cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// remainingGroups returns the security groups of a network interface that are not the
// cluster's, or the default group of the VPC, because an interface needs at least one.
func (i *Instance) remainingGroups(ctx context.Context, c *cloud.Clients, eni types.NetworkInterface, vpc string) (keep []string, err error) {
	for _, g := range eni.Groups {
		if !slices.Contains(i.groups(), aws.ToString(g.GroupId)) {
			keep = append(keep, aws.ToString(g.GroupId))
		}
	}
	if len(keep) > 0 {
		return keep, nil
	}
	all, err := SecurityGroups(ctx, c, vpc)
	for _, g := range all {
		if g.Name == "default" {
			keep = append(keep, g.ID)
		}
	}
	return keep, err
}

// How long AWS usually takes to start and to terminate an instance.
const (
	InstanceCreateTime = 30 * time.Second
	InstanceDeleteTime = 35 * time.Second
)

// MachineKind is the kind of machines.
const MachineKind = "machine"

// instanceKind declares machines.
func instanceKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: MachineKind, Area: kind.AreaMachines, Type: types.ResourceTypeInstance, InCluster: true, Existing: existingInstances, RunsPods: true,
		ReadActions: []string{"ec2:DescribeInstances"}, Statement: kind.Machines,
		Actions: []string{
			"ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifyInstanceMetadataOptions", "ec2:ModifyNetworkInterfaceAttribute", "ec2:RunInstances",
			"ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances",
		},
	}, kind.Functions[InstanceState]{
		List: instancesOf, Delete: &Instance{},
		Refers: func(s InstanceState) []string {
			refers := append(slices.Clone(s.Groups), s.Subnet, InterfacesAlias(s.VPC))
			if s.PublicIP != "" {
				refers = append(refers, InternetGatewayAlias(s.VPC))
			}
			return refers
		},
		Status: func(s InstanceState) (state, detail string) {
			return s.Status, kind.Join(s.Type, s.Zone, s.PrivateIP, s.PublicIP, s.Tags.Printable("Name"))
		},
		Protection: instanceProtection,
	})
}

// BastionKind is the kind of the bastion.
const BastionKind = "bastion"

// bastionKind declares the bastion. Its resource is an Instance.
func bastionKind() *kind.Kind {
	return &kind.Kind{Name: BastionKind, Area: plan.AreaNetwork, ReadActions: []string{"ec2:DescribeInstances"}}
}
