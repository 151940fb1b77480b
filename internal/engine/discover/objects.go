package discover

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// unknownIdentity is the comment at the object that may have an identityRef.
const unknownIdentity = "Not known: identityRef, with which identity the cluster was made. Runs use the\ncredentials of the caller."

func coreVersion() string  { return clusterv1.GroupVersion.String() }
func infraVersion() string { return infrav1.GroupVersion.String() }

// Objects returns the Cluster API objects of the cluster.
func (s *SelfManaged) Objects() []Object {
	s.groups = s.readGroups()
	out := []Object{
		object(coreVersion(), "Cluster", s.Name, s.clusterSpec()),
		object(infraVersion(), "AWSCluster", s.Name, s.infrastructure()),
	}
	out[1].Annotations = s.infrastructureAnnotations()
	if s.External() {
		out[1].comment("spec", "The network and the load balancer are not the cluster's own.")
	}
	if !s.External() {
		out[1].comment("spec", unknownIdentity)
	}
	for _, g := range s.groups {
		out = append(out, s.machineObjects(g)...)
	}
	for _, p := range s.Pools {
		out = append(out, s.pool(p)...)
	}
	out = append(out, charts(s.Charts)...)
	for i := range out {
		out[i].Namespace = s.Namespace
	}
	return out
}

// infrastructureAnnotations returns the annotations of the AWSCluster.
func (s *SelfManaged) infrastructureAnnotations() map[string]any {
	out := map[string]any{}
	if s.External() {
		out[clusterv1.ManagedByAnnotation] = "unknown"
	} else {
		maps.Copy(out, s.flowLogAnnotations())
	}
	if s.Protected {
		out[manifest.OwnAnnotations+manifest.AnnotationDeletionProtection] = "true"
	}
	return out
}

func (s *SelfManaged) clusterSpec() map[string]any {
	spec := map[string]any{"infrastructureRef": reference(infrav1.GroupVersion.Group, "AWSCluster", s.Name)}
	for _, g := range s.groups {
		if g.kind == planeKind {
			spec["controlPlaneRef"] = reference(controlplanev1.GroupVersion.Group, planeKind, g.name)
		}
	}
	setMap(spec, "clusterNetwork", s.clusterNetwork())
	return spec
}

// clusterNetwork returns the network of pods and Services, as a run has recorded it, or as
// kubeadm has stored it in the cluster.
func (s *SelfManaged) clusterNetwork() map[string]any {
	pods, services, domain := s.networks()
	out := map[string]any{}
	if pods != "" {
		out["pods"] = map[string]any{"cidrBlocks": anys(strings.Split(pods, ","))}
	}
	if services != "" && services != rules.DefaultServices {
		out["services"] = map[string]any{"cidrBlocks": anys(strings.Split(services, ","))}
	}
	set(out, "serviceDomain", domain, topology.DefaultDomain)
	if port := s.port(); port != apiPort && len(s.Balancers)+rank(s.Classic != nil) > 0 {
		out["apiServerPort"] = int64(port)
	}
	return out
}

// networks returns the blocks of pods and Services, separated by commas, and the domain of
// Services.
func (s *SelfManaged) networks() (pods, services, domain string) {
	if m := s.Marker; m != nil {
		return m.Pods, m.Services, m.Domain
	}
	if s.Config != nil {
		return s.Config.Pods, s.Config.Services, s.Config.Domain
	}
	return "", "", ""
}

// infrastructure returns the spec of the AWSCluster.
func (s *SelfManaged) infrastructure() map[string]any {
	spec := map[string]any{"region": s.Region}
	if !s.External() {
		spec["sshKeyName"] = s.key()
	}
	setMap(spec, "additionalTags", s.additionalTags())
	s.setBalancers(spec)
	if host, _, ok := strings.Cut(s.Endpoint(), ":"); ok && !s.isBalancer(host) {
		spec["controlPlaneEndpoint"] = map[string]any{"host": host, "port": int64(s.port())}
	}
	s.setBastion(spec)
	s.setBucket(spec)
	network := s.network(s.usedSubnets())
	s.setRules(network)
	s.setOverrides(network)
	setMap(spec, "network", network)
	return spec
}

// network returns spec.network without security groups. used are the IDs of the subnets that the cluster uses.
func (s *SelfManaged) network(used []string) map[string]any {
	if !s.Owned {
		return s.existingNetwork(used)
	}
	network := s.ownNetwork()
	if vpc, ok := network["vpc"].(map[string]any); ok && s.Sealed {
		vpc["emptyRoutesDefaultVPCSecurityGroup"] = true
	} else if s.Sealed {
		network["vpc"] = map[string]any{"emptyRoutesDefaultVPCSecurityGroup": true}
	}
	return network
}

// key returns the key pair of all machines; "" if they have several, or none.
func (s *SelfManaged) key() string {
	key := ""
	for i, m := range s.Machines {
		if i > 0 && m.Key != key {
			return ""
		}
		key = m.Key
	}
	return key
}

// additionalTags returns the tags of the user that the VPC and the security groups have, or, in
// a VPC of somebody else, the security groups and all machines.
func (s *SelfManaged) additionalTags() map[string]any {
	if s.plane != nil {
		return s.plane.additionalTags()
	}
	var parts []cloud.Tags
	if s.Owned {
		parts = append(parts, s.VPC.Tags)
	}
	for _, g := range s.Groups {
		parts = append(parts, g.Tags)
	}
	if len(parts) == 0 {
		for _, m := range s.Machines {
			parts = append(parts, m.Tags)
		}
	}
	out := map[string]any{}
	if len(parts) == 0 {
		return out
	}
	for k, v := range parts[0] {
		if byUser(k) && !slices.ContainsFunc(parts, func(other cloud.Tags) bool { return other[k] != v }) {
			out[k] = v
		}
	}
	return out
}

// usedSubnets lists the subnets of somebody else that the cluster uses: those with its tag, and
// those of its machines and load balancers.
func (s *SelfManaged) usedSubnets() (ids []string) {
	for _, x := range s.Subnets {
		if x.Tags[cloud.CloudProviderTagPrefix+s.Name] != "" {
			ids = append(ids, x.ID)
		}
	}
	for _, m := range s.Machines {
		ids = append(ids, m.Subnet)
	}
	for _, b := range s.Balancers {
		ids = append(ids, b.Subnets...)
	}
	if s.Classic != nil {
		ids = append(ids, s.Classic.Subnets...)
	}
	return ids
}

// inOrder lists the subnets in the order of the manifest.
func (s *SelfManaged) inOrder() []ec2.SubnetState { return s.byZone(s.Subnets) }

// subnetName returns how the manifest names a subnet.
func (s *SelfManaged) subnetName(id string) string {
	for _, x := range s.Subnets {
		if x.ID != id || !s.Owned {
			continue
		}
		if _, _, split := s.splitByCAPA(); !split {
			return listedName(x)
		}
		return map[bool]string{true: "public-", false: "private-"}[s.Public[id]] + x.Zone
	}
	return id
}

// setOverrides sets the security groups that take the place of the cluster's own: those that
// all machines of a role have, if no group was made for the role.
func (s *SelfManaged) setOverrides(network map[string]any) {
	if s.External() {
		return
	}
	overrides := map[string]any{}
	if _, own := s.Groups[infrav1.SecurityGroupNode]; !own {
		if foreign := s.commonGroups(""); len(foreign) > 0 {
			overrides[string(infrav1.SecurityGroupNode)] = foreign[0]
		}
	}
	if _, own := s.Groups[infrav1.SecurityGroupControlPlane]; !own {
		common := s.commonGroups("")
		foreign := slices.DeleteFunc(s.commonGroups(topology.RoleControlPlane), func(id string) bool { return slices.Contains(common, id) })
		if len(foreign) > 0 {
			overrides[string(infrav1.SecurityGroupControlPlane)] = foreign[0]
		}
	}
	setMap(network, "securityGroupOverrides", overrides)
}

// commonGroups lists the security groups of somebody else that all machines of a role have;
// those of all machines if it is "".
func (s *SelfManaged) commonGroups(role string) (ids []string) {
	first := true
	for _, m := range s.Machines {
		if r := m.Tags[cloud.RoleTag]; r == topology.RoleBastion || role != "" && r != role {
			continue
		}
		if first {
			ids, first = slices.Sorted(slices.Values(m.Groups)), false
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(m.Groups, id) || s.roleOf(id) != "" })
	}
	return ids
}

// setBucket sets the bucket for Ignition, with the roles that its policy lets read it.
func (s *SelfManaged) setBucket(spec map[string]any) {
	if s.Bucket == nil {
		return
	}
	bucket := map[string]any{"name": s.Bucket.Name}
	var policy struct {
		Statement []struct {
			Sid       string
			Principal map[string]any
			Resource  any
		}
	}
	var nodes, others []any
	if json.Unmarshal([]byte(s.Bucket.Policy), &policy) == nil {
		for _, x := range policy.Statement {
			arn, _ := x.Principal["AWS"].(string)
			_, role, _ := strings.Cut(arn, ":role/")
			switch prefix := objectPrefix(x.Resource); {
			case role == "":
			case x.Sid == topology.RoleControlPlane:
				bucket["controlPlaneIAMInstanceProfile"] = role
			case strings.HasPrefix(x.Sid, "additional-"):
				others = append(others, map[string]any{"name": role, "prefix": prefix})
			default:
				nodes = append(nodes, role)
			}
		}
	}
	setList(bucket, "nodesIAMInstanceProfiles", nodes)
	setList(bucket, "additionalIAMRoles", others)
	if len(nodes)+len(others) == 0 && bucket["controlPlaneIAMInstanceProfile"] == nil {
		bucket["presignedURLDuration"] = "1h0m0s"
	}
	spec["s3Bucket"] = bucket
}

// objectPrefix returns the prefix of objects in the resource of a policy.
func objectPrefix(resource any) string {
	if list, ok := resource.([]any); ok && len(list) > 0 {
		resource = list[0]
	}
	arn, _ := resource.(string)
	_, prefix, _ := strings.Cut(arn, "/")
	return prefix
}
