package topology

import (
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// join says how machines join the cluster of EKS.
func (b *builder) join(config *eksbootstrapv1.EKSConfigSpec, nodeadm *eksbootstrapv1.NodeadmConfigSpec) *bootdata.EKSJoin {
	return &bootdata.EKSJoin{Cluster: b.plane, Config: config, Nodeadm: nodeadm, Secret: b.secret}
}

// nodeadmSpec is the spec of a template, which may leave it out.
func nodeadmSpec(t *eksbootstrapv1.NodeadmConfigTemplate) *eksbootstrapv1.NodeadmConfigSpec {
	return &t.Spec.Template.Spec
}

// eksImage looks up the image that EKS recommends (facts C.2).
func (b *builder) eksImage(g group) *graph.Ref[ec2.ImageState] {
	version := minorVersion(first(g.version, b.m.Version))
	at := b.m.Origin(g.specAt, g.specPath+".ami")
	if version == "" {
		b.fail("%s: EKS has an image for each version, and neither the machines nor the AWSManagedControlPlane have one: set spec.version", at)
	}
	arch := first(b.inv.Types[g.spec.InstanceType].Architecture, "x86_64")
	kind := infrav1.AmazonLinux
	if given := g.spec.AMI.EKSOptimizedLookupType; given != nil {
		kind = *given
	}
	path := map[infrav1.EKSAMILookupType]string{
		infrav1.AmazonLinux: "amazon-linux-2", infrav1.AmazonLinuxGPU: "amazon-linux-2-gpu",
		infrav1.AmazonLinux2023: "amazon-linux-2023/" + arch + "/standard", infrav1.AmazonLinux2023GPU: "amazon-linux-2023/" + arch + "/nvidia",
	}[kind]
	if kind == infrav1.AmazonLinux && arch == "arm64" {
		path += "-arm64"
	}
	parameter := "/aws/service/eks/optimized-ami/" + version + "/" + path + "/recommended/image_id"
	return use(b, graph.ID("image/eks/"+version+"/"+path), ec2.ImageByParameter(parameter), g.specAt, "spec")
}

// nodeAccess lets the machines that are in no node group into the cluster: by
// an access entry for each of their roles, or the ConfigMap aws-auth where the
// cluster goes by that alone.
func (b *builder) nodeAccess(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	mode := ekscontrolplanev1.EKSAuthenticationModeConfigMap // AWS's own default
	if a := plane.AccessConfig; a != nil && a.AuthenticationMode != "" {
		mode = a.AuthenticationMode
	}
	profiles := map[string]group{}
	for _, g := range b.groupsAndPools() {
		if g.eks != nil && g.eks.Nodeadm != nil && !g.spec.CloudInit.InsecureSkipSecretsManager {
			b.remark("%s: nodeadm reads the user data itself, which therefore holds the NodeadmConfig and not a link to a secret; cloudInit.insecureSkipSecretsManager: true says the same", b.m.Origin(g.specAt, g.specPath+".cloudInit"))
		}
		if _, seen := profiles[g.spec.IAMInstanceProfile]; !seen {
			profiles[g.spec.IAMInstanceProfile] = g
		}
	}
	for _, profile := range slices.Sorted(maps.Keys(profiles)) {
		g := profiles[profile]
		if profile == "" {
			b.remark("%s: without iamInstanceProfile the machines cannot join: it is its role that is let into the cluster", b.m.Origin(g.specAt, g.specPath))
			continue
		}
		role := b.inv.NodeRoles[profile]
		if strings.EqualFold(string(mode), string(ekscontrolplanev1.EKSAuthenticationModeConfigMap)) {
			b.mapNodes(profile, role)
			continue
		}
		b.nodeEntry(g, profile, role)
	}
	if !strings.EqualFold(string(mode), string(ekscontrolplanev1.EKSAuthenticationModeAPI)) {
		b.mapGiven(plane.IAMAuthenticatorConfig)
	}
}

// mapGiven lets those in by the ConfigMap aws-auth whom the manifest names.
func (b *builder) mapGiven(c *ekscontrolplanev1.IAMAuthenticatorConfig) {
	if c == nil {
		return
	}
	for _, m := range c.RoleMappings {
		b.mappings = append(b.mappings, incluster.Mapping{ARN: m.RoleARN, Username: m.UserName, Groups: m.Groups})
	}
	for _, m := range c.UserMappings {
		b.mappings = append(b.mappings, incluster.Mapping{Users: true, ARN: m.UserARN, Username: m.UserName, Groups: m.Groups})
	}
}

// mapNodes lets the role of a profile in by the ConfigMap aws-auth (facts E.9).
func (b *builder) mapNodes(profile, role string) {
	switch {
	case role == "" && b.inv.NodeRoles != nil:
		b.remark("%s: the role of instance profile %s cannot be looked up (iam:GetInstanceProfile): let it into the cluster in spec.iamAuthenticatorConfig.mapRoles", b.m.Origin(b.m.InfraObject(), "spec.accessConfig"), profile)
	case role != "":
		b.mappings = append(b.mappings, incluster.Mapping{ARN: role, Username: "system:node:{{EC2PrivateDNSName}}", Groups: []string{"system:bootstrappers", "system:nodes"}})
	}
}

// awsAuth adds the ConfigMap aws-auth, where something has to be in it.
func (b *builder) awsAuth() {
	from := b.infra("spec.iamAuthenticatorConfig")
	switch {
	case len(b.mappings) == 0:
	case b.o.Wait.asks():
		graph.Install(b.Graph, "aws-auth", &incluster.AWSAuth{API: b.api, Server: b.server, Wanted: b.mappings}, from)
	default:
		b.remark("%s: the ConfigMap aws-auth is not written by a run with --wait=infrastructure, and those who are to be in it are not let into the cluster: run again with --wait=api", b.m.Origin(b.m.InfraObject(), "spec.accessConfig"))
	}
}

// nodeEntry adds the access entry of a role of nodes, unless the manifest has
// one for it, or EKS makes one by itself as for the roles of node groups.
func (b *builder) nodeEntry(g group, profile, role string) {
	id := graph.ID("access-entry/" + profile)
	_, ofNodeGroup := b.roles[role[strings.LastIndex(role, "/")+1:]]
	switch {
	case role == "" && b.inv.NodeRoles != nil:
		b.remark("%s: the role of instance profile %s cannot be looked up (iam:GetInstanceProfile): let it into the cluster with an entry of type ec2_linux in spec.accessEntries", b.m.Origin(g.specAt, g.specPath+".iamInstanceProfile"), profile)
		return
	case ofNodeGroup, role != "" && b.entered[role], b.Resource(graph.ID("access-entry/"+role)) != nil:
		return
	}
	b.entered[role] = true
	graph.Add(b.Graph, id, &eks.AccessEntry{
		Cluster: b.plane, Principal: role, Type: "EC2_LINUX", Tags: b.eksTags(id, profile),
	}, graph.From(b.m.Origin(g.specAt, g.specPath+".iamInstanceProfile")))
}
