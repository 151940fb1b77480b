package hooks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// read returns an object whose spec is YAML.
func read[T any](t *testing.T, spec string) *T {
	t.Helper()
	o := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte("metadata: {name: a, namespace: default}\nspec: "+spec), o), spec)
	return o
}

// lines prints errors as a user reads them, without the values.
func lines(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, strings.TrimSuffix(e.Field+": "+e.Detail, ": "))
	}
	return out
}

// cases are specs and the errors that a webhook has for them; no error for a spec that is valid.
type cases map[string][]string

func (all cases) require(t *testing.T, check func(spec string) field.ErrorList) {
	t.Helper()
	for spec, want := range all {
		assert.Equal(t, want, lines(check(spec)), spec)
	}
}

// A control plane has an odd number of machines unless etcd is external, and replaces them one at a time.
func TestControlPlaneRules(t *testing.T) {
	const surge = "rollout: {strategy: {rollingUpdate: {maxSurge: "
	config := func(text string) string {
		return "{version: v1.34.2, kubeadmConfigSpec: {clusterConfiguration: {" + text + "}}}"
	}
	cases{
		"{version: 1.34.2}":                           nil,
		"{version: v1.34.2, replicas: 5}":             nil,
		"{version: v1.34.2, replicas: 0}":             {"spec.replicas: a control plane needs at least one machine"},
		"{version: v1.34.2, replicas: 2}":             {"spec.replicas: etcd on the control plane needs an odd number of machines, such as 3"},
		"{version: v1.34.2, replicas: 8}":             {"spec.replicas: etcd on the control plane needs an odd number of machines, such as 7"},
		"{version: latest}":                           {"spec.version: is not a Kubernetes version such as v1.34.2"},
		"{version: v1.34}":                            {"spec.version: is not a Kubernetes version such as v1.34.2"},
		"{}":                                          nil,
		"{replicas: 3, " + surge + "0}}}}":            nil,
		"{replicas: 1, " + surge + "0}}}}":            {"spec.rollout.strategy.rollingUpdate.maxSurge: may be 0 only with 3 replicas or more"},
		"{replicas: 3, " + surge + "2}}}}":            {"spec.rollout.strategy.rollingUpdate.maxSurge: must be 0 or 1"},
		config("certificateValidityPeriodDays: 3650"): nil,
		config("certificateValidityPeriodDays: 3651"): {
			"spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays: must not exceed the validity of the CA, 3650 days",
		},
		config("caCertificateValidityPeriodDays: 100"): nil,
		config("certificateValidityPeriodDays: 101, caCertificateValidityPeriodDays: 100"): {
			"spec.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays: must not exceed the validity of the CA, 100 days",
		},
		"{rollout: {before: {certificatesExpiryDays: 30}}, kubeadmConfigSpec: {clusterConfiguration: {certificateValidityPeriodDays: 31}}}": nil,
		"{rollout: {before: {certificatesExpiryDays: 30}}, kubeadmConfigSpec: {clusterConfiguration: {certificateValidityPeriodDays: 30}}}": {
			"spec.rollout.before.certificatesExpiryDays: must be less than certificateValidityPeriodDays, 30",
		},
		config("dns: {imageTag: v1.12.3_custom.1}"): nil,
		config("dns: {imageTag: 'a b'}"): {
			"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: is not an image tag",
		},
		config("dns: {imageTag: latest}"): {
			"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag: is not a version of CoreDNS",
		},
		config("etcd: {local: {imageTag: 3.6.5-0}}"): nil,
		config("etcd: {local: {imageTag: 'x:y'}}"): {
			"spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag: is not an image tag",
		},
		"{machineNaming: {template: '{{ .cluster.name }}-{{ .random }}'}}": nil,
		"{machineNaming: {template: '{{ .kubeadmControlPlane.name }}'}}":   {"spec.machineNaming.template: must contain {{ .random }}"},
		"{machineNaming: {template: '{{ .machineSet.name }}-{{ .random }}'}}": {
			"spec.machineNaming.template: may only use {{ .cluster.name }}, {{ .kubeadmControlPlane.name }} and {{ .random }}",
		},
		"{kubeadmConfigSpec: {clusterConfiguration: {etcd: {external: {}}}}, replicas: 3}": nil,
	}.require(t, func(spec string) field.ErrorList {
		k := read[controlplanev1.KubeadmControlPlane](t, spec)
		hooks.DefaultControlPlane(k)
		return hooks.ValidateControlPlane(k)
	})
	k := read[controlplanev1.KubeadmControlPlane](
		t,
		"{version: v1.34.2, replicas: 2, kubeadmConfigSpec: {clusterConfiguration: {etcd: {external: {endpoints: ['https://a'], caFile: a, certFile: b, keyFile: c}}}}}",
	)
	hooks.DefaultControlPlane(k)
	assert.Empty(t, lines(hooks.ValidateControlPlane(k)), "etcd is not on the machines")
	k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.Local.ImageTag = "3.6.5-0"
	assert.Contains(t, lines(hooks.ValidateControlPlane(k)), "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local: etcd is either local or external, not both")
	naming := k.DeepCopy()
	naming.Spec.MachineNaming.Template = "A-{{ .random }}"
	require.Contains(t, strings.Join(lines(hooks.ValidateControlPlane(naming)), "\n"), "spec.machineNaming.template: does not result in valid names: ")

	labelled := read[controlplanev1.KubeadmControlPlane](t, "{machineTemplate: {metadata: {labels: {'a b': c}}}}")
	hooks.DefaultControlPlane(labelled)
	require.Contains(t, strings.Join(lines(hooks.ValidateControlPlane(labelled)), "\n"), "spec.machineTemplate.metadata.labels: ")

	k = read[controlplanev1.KubeadmControlPlane](t, "{version: 1.34.2}")
	hooks.DefaultControlPlane(k)
	assert.Equal(t, "v1.34.2", k.Spec.Version)
	assert.EqualValues(t, 1, *k.Spec.Replicas)
	assert.Equal(t, 1, k.Spec.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue())
	k = read[controlplanev1.KubeadmControlPlane](t, "{replicas: 3, "+surge+"0}}}}")
	hooks.DefaultControlPlane(k)
	assert.EqualValues(t, 3, *k.Spec.Replicas)
	assert.Equal(t, 0, k.Spec.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue())
}

// Labels, selectors, versions and numbers of a group of machines are as its webhook requires.
func TestDeploymentRules(t *testing.T) {
	spec := func(text string) string {
		return "{clusterName: c, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}}}" + text + "}"
	}
	const rolling = ", rollout: {strategy: {rollingUpdate: {"
	cases{
		spec(""):               nil,
		spec(", replicas: 0"):  nil,
		spec(", replicas: -1"): {"spec.replicas: must not be negative"},
		"{clusterName: c, template: {spec: {clusterName: c, bootstrap: {configRef: {kind: KubeadmConfigTemplate, name: a}}}}}": nil,
		"{clusterName: c, template: {spec: {clusterName: c}}}": {
			"spec.template.spec.bootstrap: set configRef or dataSecretName",
		},
		"{clusterName: c, template: {spec: {clusterName: d, bootstrap: {dataSecretName: s}}}}": {
			`spec.template.spec.clusterName: must be "c", as in spec.clusterName`,
		},
		"{clusterName: c, template: {spec: {clusterName: c, version: v1, bootstrap: {dataSecretName: s}}}}": {
			"spec.template.spec.version: is not a Kubernetes version such as v1.34.2",
		},
		spec(", selector: {matchLabels: {a: b}}"): {
			"spec.template.metadata.labels: the labels must match spec.selector (a=b,cluster.x-k8s.io/cluster-name=c)",
		},
		spec(", selector: {matchExpressions: [{key: a, operator: Exists}]}"): {
			"spec.template.metadata.labels: the labels must match spec.selector (a,cluster.x-k8s.io/cluster-name=c)",
		},
		spec(", selector: {matchExpressions: [{key: a, operator: In}]}"): {
			"spec.selector: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
		},
		spec(rolling + "maxSurge: 50%, maxUnavailable: 0}}}"): nil,
		spec(rolling + "maxSurge: 0, maxUnavailable: 1}}}"):   nil,
		spec(rolling + "maxSurge: 0, maxUnavailable: 0}}}"): {
			"spec.rollout.strategy.rollingUpdate: maxSurge and maxUnavailable must not both be 0",
		},
		spec(rolling + "maxSurge: many}}}"): {
			"spec.rollout.strategy.rollingUpdate.maxSurge: must be a number or a percentage",
		},
		spec(rolling + "maxUnavailable: many}}}"): {
			"spec.rollout.strategy.rollingUpdate.maxUnavailable: must be a number or a percentage",
		},
		spec(", remediation: {maxInFlight: many}"): {
			"spec.remediation.maxInFlight: must be a number or a percentage",
		},
		spec(", machineNaming: {template: '{{ .machineSet.name }}-{{ .random }}'}"): nil,
		spec(", rollout: {strategy: {type: OnDelete}}"):                             nil,
	}.require(t, func(spec string) field.ErrorList {
		d := read[clusterv1.MachineDeployment](t, spec)
		return append(hooks.DefaultDeployment(d), hooks.ValidateDeployment(d)...)
	})

	d := read[clusterv1.MachineDeployment](t, "{clusterName: c, template: {spec: {version: 1.34.2}}}")
	assert.Empty(t, hooks.DefaultDeployment(d))
	assert.Equal(t, map[string]string{clusterv1.ClusterNameLabel: "c"}, d.Labels)
	assert.Equal(t, map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "a"}, d.Spec.Selector.MatchLabels)
	assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	assert.Equal(t, "v1.34.2", d.Spec.Template.Spec.Version)
	assert.EqualValues(t, 1, *d.Spec.Replicas)
	rollout := d.Spec.Rollout.Strategy
	assert.Equal(t, clusterv1.RollingUpdateMachineDeploymentStrategyType, rollout.Type)
	assert.Equal(t, "1 0", rollout.RollingUpdate.MaxSurge.String()+" "+rollout.RollingUpdate.MaxUnavailable.String())
	d = read[clusterv1.MachineDeployment](t, "{clusterName: c, rollout: {strategy: {type: OnDelete}}}")
	assert.Empty(t, hooks.DefaultDeployment(d))
	assert.Nil(t, d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge)
}

// The number of machines is the autoscaler's minimum if it has both bounds.
func TestReplicasOfTheAutoscaler(t *testing.T) {
	for _, c := range []struct {
		least, most string
		want        int32
		problems    []string
	}{
		{"3", "5", 3, nil},
		{"", "5", 1, nil},
		{"3", "", 1, nil},
		{"x", "5", 1, []string{"metadata.annotations.cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: is not a number of machines"}},
		{"3", "x", 3, []string{"metadata.annotations.cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: is not a number of machines"}},
	} {
		notes := map[string]string{}
		if c.least != "" {
			notes[clusterv1.AutoscalerMinSizeAnnotation] = c.least
		}
		if c.most != "" {
			notes[clusterv1.AutoscalerMaxSizeAnnotation] = c.most
		}
		d := &clusterv1.MachineDeployment{}
		d.Annotations = notes
		assert.Equal(t, c.problems, lines(hooks.DefaultDeployment(d)))
		assert.Equal(t, c.want, *d.Spec.Replicas)
		p := &clusterv1.MachinePool{}
		p.Annotations = notes
		assert.Equal(t, c.problems, lines(hooks.DefaultPool(p)))
		assert.Equal(t, c.want, *p.Spec.Replicas)
		seven := int32(7)
		p.Spec.Replicas = &seven
		assert.Empty(t, hooks.DefaultPool(p))
		assert.EqualValues(t, 7, *p.Spec.Replicas, "given in the manifest")
	}
}

// A Cluster refers to objects of its provider, and has blocks of addresses.
func TestClusterRules(t *testing.T) {
	cases{
		"{infrastructureRef: {kind: AWSCluster, name: a}}":        nil,
		"{controlPlaneRef: {kind: KubeadmControlPlane, name: a}}": nil,
		"{}": {"spec.infrastructureRef: set it to the AWSCluster of the cluster"},
		"{topology: {classRef: {name: a}, version: v1.34.2}}": nil,
		"{infrastructureRef: {kind: AWSCluster, name: a}, clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/8, x]}, services: {cidrBlocks: [y]}}}": {
			"spec.clusterNetwork.pods.cidrBlocks[1]: is not a CIDR block such as 192.168.0.0/16",
			"spec.clusterNetwork.services.cidrBlocks[0]: is not a CIDR block such as 192.168.0.0/16",
		},
	}.require(t, func(spec string) field.ErrorList { return hooks.ValidateCluster(read[clusterv1.Cluster](t, spec)) })
	c := read[clusterv1.Cluster](t, "{infrastructureRef: {kind: AWSCluster, name: a}}")
	c.Name = strings.Repeat("a", 64)
	assert.Contains(t, lines(hooks.ValidateCluster(c))[0], "metadata.name: the name is used as the value of a label: ")
}

// A machine of its own, a set of resources and a health check have their own webhooks.
func TestOtherRules(t *testing.T) {
	cases{
		"{clusterName: c, bootstrap: {dataSecretName: s}, version: 1.34.2}": nil,
		"{clusterName: c, bootstrap: {dataSecretName: s}, version: 1.34}":   {"spec.version: is not a Kubernetes version such as v1.34.2"},
		"{clusterName: c}": {"spec.bootstrap: set configRef or dataSecretName"},
	}.require(t, func(spec string) field.ErrorList {
		m := read[clusterv1.Machine](t, spec)
		hooks.DefaultMachine(m)
		assert.EqualValues(t, 10, *m.Spec.Deletion.NodeDeletionTimeoutSeconds)
		return hooks.ValidateMachine(m)
	})
	m := read[clusterv1.Machine](t, "{deletion: {nodeDeletionTimeoutSeconds: 7}}")
	hooks.DefaultMachine(m)
	assert.EqualValues(t, 7, *m.Spec.Deletion.NodeDeletionTimeoutSeconds)

	cases{
		"{clusterSelector: {matchLabels: {a: b}}}":                           nil,
		"{clusterSelector: {}}":                                              {"spec.clusterSelector: an empty selector selects no cluster"},
		"{clusterSelector: {matchExpressions: [{key: a, operator: Maybe}]}}": {`spec.clusterSelector: "Maybe" is not a valid label selector operator`},
	}.require(t, func(spec string) field.ErrorList {
		s := read[addonsv1.ClusterResourceSet](t, spec)
		hooks.DefaultResourceSet(s)
		assert.Equal(t, "ApplyOnce", s.Spec.Strategy)
		return hooks.ValidateResourceSet(s)
	})
	s := read[addonsv1.ClusterResourceSet](t, "{strategy: Reconcile}")
	hooks.DefaultResourceSet(s)
	assert.Equal(t, "Reconcile", s.Spec.Strategy)

	check := func(text string) string { return "{clusterName: c, selector: {matchLabels: {a: b}}" + text + "}" }
	cases{
		check(""):                        nil,
		"{clusterName: c, selector: {}}": {"spec.selector: it must not be empty"},
		"{clusterName: c, selector: {matchExpressions: [{key: a, operator: Maybe}]}}":   {`spec.selector: "Maybe" is not a valid label selector operator`},
		"{clusterName: c, selector: {matchLabels: {cluster.x-k8s.io/cluster-name: c}}}": nil,
		"{clusterName: c, selector: {matchLabels: {cluster.x-k8s.io/cluster-name: d}}}": {"spec.selector: selects machines of another cluster than spec.clusterName"},
		check(", checks: {nodeStartupTimeoutSeconds: 0}"):                               nil,
		check(", checks: {nodeStartupTimeoutSeconds: 30}"):                              nil,
		check(", checks: {nodeStartupTimeoutSeconds: 29}"): {
			"spec.checks.nodeStartupTimeoutSeconds: must be at least 30 seconds, or 0 for no limit",
		},
		check(", remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 40%}}"): nil,
		check(", remediation: {triggerIf: {unhealthyLessThanOrEqualTo: few}}"): {
			"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: must be a number or a percentage",
		},
		check(", remediation: {triggerIf: {unhealthyInRange: '[1-3]'}}"): nil,
	}.require(t, func(spec string) field.ErrorList {
		c := read[clusterv1.MachineHealthCheck](t, spec)
		hooks.DefaultHealthCheck(c)
		return hooks.ValidateHealthCheck(c)
	})
	for _, text := range []string{"[3-1]", "some"} {
		c := read[clusterv1.MachineHealthCheck](t, check(", remediation: {triggerIf: {unhealthyInRange: '"+text+"'}}"))
		hooks.DefaultHealthCheck(c)
		require.Len(t, hooks.ValidateHealthCheck(c), 1, text)
		assert.EqualValues(t, 600, *c.Spec.Checks.NodeStartupTimeoutSeconds)
	}
	require.EqualError(t, hooks.RecoverPanics(func() error { panic("index out of range") }), "upstream's validation failed: index out of range")
}

// Pools of machines have the rules of MachinePool.
func TestPoolRules(t *testing.T) {
	cases{
		"{clusterName: c, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}}}}":               nil,
		"{clusterName: c, replicas: -1, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}}}}": {"spec.replicas: must not be negative"},
		"{clusterName: c, replicas: 0, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}}}}":  nil,
		"{clusterName: c, template: {spec: {clusterName: d, bootstrap: {dataSecretName: s}}}}": {
			`spec.template.spec.clusterName: must be "c", as in spec.clusterName`,
		},
		"{clusterName: c, template: {spec: {clusterName: c}}}": {
			"spec.template.spec.bootstrap: set configRef or dataSecretName",
		},
		"{clusterName: c, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}, taints: [{key: a, effect: NoSchedule, propagation: Always}]}}}": {
			"spec.template.spec.taints: taints of pools are not supported",
		},
	}.require(t, func(spec string) field.ErrorList {
		p := read[clusterv1.MachinePool](t, spec)
		return append(hooks.DefaultPool(p), hooks.ValidatePool(p)...)
	})
	p := read[clusterv1.MachinePool](t, "{clusterName: c, template: {spec: {version: 1.34.2}}}")
	require.Empty(t, hooks.DefaultPool(p))
	assert.EqualValues(t, 10, *p.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds)
	assert.Equal(t, "v1.34.2", p.Spec.Template.Spec.Version)
	p = read[clusterv1.MachinePool](t, "{template: {spec: {deletion: {nodeDeletionTimeoutSeconds: 7}}}}")
	require.Empty(t, hooks.DefaultPool(p))
	assert.EqualValues(t, 7, *p.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds)
}

// Node groups of EKS have the rules of AWSManagedMachinePool.
func TestNodeGroupRules(t *testing.T) {
	template := func(text string) string { return "{awsLaunchTemplate: {" + text + "}}" }
	const at = "spec.awsLaunchTemplate."
	cases{
		"{}":                                  nil,
		"{scaling: {minSize: 1, maxSize: 1}}": nil,
		"{scaling: {minSize: -1}}":            {"spec.scaling.minSize: must not be negative"},
		"{scaling: {maxSize: 0}}":             {"spec.scaling.maxSize: must be 1 or more"},
		"{scaling: {minSize: 3, maxSize: 2}}": {"spec.scaling.maxSize: must not be less than minSize, 3"},
		"{updateConfig: {maxUnavailable: 2}}": nil,
		"{updateConfig: {}}":                  {"spec.updateConfig: set one of maxUnavailable and maxUnavailablePercentage"},
		"{updateConfig: {maxUnavailable: 2, maxUnavailablePercentage: 3}}": {"spec.updateConfig: set one of maxUnavailable and maxUnavailablePercentage"},
		"{remoteAccess: {public: true}}":                                   nil,
		"{remoteAccess: {sourceSecurityGroups: [sg-1]}}":                   nil,
		"{remoteAccess: {public: true, sourceSecurityGroups: [sg-1]}}":     {"spec.remoteAccess.sourceSecurityGroups: must be empty with public: true"},
		"{instanceType: m5.large, diskSize: 40}":                           nil,
		"{instanceType: m5.large, diskSize: 40, awsLaunchTemplate: {}}": {
			"spec.instanceType: must not be set together with awsLaunchTemplate, which contains it",
			"spec.diskSize: must not be set together with awsLaunchTemplate, which contains it",
		},
		template("rootVolume: {size: 8, type: gp3, throughput: 125}"):  nil,
		template("rootVolume: {size: 8, type: gp3, throughput: 2000}"): nil,
		template("rootVolume: {size: 8, type: gp3, throughput: 124}"):  {at + "rootVolume.throughput: must be 125 to 2000 MiB/s"},
		template("rootVolume: {size: 8, type: gp3, throughput: 2001}"): {at + "rootVolume.throughput: must be 125 to 2000 MiB/s"},
		template("rootVolume: {size: 8, type: gp2, throughput: 125}"): {
			at + "rootVolume.throughput: only volumes of type gp3 have it",
		},
		template("rootVolume: {size: 8, type: io1}"):                  {at + "rootVolume.iops: a volume of type io1 needs it"},
		template("rootVolume: {size: 8, type: io1, iops: 100}"):       nil,
		template("nonRootVolumes: [{size: 8, deviceName: /dev/sdb}]"): nil,
		template("nonRootVolumes: [{size: 8, type: io2}]"): {
			at + "nonRootVolumes[0].iops: a volume of type io2 needs it",
			at + "nonRootVolumes[0].deviceName",
		},
		template("nonRootVolumes: [{size: 8, deviceName: a, type: gp3, throughput: -1}]"):       {at + "nonRootVolumes[0].throughput: must not be negative"},
		template("additionalSecurityGroups: [{id: sg-1}, {filters: [{name: a, values: [b]}]}]"): nil,
		template("additionalSecurityGroups: [{id: sg-1, filters: [{name: a, values: [b]}]}]"): {
			at + "additionalSecurityGroups[0]: set id or filters, not both",
		},
		"{lifecycleHooks: [{name: a, lifecycleTransition: x}]}":  nil,
		"{lifecycleHooks: [{name: '', lifecycleTransition: x}]}": {"spec.lifecycleHooks[0].name"},
		"{lifecycleHooks: [{name: a, lifecycleTransition: x, notificationTargetARN: t}]}": {
			"spec.lifecycleHooks[0].roleARN: the notification target needs it",
		},
		"{lifecycleHooks: [{name: a, lifecycleTransition: x, roleARN: r}]}": {
			"spec.lifecycleHooks[0].notificationTargetARN: roleARN needs it",
		},
		"{lifecycleHooks: [{name: a, lifecycleTransition: x, notificationTargetARN: t, roleARN: r}]}": nil,
		"{lifecycleHooks: [{name: a, lifecycleTransition: x, heartbeatTimeout: 30s}]}":                nil,
		"{lifecycleHooks: [{name: a, lifecycleTransition: x, heartbeatTimeout: 29s}]}": {
			"spec.lifecycleHooks[0].heartbeatTimeout: must be 30 seconds to 2 hours",
		},
		"{lifecycleHooks: [{name: a, lifecycleTransition: x, heartbeatTimeout: 2h1s}]}": {
			"spec.lifecycleHooks[0].heartbeatTimeout: must be 30 seconds to 2 hours",
		},
	}.require(t, func(spec string) field.ErrorList {
		p := read[expinfrav1.AWSManagedMachinePool](t, spec)
		return append(hooks.DefaultNodeGroup(p), hooks.ValidateNodeGroup(p)...)
	})
	p := read[expinfrav1.AWSManagedMachinePool](t, "{}")
	require.Empty(t, hooks.DefaultNodeGroup(p))
	assert.Equal(t, 1, *p.Spec.UpdateConfig.MaxUnavailable)
	assert.Equal(t, "default_a", p.Spec.EKSNodegroupName)
	p = read[expinfrav1.AWSManagedMachinePool](t, "{eksNodegroupName: mine, updateConfig: {maxUnavailablePercentage: 3}}")
	require.Empty(t, hooks.DefaultNodeGroup(p))
	assert.Nil(t, p.Spec.UpdateConfig.MaxUnavailable)
	assert.Equal(t, "mine", p.Spec.EKSNodegroupName)
}

// Auto Scaling groups have the rules of AWSMachinePool.
func TestScalingRules(t *testing.T) {
	spec := func(text string) string { return "{minSize: 0, maxSize: 1, " + text + "}" }
	refresh := func(text string) string { return spec("refreshPreferences: {" + text + "}") }
	template := func(text string) string { return spec("awsLaunchTemplate: {" + text + "}") }
	const at = "spec.awsLaunchTemplate."
	cases{
		"{minSize: 0, maxSize: 1}":                                      nil,
		"{minSize: 2, maxSize: 1}":                                      {"spec.maxSize: must not be less than minSize, 2"},
		spec("defaultCoolDown: -5s"):                                    {"spec.defaultCoolDown: must not be negative"},
		spec("defaultInstanceWarmup: -5s"):                              {"spec.defaultInstanceWarmup: must not be negative"},
		spec("subnets: [{id: a}, {filters: [{name: a, values: [b]}]}]"): nil,
		spec("subnets: [{id: a, filters: [{name: a, values: [b]}]}]"):   {"spec.subnets[0]: set id or filters, not both"},
		spec("mixedInstancesPolicy: {}"):                                nil,
		template("spotMarketOptions: {}"):                               nil,
		spec("mixedInstancesPolicy: {}, awsLaunchTemplate: {spotMarketOptions: {}}"): {
			at + "spotMarketOptions: must not be set together with mixedInstancesPolicy, which sets the number of spot instances",
		},
		refresh("strategy: Rolling"):           nil,
		refresh("strategy: ReplaceRootVolume"): nil,
		refresh("strategy: Fast"):              {`spec.refreshPreferences.strategy: supported values: "Rolling", "ReplaceRootVolume"`},
		refresh("minHealthyPercentage: 0"):     nil,
		refresh("minHealthyPercentage: 101"):   {"spec.refreshPreferences.minHealthyPercentage: must be 0 to 100"},
		refresh("minHealthyPercentage: -1"):    {"spec.refreshPreferences.minHealthyPercentage: must be 0 to 100"},
		refresh("instanceWarmup: -1"):          {"spec.refreshPreferences.instanceWarmup: must be 0 to 2147483647"},
		refresh("maxHealthyPercentage: 120"): {
			"spec.refreshPreferences.maxHealthyPercentage: must not be set without minHealthyPercentage",
		},
		refresh("maxHealthyPercentage: 201, minHealthyPercentage: 90"): {"spec.refreshPreferences.maxHealthyPercentage: must be 100 to 200"},
		refresh("maxHealthyPercentage: 190, minHealthyPercentage: 90"): nil,
		refresh("maxHealthyPercentage: 191, minHealthyPercentage: 90"): {
			"spec.refreshPreferences.maxHealthyPercentage: must not be more than 100 above minHealthyPercentage",
		},
		template("spotMarketOptions: {}, marketType: Spot"):     nil,
		template("spotMarketOptions: {}, marketType: OnDemand"): {at + "marketType: must not be set together with spotMarketOptions (OnDemand)"},
		template("spotMarketOptions: {}, marketType: CapacityBlock, capacityReservationId: cr-1"): {
			at + "marketType: must not be set together with spotMarketOptions (CapacityBlock)", at + "capacityReservationId: spot instances cannot use a reservation",
		},
		template("marketType: CapacityBlock"): {
			at + "capacityReservationId: a CapacityBlock needs a reservation",
		},
		template("marketType: CapacityBlock, capacityReservationId: cr-1"):  nil,
		template("capacityReservationPreference: CapacityReservationsOnly"): nil,
		template("marketType: Spot, capacityReservationPreference: CapacityReservationsOnly"): {
			at + "capacityReservationPreference: spot instances cannot use a reservation",
		},
		template("spotMarketOptions: {}, capacityReservationPreference: CapacityReservationsOnly"): {
			at + "capacityReservationPreference: spot instances cannot use a reservation",
		},
		template("marketType: Spot, capacityReservationPreference: Open"):                                nil,
		template("capacityReservationId: cr-1, capacityReservationPreference: CapacityReservationsOnly"): nil,
		template("capacityReservationId: cr-1, capacityReservationPreference: Open"): {
			at + "capacityReservationPreference: may only be CapacityReservationsOnly with capacityReservationId",
		},
		template("marketType: Spot, capacityReservationId: cr-1"): {
			at + "capacityReservationId: spot instances cannot use a reservation",
		},
	}.require(t, func(spec string) field.ErrorList {
		p := read[expinfrav1.AWSMachinePool](t, spec)
		hooks.DefaultScaling(p)
		return hooks.ValidateScaling(p)
	})
	for text, want := range map[string]string{
		"{}": "5m0s 5m0s", "{defaultCoolDown: 7s}": "7s 5m0s", "{defaultInstanceWarmup: 7s}": "5m0s 7s", "{defaultCoolDown: 500ms}": "5m0s 5m0s",
	} {
		p := read[expinfrav1.AWSMachinePool](t, text)
		hooks.DefaultScaling(p)
		assert.Equal(t, want, p.Spec.DefaultCoolDown.Duration.String()+" "+p.Spec.DefaultInstanceWarmup.Duration.String(), text)
	}
	for text, want := range map[string]string{
		"{ignition: {}}": infrav1.DefaultIgnitionVersion, "{ignition: {version: '3.4'}}": "3.4", "{ignition: {storageType: UnencryptedUserData}}": "",
	} {
		p := read[expinfrav1.AWSMachinePool](t, text)
		hooks.DefaultScaling(p)
		assert.Equal(t, want, p.Spec.Ignition.Version, text)
	}
	f := read[expinfrav1.AWSFargateProfile](t, "{clusterName: c}")
	require.Empty(t, hooks.DefaultFargate(f))
	assert.Equal(t, "default_a c", f.Spec.ProfileName+" "+f.Labels[clusterv1.ClusterNameLabel])
	f = read[expinfrav1.AWSFargateProfile](t, "{profileName: mine}")
	require.Empty(t, hooks.DefaultFargate(f))
	assert.Equal(t, "mine", f.Spec.ProfileName)
}
