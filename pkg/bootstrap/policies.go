package bootstrap

import (
	"strings"

	"github.com/awslabs/goformation/v7/cloudformation/iam"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
)

// addPolicies adds the managed policies.
func (c *Config) addPolicies(t *Template) {
	spec := c.Spec
	add := func(id, name, description string, d *iamv1.PolicyDocument, groups, roles []string) {
		t.Resources[id] = &iam.ManagedPolicy{
			ManagedPolicyName: text(c.name(name)), Description: text(description),
			PolicyDocument: d, Groups: groups, Roles: roles,
		}
	}
	const forControllers = "For the Kubernetes Cluster API Provider AWS Controllers"
	var groups []string
	if spec.BootstrapUser.Enable {
		groups = []string{ref(bootstrapperGroup)}
	}
	controllers := []string{ref(controllersRole)}
	if !spec.ControlPlane.DisableClusterAPIControllerPolicyAttachment {
		controllers = append(controllers, ref(controlPlaneRole))
	}
	add(ControllersPolicy, "controllers", forControllers, c.controllersPolicy(), groups, controllers)
	if !spec.EKS.Disable {
		add(ControllersPolicyEKS, "controllers-eks", forControllers, c.controllersPolicyEKS(), groups, controllers)
		if spec.EKS.EnableUserEKSConsolePolicy {
			add(EKSConsolePolicy, "eks-console", "For users/groups to view EKS nodes and workloads", eksConsolePolicy(), nil, nil)
		}
	}
	var controlPlane []string // which a disabled policy detaches from the others, too
	if !spec.ControlPlane.DisableCloudProviderPolicy {
		controlPlane = []string{ref(controlPlaneRole)}
		add(ControlPlanePolicy, "control-plane", "For the Kubernetes Cloud Provider AWS Control Plane", controlPlanePolicy(), nil, controlPlane)
	}
	if !spec.Nodes.DisableCloudProviderPolicy {
		roles := append(append([]string{}, controlPlane...), ref(nodesRole))
		add(NodePolicy, "nodes", "For the Kubernetes Cloud Provider AWS nodes", c.nodePolicy(), nil, roles)
	}
	if spec.ControlPlane.EnableCSIPolicy {
		add(CSIPolicy, "csi", "For the AWS EBS CSI Driver for Kubernetes", csiPolicy(), nil, controlPlane)
	}
}

// everything matches every resource.
func everything() iamv1.Resources { return iamv1.Resources{iamv1.Any} }

// allow returns a statement without conditions.
func allow(actions iamv1.Actions, on iamv1.Resources) iamv1.StatementEntry {
	return iamv1.StatementEntry{Effect: iamv1.EffectAllow, Action: actions, Resource: on}
}

// allowIf returns a statement with one condition.
func allowIf(operator iamv1.ConditionOperator, key, value string, actions iamv1.Actions, on iamv1.Resources) iamv1.StatementEntry {
	s := allow(actions, on)
	s.Condition = iamv1.Conditions{operator: map[string]any{key: value}}
	return s
}

// allowServiceLinkedRole permits the creation of the service-linked role of a service. In
// the ARN, the service may have another name.
func allowServiceLinkedRole(service, role string) iamv1.StatementEntry {
	return allowIf(iamv1.StringLike, "iam:AWSServiceName", service, actions("iam", "CreateServiceLinkedRole"), iamv1.Resources{role})
}

// actions returns the actions of a service; names are separated by spaces.
func actions(service, names string) (out iamv1.Actions) {
	for name := range strings.FieldsSeq(names) {
		out = append(out, service+":"+name)
	}
	return out
}

// secrets returns the statements for the backends that store the boot data of machines,
// in the order of the configuration.
func (c *Config) secrets(statement func(infrav1.SecretBackend) (iamv1.StatementEntry, bool)) (out []iamv1.StatementEntry) {
	for _, backend := range c.Spec.SecureSecretsBackends {
		if s, ok := statement(backend); ok {
			out = append(out, s)
		}
	}
	return out
}

// secretsIn returns the resources of a backend.
func secretsIn(backend infrav1.SecretBackend) iamv1.Resources {
	if backend == infrav1.SecretBackendSSMParameterStore {
		return iamv1.Resources{"arn:*:ssm:*:*:parameter/cluster.x-k8s.io/*"}
	}
	return iamv1.Resources{"arn:*:secretsmanager:*:*:secret:aws.cluster.x-k8s.io/*"}
}
