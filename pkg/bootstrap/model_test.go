package bootstrap_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// A model of the template that upstream's clusterawsadm creates from a configuration,
// based on testdata/facts.yaml and the tables it was written from. It works with plain
// values and shares no code with the package under test.

type (
	object = map[string]any
	list   = []any
)

// fact is one statement of a policy.
type fact struct {
	ID, When, Effect string
	Resources        []string
	Actions          []map[string][]string
	Condition        any
}

type model struct {
	facts map[string][]fact
	spec  object
	alpha bool

	prefix, suffix, partition, stack, kms, bucketPrefix string
	backends                                            []string
	eks                                                 object
	eksOff, readOnly                                    bool
}

func facts(t *testing.T) (out map[string][]fact) {
	t.Helper()
	text, err := os.ReadFile("testdata/facts.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &out))
	require.Len(t, out, 6)
	return out
}

func under(v any, path ...string) any {
	for _, p := range path {
		m, _ := v.(object)
		v = m[p]
	}
	return v
}

func str(v any, path ...string) string { s, _ := under(v, path...).(string); return s }

func truth(v any, path ...string) bool { b, _ := under(v, path...).(bool); return b }

func items(v any, path ...string) list { l, _ := under(v, path...).(list); return l }

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// newModel applies the defaults.
func newModel(facts map[string][]fact, configuration object) *model {
	spec, _ := configuration["spec"].(object)
	m := &model{facts: facts, spec: spec, alpha: strings.HasSuffix(str(configuration, "apiVersion"), "/v1alpha1")}
	m.prefix, m.suffix = str(spec, "namePrefix"), ".cluster-api-provider-aws.sigs.k8s.io"
	if s, ok := under(spec, "nameSuffix").(string); ok {
		m.suffix = s
	}
	m.partition = or(str(spec, "partition"), "aws")
	m.stack = or(str(spec, "stackName"), "cluster-api-provider-aws-sigs-k8s-io")
	m.eks, _ = under(spec, "eks").(object)
	m.eksOff = truth(m.eks, "disable")
	m.readOnly = truth(spec, "nodes", "ec2ContainerRegistryReadOnly") || m.eks != nil && !m.eksOff
	m.kms = or(str(m.eks, "kmsAliasPrefix"), "cluster-api-provider-aws-*")
	for _, b := range items(spec, "secureSecretBackends") {
		m.backends = append(m.backends, b.(string))
	}
	if len(m.backends) == 0 {
		m.backends = []string{"secrets-manager"}
	}
	m.bucketPrefix = or(str(spec, "s3Buckets", "namePrefix"), "cluster-api-provider-aws-")
	return m
}

func (m *model) name(role string) string { return m.prefix + role + m.suffix }

// newer returns the value of a field that v1alpha1 does not have.
func (m *model) newer(v any) any {
	if m.alpha {
		return nil
	}
	return v
}

func (m *model) template() object {
	r := object{}
	spec := m.spec
	user := truth(spec, "bootstrapUser", "enable")
	if user {
		m.user(r)
	}
	m.policies(r, user)
	m.role(r, "AWSIAMRoleControlPlane", "control-plane", "controlPlane", list{"ec2.amazonaws.com"}, items(spec, "controlPlane", "extraPolicyAttachments"))
	controllers := list{"ec2.amazonaws.com"}
	if !m.eksOff {
		controllers = append(controllers, "pods.eks.amazonaws.com")
	}
	m.role(r, "AWSIAMRoleControllers", "controllers", "clusterAPIControllers", controllers, nil)
	arns := slices.Clone(items(spec, "nodes", "extraPolicyAttachments"))
	if !m.eksOff {
		arns = append(arns, arn(m.partition, "AmazonEKSWorkerNodePolicy"), arn(m.partition, "AmazonEKS_CNI_Policy"))
	}
	if m.readOnly {
		arns = append(arns, arn(m.partition, "AmazonEC2ContainerRegistryReadOnly"))
	}
	m.role(r, "AWSIAMRoleNodes", "nodes", "nodes", list{"ec2.amazonaws.com"}, arns)
	for _, p := range [][3]string{{"ControlPlane", "control-plane"}, {"Controllers", "controllers"}, {"Nodes", "nodes"}} {
		r["AWSIAMInstanceProfile"+p[0]] = thing("InstanceProfile", object{"InstanceProfileName": m.name(p[1]), "Roles": list{refer("AWSIAMRole" + p[0])}})
	}
	if !m.eksOff {
		m.eksRoles(r)
	}
	return decode(object{"AWSTemplateFormatVersion": "2010-09-09", "Resources": r}).(object)
}

func (m *model) user(r object) {
	u := under(m.spec, "bootstrapUser").(object)
	const usual = "bootstrapper.cluster-api-provider-aws.sigs.k8s.io"
	r["AWSIAMUserBootstrapper"] = thing("User", object{
		"UserName":          or(str(u, "userName"), usual),
		"Groups":            append(list{refer("AWSIAMGroupBootstrapper")}, items(u, "extraGroups")...),
		"ManagedPolicyArns": items(m.spec, "controlPlane", "extraPolicyAttachments"),
		"Policies":          m.inline(u), "Tags": tagged(u),
	})
	group := str(u, "groupName")
	if !m.alpha {
		group = or(group, usual)
	}
	r["AWSIAMGroupBootstrapper"] = thing("Group", object{"GroupName": group})
}

func (m *model) policies(r object, user bool) {
	add := func(id, name, description string, groups, roles list) {
		r[id] = thing("ManagedPolicy", object{
			"ManagedPolicyName": m.name(name), "Description": description, "Groups": groups, "Roles": roles, "PolicyDocument": m.policy(id),
		})
	}
	const controllers = "For the Kubernetes Cluster API Provider AWS Controllers"
	var groups list
	if user {
		groups = list{refer("AWSIAMGroupBootstrapper")}
	}
	roles := list{refer("AWSIAMRoleControllers")}
	if !truth(m.spec, "controlPlane", "disableClusterAPIControllerPolicyAttachment") {
		roles = append(roles, refer("AWSIAMRoleControlPlane"))
	}
	add("AWSIAMManagedPolicyControllers", "controllers", controllers, groups, roles)
	if !m.eksOff {
		add("AWSIAMManagedPolicyControllersEKS", "controllers-eks", controllers, groups, roles)
	}
	var controlPlane list
	if !truth(m.spec, "controlPlane", "disableCloudProviderPolicy") {
		controlPlane = list{refer("AWSIAMRoleControlPlane")}
		add("AWSIAMManagedPolicyCloudProviderControlPlane", "control-plane", "For the Kubernetes Cloud Provider AWS Control Plane", nil, controlPlane)
	}
	if !truth(m.spec, "nodes", "disableCloudProviderPolicy") {
		add(
			"AWSIAMManagedPolicyCloudProviderNodes",
			"nodes",
			"For the Kubernetes Cloud Provider AWS nodes",
			nil,
			append(slices.Clone(controlPlane), refer("AWSIAMRoleNodes")),
		)
	}
	if truth(m.spec, "controlPlane", "enableCSIPolicy") {
		add("AWSEBSCSIPolicyController", "csi", "For the AWS EBS CSI Driver for Kubernetes", nil, controlPlane)
	}
	if truth(m.eks, "enableUserEKSConsolePolicy") && !m.eksOff {
		add("AWSIAMManagedPolicyEKSConsole", "eks-console", "For users/groups to view EKS nodes and workloads", nil, nil)
	}
}

// policy returns a policy document from its facts.
func (m *model) policy(id string) object {
	var statements list
	secretsDone := false
	for _, f := range m.facts[id] {
		switch f.When {
		case "once per entry of secureSecretBackends, in list order":
			if !secretsDone {
				statements = append(statements, m.secrets(id, f.ID[:2])...)
			}
			secretsDone = true
			continue
		case "allowAssumeRole":
			if !truth(m.newer(m.spec), "allowAssumeRole") {
				continue
			}
		case "s3Buckets.enable":
			if !truth(m.newer(m.spec), "s3Buckets", "enable") {
				continue
			}
		case "eventBridge.enable":
			if !truth(m.spec, "eventBridge", "enable") {
				continue
			}
		case "eks.iamRoleCreation":
			if !truth(m.eks, "iamRoleCreation") {
				continue
			}
		case "always; without eks.iamRoleCreation only the first two actions":
			s := m.statement(f)
			if !truth(m.eks, "iamRoleCreation") {
				s["Action"] = s["Action"].(list)[:2]
			}
			statements = append(statements, s)
			continue
		case "always", "always (last)":
		default:
			panic(f.When)
		}
		statements = append(statements, m.statement(f))
	}
	return object{"Version": "2012-10-17", "Statement": statements}
}

// secrets returns the statements for the backends, in the order of the configuration.
func (m *model) secrets(policy, id string) (out list) {
	for _, b := range m.backends {
		i := slices.IndexFunc(m.facts[policy], func(f fact) bool { return f.ID == id+"-"+b })
		switch {
		case i >= 0:
			out = append(out, m.statement(m.facts[policy][i]))
		case policy == "AWSIAMManagedPolicyCloudProviderNodes":
			out = append(out, object{"Action": nil, "Effect": ""})
		}
	}
	return out
}

func (m *model) statement(f fact) object {
	actions, resources := list{}, list{}
	for _, group := range f.Actions {
		for service, names := range group {
			for _, n := range names {
				actions = append(actions, service+":"+n)
			}
		}
	}
	for _, r := range f.Resources {
		if before, ok := strings.CutSuffix(r, "{each allowedEC2InstanceProfiles entry}"); ok {
			for _, p := range m.profiles() {
				resources = append(resources, before+p)
			}
			continue
		}
		resources = append(resources, m.fill(r))
	}
	s := object{"Effect": f.Effect, "Action": actions}
	if len(resources) > 0 {
		s["Resource"] = resources
	}
	if f.Condition != nil {
		s["Condition"] = m.fillAll(f.Condition)
	}
	return s
}

func (m *model) profiles() (out []string) {
	if p, given := under(m.spec, "clusterAPIControllers", "allowedEC2InstanceProfiles").(list); given {
		for _, x := range p {
			out = append(out, x.(string))
		}
		return out
	}
	return []string{m.prefix + "*" + m.suffix}
}

func (m *model) fill(s string) string {
	return strings.NewReplacer("{partition}", m.partition, "{s3Buckets.namePrefix}", m.bucketPrefix, "{eks.kmsAliasPrefix}", m.kms).Replace(s)
}

func (m *model) fillAll(v any) any {
	switch v := v.(type) {
	case string:
		return m.fill(v)
	case object:
		out := object{}
		for k, x := range v {
			out[k] = m.fillAll(x)
		}
		return out
	}
	return v
}

func (m *model) role(r object, id, name, field string, services, arns list) {
	spec := under(m.spec, field)
	path, boundary := str(m.newer(m.spec), "controlPlane", "path"), str(m.newer(m.spec), "controlPlane", "permissionsBoundary")
	r[id] = thing("Role", object{
		"RoleName": m.name(name), "Path": path, "PermissionsBoundary": boundary, "ManagedPolicyArns": arns,
		"AssumeRolePolicyDocument": trusted(services, items(spec, "trustStatements")),
		"Policies":                 m.inline(spec), "Tags": tagged(spec),
	})
}

func (m *model) eksRoles(r object) {
	group := "aws"
	if strings.Contains(m.partition, "aws-us-gov") {
		group = "aws-us-gov"
	}
	for _, role := range []struct {
		id, name, field, partition string
		services                   list
		policies                   []string
	}{
		{"ControlPlane", "eks-controlplane", "defaultControlPlaneRole", m.partition, list{"eks.amazonaws.com"}, []string{"AmazonEKSClusterPolicy"}},
		{"Nodegroup", "eks-nodegroup", "managedMachinePool", group, list{"ec2.amazonaws.com", "eks.amazonaws.com"}, []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"}},
		{"Fargate", "eks-fargate", "fargate", group, list{"eks-fargate-pods.amazonaws.com"}, []string{"AmazonEKSFargatePodExecutionRolePolicy"}},
	} {
		spec, given := under(m.eks, role.field).(object)
		if truth(spec, "disable") || !given && role.id != "ControlPlane" {
			continue
		}
		var arns list
		for _, p := range role.policies {
			arns = append(arns, arn(role.partition, p))
		}
		r["AWSIAMRoleEKS"+role.id] = thing("Role", object{
			"RoleName":                 role.name + ".cluster-api-provider-aws.sigs.k8s.io",
			"AssumeRolePolicyDocument": trusted(role.services, nil),
			"ManagedPolicyArns":        append(arns, items(spec, "extraPolicyAttachments")...), "Tags": tagged(spec),
		})
	}
}

// inline returns the policy with extraStatements, which exists even without statements.
func (m *model) inline(spec any) list {
	statements, given := under(spec, "extraStatements").(list)
	if !given {
		return nil
	}
	return list{object{"PolicyName": m.stack, "PolicyDocument": policyOf(statements)}}
}

func trusted(services, more list) object {
	actions := list{"sts:AssumeRole"}
	if slices.Contains(services, any("pods.eks.amazonaws.com")) {
		actions = append(actions, "sts:TagSession")
	}
	return policyOf(append(list{object{"Effect": "Allow", "Principal": object{"Service": services}, "Action": actions}}, more...))
}

func policyOf(statements list) object {
	var out list
	for _, s := range statements {
		out = append(out, written(s.(object)))
	}
	d := object{"Version": "2012-10-17"}
	if len(out) > 0 {
		d["Statement"] = out
	}
	return d
}

// written returns a statement of a configuration: its known fields, with single strings
// converted to lists where permitted.
func written(s object) object {
	out := object{"Effect": str(s, "Effect"), "Action": many(s["Action"])}
	if sid := str(s, "Sid"); sid != "" {
		out["Sid"] = sid
	}
	for _, field := range []string{"Principal", "NotPrincipal"} {
		if p, _ := s[field].(object); len(p) > 0 {
			principals := object{}
			for k, v := range p {
				principals[k] = many(v)
			}
			out[field] = principals
		}
	}
	if r := items(s, "Resource"); len(r) > 0 {
		out["Resource"] = r
	}
	if c, _ := s["Condition"].(object); len(c) > 0 {
		out["Condition"] = c
	}
	return out
}

func many(v any) any {
	if s, ok := v.(string); ok {
		return list{s}
	}
	return v
}

func tagged(spec any) (out list) {
	tags, _ := under(spec, "tags").(object)
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, object{"Key": k, "Value": tags[k]})
	}
	return out
}

func arn(partition, policy string) string { return "arn:" + partition + ":iam::aws:policy/" + policy }

func refer(id string) object { return object{"Ref": id} }

// thing is a resource. Empty properties are omitted.
func thing(kind string, properties object) object {
	for k, v := range properties {
		l, isList := v.(list)
		if v == nil || v == "" || isList && len(l) == 0 {
			delete(properties, k)
		}
	}
	return object{"Type": "AWS::IAM::" + kind, "Properties": properties}
}

// decode decodes strings that are the base64 of an intrinsic function.
func decode(v any) any {
	switch v := v.(type) {
	case string:
		raw, err := base64.StdEncoding.DecodeString(v)
		var function object
		if err != nil || json.Unmarshal(raw, &function) != nil || len(function) != 1 {
			return v
		}
		for name := range function {
			if name == "Ref" || strings.HasPrefix(name, "Fn::") {
				return function
			}
		}
	case object:
		for k, x := range v {
			v[k] = decode(x)
		}
	case list:
		for i, x := range v {
			v[i] = decode(x)
		}
	}
	return v
}
