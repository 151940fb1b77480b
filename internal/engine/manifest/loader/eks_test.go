package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// The result for each example, with all defaults and generated names.
func TestExamples(t *testing.T) {
	var files []string
	for _, pattern := range []string{"eks*.yaml", "*pool.yaml"} {
		found, err := filepath.Glob("../../../../configs/" + pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Len(t, files, 13)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			c := manifests.MustLoad(t, manifests.Read(t, file), input.LoadOptions{Strict: true, EKSEnableIAM: strings.HasSuffix(name, "-iam")})
			golden.Assert(t, "loaded/"+name+".yaml", loaded(t, c))
		})
	}
}

// loaded prints the parts of a cluster that concern EKS and pools.
func loaded(t *testing.T, c *manifest.Cluster) string {
	t.Helper()
	out := map[string]any{"version": c.Version}
	if e := c.EKS; e != nil {
		out["infrastructure"] = c.Infra.Spec
		out["controlPlane"] = e.ControlPlane.Spec
		var profiles []any
		for _, f := range e.Fargate {
			profiles = append(profiles, f.Spec)
		}
		out["fargate"] = profiles
	}
	var pools []any
	for _, p := range c.Pools {
		pool := map[string]any{"machinePool": p.Object.Spec}
		if p.Managed != nil {
			pool["managed"] = p.Managed.Spec
		}
		if p.Scaling != nil {
			pool["scaling"] = p.Scaling.Spec
		}
		pools = append(pools, pool)
	}
	out["pools"] = pools
	text, err := yaml.Marshal(out)
	require.NoError(t, err)
	return string(text)
}

// Upstream's templates of EKS load without warnings: validate --strict takes them.
func TestTemplatesOfEKSLoadUnchanged(t *testing.T) {
	for name, want := range map[string]struct {
		pools, profiles int
	}{
		"eks-fargate":                {0, 1},
		"eks-managedmachinepool":     {1, 0},
		"eks-managedmachinepool-gpu": {1, 0},
		"machinepool":                {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(manifests.Templates, "cluster-template-"+name+".yaml"))
			if err != nil {
				t.Skip("CAPA's templates are not installed")
			}
			variables := manifests.QuickStart()
			variables["AWS_AVAILABILITY_ZONE"] = "eu-west-1a"
			c := manifests.MustLoad(t, string(data), input.LoadOptions{Lookup: manifests.Lookup(variables)})
			assert.Empty(t, manifests.Warnings(c))
			assert.Equal(t, "v1.34.2", c.Version)
			assert.Equal(t, "eu-west-1", c.Region)
			require.Len(t, c.Pools, want.pools)
			if want.pools > 0 {
				assert.Equal(t, 2, c.Pools[0].Replicas())
				assert.NotEqual(t, c.Pools[0].Managed == nil, c.Pools[0].Scaling == nil, "exactly one")
			}
			if strings.HasPrefix(name, "eks") {
				assert.Equal(t, "default_quick-control-plane", c.EKS.ControlPlane.Spec.EKSClusterName)
				assert.Len(t, c.EKS.Fargate, want.profiles)
				assert.Nil(t, c.ControlPlane)
			} else {
				assert.Nil(t, c.EKS)
				assert.NotNil(t, c.Pools[0].Bootstrap.Kubeadm)
			}
		})
	}
}

// The secondary block of the control plane's object is one of the VPC.
func TestSecondaryBlockOfEKS(t *testing.T) {
	c := manifests.MustLoad(
		t,
		manifests.Edit(t, manifests.Read(t, "testdata/good/eks.yaml"), "  # its DaemonSets are those of EKS\n", "  secondaryCidrBlock: 100.64.0.0/16\n"),
		input.LoadOptions{},
	)
	assert.Equal(t, []infrav1.VpcCidrBlock{{IPv4CidrBlock: "100.64.0.0/16"}}, c.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks)
	assert.Empty(t, c.EKS.ControlPlane.Spec.NetworkSpec.VPC.SecondaryCidrBlocks, "a value in the manifest is kept")
}

func TestEKS(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/eks.yaml"), input.LoadOptions{Strict: true})
	assert.Equal(t, "v1.32", c.Version)
	assert.Equal(t, "shop", c.EKS.Cluster.Name)
	assert.Equal(t, "prod_shop_eu", c.EKS.ControlPlane.Spec.EKSClusterName, "in the namespace of the Cluster, without dots")
	assert.Equal(t, "prod", c.EKS.ControlPlane.Namespace)
	assert.True(t, c.EKS.ControlPlane.Spec.BootstrapSelfManagedAddons)
	require.Len(t, c.Identity, 1)
	assert.Equal(t, "AWSClusterRoleIdentity/builder", c.Identity[0].Origin)
	require.Len(t, c.EKS.Fargate, 1)
	assert.Equal(t, "prod_shop-fargate", c.EKS.Fargate[0].Spec.ProfileName)
	assert.Equal(t, "shop", c.EKS.Fargate[0].Labels["cluster.x-k8s.io/cluster-name"])

	assert.Equal(t, "AWSManagedControlPlane/shop.eu", c.InfraObject())
	assert.Equal(t, "cluster.yaml:35 AWSManagedControlPlane/shop.eu spec.network.vpc.cidrBlock", c.Origin(c.InfraObject(), "spec.network.vpc.cidrBlock"))
	infra := c.Infra.Spec
	assert.Nil(t, infra.ControlPlaneLoadBalancer)
	assert.Nil(t, infra.S3Bucket)
	assert.Equal(t, "10.1.0.0/16", infra.NetworkSpec.VPC.CidrBlock)
	assert.Empty(t, infra.NetworkSpec.VPC.SecondaryCidrBlocks)
	assert.Equal(t, infrav1.Tags{"team": "shop"}, infra.AdditionalTags)
	assert.Equal(t, infrav1.CidrBlocks{"0.0.0.0/0", "::/0"}, infra.Bastion.AllowedCIDRBlocks)
	assert.Equal(t, "ops", *infra.SSHKeyName)

	c.SetRegion("eu-north-1")
	assert.Equal(t, "eu-north-1", c.Infra.Spec.Region)
	assert.Equal(t, "eu-north-1", c.EKS.ControlPlane.Spec.Region)
}

// Every pool and machine has its bootstrap configuration and no other.
func TestNodesOfEKS(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/eks.yaml"), input.LoadOptions{})
	require.Len(t, c.Pools, 3)

	managed := c.Pools[0]
	assert.Equal(t, "prod_shop-managed", managed.Managed.Spec.EKSNodegroupName)
	assert.Equal(t, 1, *managed.Managed.Spec.UpdateConfig.MaxUnavailable)
	assert.EqualValues(t, "onDemand", *managed.Managed.Spec.CapacityType)
	assert.Zero(t, managed.Bootstrap, "EKS writes the user data")

	template := c.Pools[1]
	assert.Equal(t, 1, template.Replicas())
	require.NotNil(t, template.Bootstrap.Nodeadm)
	assert.Equal(t, []string{"true"}, template.Bootstrap.Nodeadm.Spec.PreNodeadmCommands)

	scaling := c.Pools[2]
	assert.Nil(t, scaling.Managed)
	assert.Equal(t, 300*time.Second, scaling.Scaling.Spec.DefaultCoolDown.Duration)
	assert.Equal(t, 300*time.Second, scaling.Scaling.Spec.DefaultInstanceWarmup.Duration)
	require.NotNil(t, scaling.Bootstrap.EKS)
	assert.Equal(t, map[string]string{"max-pods": "58"}, scaling.Bootstrap.EKS.Spec.KubeletExtraArgs)

	require.Len(t, c.Deployments, 1)
	assert.NotNil(t, c.Deployments[0].NodeadmBootstrap)
	assert.Nil(t, c.Deployments[0].Bootstrap)
	require.Len(t, c.Machines, 1)
	assert.JSONEq(t, `{"maxPods":58}`, string(c.Machines[0].NodeadmBootstrap.Spec.Kubelet.Config.Raw))
}

// Roles have the same names as with CAPA, with and without its feature gate.
func TestRoles(t *testing.T) {
	for _, made := range []bool{false, true} {
		c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/eks.yaml"), input.LoadOptions{EKSEnableIAM: made})
		names := []string{*c.EKS.ControlPlane.Spec.RoleName, c.EKS.Fargate[0].Spec.RoleName, c.Pools[0].Managed.Spec.RoleName}
		assert.Equal(t, made, c.EKS.EnableIAM)
		if made {
			assert.Equal(t, []string{"shop-iam-service-role", "shop-prod_shop-fargate_fargate", "prod_shop_eu-prod_shop-managed_nodegroup-iam-service-role"}, names)
		} else {
			const suffix = ".cluster-api-provider-aws.sigs.k8s.io"
			assert.Equal(t, []string{"eks-controlplane" + suffix, "eks-fargate" + suffix, "eks-nodegroup" + suffix}, names)
		}
	}
	c := manifests.MustLoad(
		t,
		manifests.Edit(t, manifests.Read(t, "testdata/good/eks.yaml"), "  sshKeyName: ops\n", "  roleName: mine\n"),
		input.LoadOptions{EKSEnableIAM: true},
	)
	assert.Equal(t, "mine", *c.EKS.ControlPlane.Spec.RoleName)
}

// A name that is too long for EKS becomes a hash, as in CAPA.
func TestLongNamesInEKS(t *testing.T) {
	long := strings.Repeat("a", 60)
	c := manifests.MustLoad(t, strings.ReplaceAll(manifests.Read(t, "testdata/good/eks.yaml"), "shop-managed", long), input.LoadOptions{})
	assert.Regexp(t, `^capa_[0-9a-z]{27}$`, c.Pools[0].Managed.Spec.EKSNodegroupName)
}

// bootstrapSelfManagedAddons is kept, although CAPA's webhook overwrites it.
func TestNoSelfManagedAddons(t *testing.T) {
	c := manifests.MustLoad(
		t,
		manifests.Edit(t, manifests.Read(t, "testdata/good/eks.yaml"), "  sshKeyName: ops\n", "  bootstrapSelfManagedAddons: false\n"),
		input.LoadOptions{},
	)
	assert.False(t, c.EKS.ControlPlane.Spec.BootstrapSelfManagedAddons)
}

// Older manifests name the control plane as the infrastructure, in API versions that CAPA
// no longer serves.
func TestOldManifestOfEKS(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Edit(
		t,
		manifests.Read(t, "testdata/good/eks.yaml"),
		"    apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n    kind: AWSManagedCluster\n    name: shop\n",
		"    apiVersion: controlplane.cluster.x-k8s.io/v1beta2\n    kind: AWSManagedControlPlane\n    name: shop.eu\n",
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSManagedCluster\nmetadata: {name: shop, namespace: prod}\n---\n",
		"",
		"apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind",
		"apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind",
		"  accessConfig: {authenticationMode: api_and_config_map}\n  accessEntries:\n  - {principalARN: \"arn:aws:iam::123456789012:role/ops\", kubernetesGroups: [ops]}\n",
		"",
		"apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: EKSConfig\nmetadata: {name: shop-scaling}\nspec:\n  kubeletExtraArgs: {max-pods: \"58\"}\n  files:\n  - path: /etc/audit\n    contentFrom: {secret: {name: audit, key: policy}}\n",
		"apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: EKSConfig\nmetadata: {name: shop-scaling}\nspec:\n  useMaxPods: false\n",
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: audit}\nstringData: {policy: \"rules: []\"}\n",
		"",
	), input.LoadOptions{})
	assert.Nil(t, c.EKS.Cluster)
	assert.Equal(t, "prod_shop_eu", c.EKS.ControlPlane.Spec.EKSClusterName)
	assert.Equal(t, "iam-authenticator", string(*c.EKS.ControlPlane.Spec.TokenMethod))
	assert.False(t, *c.Pools[2].Bootstrap.EKS.Spec.UseMaxPods)
	assert.Equal(t, []string{
		"cluster.yaml:19: AWSManagedControlPlane/shop.eu apiVersion: controlplane.cluster.x-k8s.io/v1beta1 is no longer served by Cluster API Provider AWS" +
			" — convert the file: clusterawsadm cluster convert -f cluster.yaml",
	}, manifests.Warnings(c), "one warning for the file, which has an EKSConfig of v1beta1, too")
}

func TestPoolsOfSelfManagedClusters(t *testing.T) {
	c := manifests.MustLoad(t, manifests.Read(t, "testdata/good/pools.yaml"), input.LoadOptions{Strict: true})
	assert.Nil(t, c.EKS)
	require.Len(t, c.Pools, 1)
	p := c.Pools[0]
	assert.Equal(t, 3, p.Replicas(), "the minimum of the autoscaler")
	assert.Equal(t, "v1.34.2", p.Object.Spec.Template.Spec.Version)
	assert.Equal(t, []string{"eu-west-1a"}, p.Object.Spec.FailureDomains)
	assert.EqualValues(t, 10, *p.Object.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds)
	assert.Equal(t, "farm-pool", p.Scaling.Name)
	assert.Equal(t, "farm-pool", p.Bootstrap.Kubeadm.Name)
	assert.EqualValues(t, "UnencryptedUserData", p.Scaling.Spec.Ignition.StorageType)
	assert.True(t, *p.Scaling.Spec.SuspendProcesses.Processes.AZRebalance)
}

// Roles of nodes that are created with an IPv6 cluster need one more policy.
func TestRolesOfIPv6Nodes(t *testing.T) {
	yaml := manifests.Read(t, "../../../../configs/eks-ipv6.yaml")
	want := "the nodes do not become ready: their role may not assign IPv6 addresses to pods"
	assert.NotContains(t, strings.Join(manifests.Warnings(manifests.MustLoad(t, yaml, input.LoadOptions{})), "\n"), want)
	assert.Contains(t, strings.Join(manifests.Warnings(manifests.MustLoad(t, yaml, input.LoadOptions{EKSEnableIAM: true})), "\n"), want)
}

// Annotations of this program are known, and a value that EKS would refuse is reported.
func TestAnnotations(t *testing.T) {
	yaml := manifests.Read(t, "../../../../configs/eks.yaml")
	const plane, pool = "kind: AWSManagedControlPlane\nmetadata:\n", "kind: AWSManagedMachinePool\nmetadata:\n"
	for head, cases := range map[string]map[string]string{
		plane: {
			"zonal-shift: 'yes'":                                      `the annotation clusterawsadm/zonal-shift is "yes": it is neither true nor false — set it to "true" or "false"`,
			"deletion-protecton: 'true'":                              `AWSManagedControlPlane has no annotation clusterawsadm/deletion-protecton — did you mean "deletion-protection"?`,
			"instance-types: m5.large":                                `AWSManagedControlPlane has no annotation clusterawsadm/instance-types`,
			"control-plane-tier: tier-3xl":                            `the annotation clusterawsadm/control-plane-tier is "tier-3xl": there is no such value — did you mean "tier-xl"?`,
			"remote-node-networks: 8.8.8.0/24":                        `8.8.8.0/24 is not a block of private IPv4 addresses between /8 and /32`,
			"remote-node-networks: 10.80.0.1/16":                      `10.80.0.1/16 is not a block of private IPv4 addresses`,
			"remote-node-networks: '192.168.0.0/16, 192.168.4.0/24'":  `192.168.4.0/24 overlaps with 192.168.0.0/16`,
			"remote-node-networks: 10.0.128.0/20":                     `10.0.128.0/20 overlaps with 10.0.0.0/16 of the VPC`,
			"remote-node-networks: 192.168.0.0/16":                    `hybrid nodes need access entries — set spec.accessConfig.authenticationMode: api`,
			"remote-pod-networks: 192.168.0.0/16":                     `networks of pods need networks of nodes — set clusterawsadm/remote-node-networks, too`,
			"addon-pod-identities: x":                                 `it is not a list of associations — write a list of addon, serviceAccount, and roleARN or policyARNs`,
			"addon-pod-identities: '[{addon: a, serviceAccount: b}]'": `association 1 lacks a field`,
			"addon-pod-identities: '[{addon: a, serviceAccount: b, roleARN: \"arn:aws:iam::123456789012:role/x\"}]'":                                                                               `the manifest has no add-on a — add it to spec.addons, or correct the name`,
			"addon-pod-identities: '[{addon: a, serviceAccount: b, roleARN: \"arn:aws:iam::123456789012:role/x\"}, {addon: a, serviceAccount: b, roleARN: \"arn:aws:iam::123456789012:role/x\"}]'": `the service account b of a is in it twice`,
			"pod-identity-associations: x":                                                                                       `it is not a list of associations — write a list of namespace, serviceAccount, and roleARN or policyARNs`,
			"pod-identity-associations: '[{namespace: a, serviceAccount: b}]'":                                                   `association 1 lacks a field`,
			"pod-identity-associations: '[{namespace: a, serviceAccount: b, role: c}]'":                                          `it is not a list of associations`,
			"pod-identity-associations: '[{namespace: a, serviceAccount: b, roleARN: \"arn:aws-cn:iam::123456789012:role/x\"}]'": `partition`,
			"pod-identity-associations: '[{namespace: a, serviceAccount: b, roleARN: \"arn:aws:iam::123456789012:role/x\"}, {namespace: a, serviceAccount: b, roleARN: \"arn:aws:iam::123456789012:role/y\"}]'": `the service account a/b is in it twice`,
		},
		pool: {
			"instance-types: 'm6i.large,m5.large'": `the node group has spec.instanceType, too — set one of them`,
			"instance-types: 'm5.large,m5.large'":  `m5.large is in it twice`,
			"instance-types: large":                `large is not an instance type`,
			"update-strategy: fast":                `there is no such value`,
			"node-repair-max-parallel: '0'":        `it is neither a number of nodes nor a percentage`,
			"node-repair-max-unhealthy: 101%":      `it is neither a number of nodes nor a percentage`,
			"deletion-protection: 'true'":          `AWSManagedMachinePool has no annotation clusterawsadm/deletion-protection`,
		},
	} {
		for annotation, want := range cases {
			_, err := manifests.Load(t, manifests.Edit(t, yaml, head, head+"  annotations: {clusterawsadm/"+annotation+"}\n"), input.LoadOptions{})
			require.ErrorContains(t, err, want, annotation)
			assert.Regexp(t, `metadata\.annotations(\.clusterawsadm/[a-z-]+)?: `, err.Error(), annotation)
		}
	}
	for annotation, want := range map[string]string{
		"node-repair-max-parallel: '1'": "the limits of node repair have no effect: node repair is off",
	} {
		m := manifests.MustLoad(t, manifests.Edit(t, yaml, pool, pool+"  annotations: {clusterawsadm/"+annotation+"}\n"), input.LoadOptions{})
		assert.Contains(t, strings.Join(manifests.Warnings(m), "\n"), want)
	}
	both := manifests.Edit(
		t,
		yaml,
		plane,
		plane+"  annotations: {clusterawsadm/addon-pod-identities: '[{addon: vpc-cni, serviceAccount: aws-node, roleARN: \"arn:aws:iam::123456789012:role/x\"}]'}\n",
		"  version: v1.34\n",
		"  version: v1.34\n  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.1, serviceAccountRoleARN: 'arn:aws:iam::123456789012:role/y'}]\n",
	)
	_, err := manifests.Load(t, both, input.LoadOptions{})
	require.ErrorContains(t, err, "the add-on vpc-cni has a serviceAccountRoleARN, too — remove serviceAccountRoleARN: EKS replaces it by the associations")
	account := "pod-identity-associations: '[{namespace: a, serviceAccount: b, roleARN: \"arn:aws:iam::123456789012:role/x\"}]'"
	m := manifests.MustLoad(t, manifests.Edit(t, yaml, plane, plane+"  annotations: {clusterawsadm/"+account+"}\n"), input.LoadOptions{})
	assert.Contains(
		t,
		strings.Join(manifests.Warnings(m), "\n"),
		"pods get no credentials from pod identity associations without its agent — add the add-on eks-pod-identity-agent",
	)
}
