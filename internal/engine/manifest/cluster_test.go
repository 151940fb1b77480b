package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// of loads an example with other texts: pairs of old and new.
func of(t *testing.T, name string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	raw, err := configs.Manifests.ReadFile(name + ".yaml")
	require.NoError(t, err)
	return manifests.MustLoad(t, manifests.Edit(t, string(raw), oldnew...), input.LoadOptions{})
}

// documents returns an object of a set.
func documents(t *testing.T, text string) []*manifest.Document {
	t.Helper()
	object := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	return []*manifest.Document{{Object: object}}
}

// A workload is a pod network if it mounts the folders of the CNI, if it is Calico's operator, or if the user passes it with --cni.
func TestPodNetworks(t *testing.T) {
	mounts := func(kind, path string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nspec: {template: {spec: {volumes: [{emptyDir: {}}, {hostPath: {path: " + path + "}}]}}}\n"
	}
	for text, want := range map[string]bool{
		mounts("DaemonSet", "/etc/cni/net.d"):                         true,
		mounts("DaemonSet", "/opt/cni"):                               true,
		mounts("DaemonSet", "/etc/cnix"):                              false,
		mounts("Deployment", "/etc/cni/net.d"):                        false,
		"apiVersion: operator.tigera.io/v1\nkind: Installation\n":     true,
		"apiVersion: operator.tigera.io/v1\nkind: APIServer\n":        false,
		"apiVersion: example.com/v1\nkind: Installation\n":            false,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: calico}\n": false,
	} {
		set := manifest.ResourceSet{Documents: documents(t, text)}
		assert.Equal(t, want, set.HasPodNetwork(), text)
		assert.Equal(t, want, (&manifest.Cluster{ResourceSets: []manifest.ResourceSet{set}}).HasPodNetwork(), text)
		set.Network = true
		assert.True(t, set.HasPodNetwork(), "the user says so")
	}
	assert.False(t, (&manifest.Cluster{}).HasPodNetwork())
	assert.True(t, (&manifest.Cluster{Charts: []manifest.Chart{{Title: "calico"}}}).HasPodNetwork())
	assert.False(t, (&manifest.Cluster{Charts: []manifest.Chart{{Title: "postgresql"}}}).HasPodNetwork())
	const plane = "  sshKeyName: \"\"\n"
	assert.True(t, of(t, "eks").HasPodNetwork(), "EKS installs its own")
	assert.False(t, of(t, "eks", plane, plane+"  vpcCni: {disable: true}\n").HasPodNetwork())
	addon := of(t, "eks-addons")
	addon.EKS.ControlPlane.Spec.BootstrapSelfManagedAddons = false
	assert.True(t, addon.HasVPCCNI(), "as an add-on")
	addon.EKS.ControlPlane.Spec.Addons = nil
	assert.False(t, addon.HasVPCCNI())
}

// The cloud controller manager of AWS is recognized by its image or its arguments. Its version is the tag of the image.
func TestCloudControllers(t *testing.T) {
	pod := func(container string) string {
		return "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: {containers: [{name: a, image: x}, {name: b, " + container + "}]}}}\n"
	}
	for container, want := range map[string]string{
		`image: "registry.k8s.io/provider-aws/cloud-controller-manager:v1.34.0"`:                    "v1.34.0",
		`image: "mirror:5000/aws-cloud-controller-manager:v1.34.0@sha256:0123"`:                     "v1.34.0",
		`image: "mirror/cloud-controller-manager:v1", args: [--v=2, --cloud-provider=aws]`:          "v1",
		`image: "mirror/cloud-controller-manager:v1", command: [/x, --cloud-provider=aws]`:          "v1",
		`image: "mirror/cloud-controller-manager:v1", args: [--cloud-provider=gce]`:                 "",
		`image: "registry.k8s.io/provider-aws/aws-ebs-csi-driver:v1", args: [--cloud-provider=aws]`: "",
	} {
		all := documents(t, pod(container))
		assert.Equal(t, want != "", manifest.HasCloudController(all), container)
		for _, reconcile := range []bool{false, true} {
			c := &manifest.Cluster{ResourceSets: []manifest.ResourceSet{{Documents: all, Reconcile: reconcile}}}
			assert.Equal(t, want != "", c.HasCloudController(), container)
			if want == "" {
				assert.Empty(t, c.CloudControllers(), container)
				continue
			}
			require.Len(t, c.CloudControllers(), 1)
			assert.Equal(t, want, c.CloudControllers()[0].Version)
			assert.Equal(t, !reconcile, c.CloudControllers()[0].Once, "a set that is applied once is not changed later")
		}
	}
	c := of(t, "quickstart")
	c.Charts = []manifest.Chart{{Title: "postgresql"}}
	assert.False(t, c.HasCloudController())
	c.ResourceSets = nil
	c.Charts = append(
		c.Charts,
		manifest.Chart{Name: "ccm", Title: "aws-cloud-controller-manager", Values: map[string]any{"image": map[string]any{"tag": "v1.33.0"}}},
	)
	assert.True(t, c.HasCloudController())
	require.Len(t, c.CloudControllers(), 1)
	assert.Equal(t, "v1.33.0 HelmChartProxy/ccm", c.CloudControllers()[0].Version+" "+c.CloudControllers()[0].Object)
}

// ExternalCloudProvider is true if the kubelets of init or of join run with cloud-provider=external.
func TestExternalCloudProvider(t *testing.T) {
	c := of(t, "quickstart")
	spec := &c.ControlPlane.Object.Spec.KubeadmConfigSpec
	assert.True(t, manifest.ExternalCloudProvider(spec))
	spec.InitConfiguration.NodeRegistration.KubeletExtraArgs = nil
	assert.True(t, manifest.ExternalCloudProvider(spec))
	for i := range spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs {
		other := "aws"
		spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs[i].Value = &other
	}
	assert.False(t, manifest.ExternalCloudProvider(spec))
}

// A check selects machines by the labels that Cluster API sets on them, and by those of the manifest.
func TestMachineLabels(t *testing.T) {
	c := of(t, "quickstart")
	c.Deployments[0].Object.Spec.Template.Labels = map[string]string{"tier": "web"}
	for label, want := range map[string]bool{
		"tier=web": true, "tier=db": false,
		clusterv1.ClusterNameLabel + "=quickstart":                           true,
		clusterv1.ClusterNameLabel + "=other":                                false,
		clusterv1.MachineControlPlaneLabel + "=":                             true,
		clusterv1.MachineControlPlaneNameLabel + "=quickstart-control-plane": true,
		clusterv1.MachineDeploymentNameLabel + "=quickstart-md-0":            true,
		clusterv1.MachineDeploymentNameLabel + "=quickstart-control-plane":   false,
	} {
		check := &clusterv1.MachineHealthCheck{}
		key, value, _ := strings.Cut(label, "=")
		check.Spec.Selector.MatchLabels = map[string]string{key: value}
		assert.Equal(t, want, c.SelectsMachines(check), label)
	}
	broken := &clusterv1.MachineHealthCheck{}
	broken.Spec.Selector.MatchLabels = map[string]string{"a b": "c"}
	assert.True(t, c.SelectsMachines(broken), "the selector is reported, and not what it selects")
	single := of(t, "single-machines").MachineLabels()
	assert.Equal(t, map[string]string{clusterv1.ClusterNameLabel: "single-machines"}, single["worker-0"])
	assert.Contains(t, single["control-plane-0"], clusterv1.MachineControlPlaneLabel)
}

func TestUnhealthyRange(t *testing.T) {
	least, most, err := manifest.UnhealthyRange("[1-3]")
	require.NoError(t, err)
	assert.Equal(t, []int{1, 3}, []int{least, most})
	least, most, err = manifest.UnhealthyRange("[2-2]")
	require.NoError(t, err)
	assert.Equal(t, []int{2, 2}, []int{least, most})
	for text, want := range map[string]string{
		"[3-1]": "the end of the range is before its start", "3": "is not a range such as [1-3]", "[a-3]": "is not a range such as [1-3]", "[1-b]": "is not a range such as [1-3]",
	} {
		_, _, err := manifest.UnhealthyRange(text)
		require.EqualError(t, err, want, text)
	}
}

// An upgrade edits all fields that contain the Kubernetes version.
func TestVersionFields(t *testing.T) {
	for name, want := range map[string]string{
		"quickstart":      "KubeadmControlPlane/quickstart-control-plane spec.version, MachineDeployment/quickstart-md-0 spec.template.spec.version",
		"machine-pool":    "KubeadmControlPlane/machine-pool-control-plane spec.version, MachinePool/machine-pool-mp-0 spec.template.spec.version",
		"single-machines": "Machine/control-plane-0 spec.version, Machine/control-plane-1 spec.version, Machine/control-plane-2 spec.version, Machine/worker-0 spec.version",
		"clusterclass":    "Cluster/quickstart spec.topology.version",
		"eks":             "AWSManagedControlPlane/eks spec.version",
	} {
		var have []string
		for _, f := range of(t, name).VersionFields() {
			assert.True(t, strings.HasPrefix(f.Version, "v1."), f.Object)
			have = append(have, f.Object+" "+f.Path)
		}
		if name == "eks" {
			assert.Equal(t, want, have[0], "the control plane is first")
			continue
		}
		assert.Equal(t, want, strings.Join(have, ", "), name)
	}
	c := of(t, "quickstart")
	c.Deployments[0].Object.Spec.Template.Spec.Version = ""
	assert.Len(t, c.VersionFields(), 1, "what is not set is not edited")
}

// Names, numbers and keys have Cluster API's defaults.
func TestDefaultsOfAccessors(t *testing.T) {
	c := of(t, "quickstart")
	c.ControlPlane.Object.Spec.Replicas = nil
	assert.Equal(t, 1, c.ControlPlane.Replicas())
	own, all := "mine", "all"
	c.Infra.Spec.SSHKeyName = nil
	for _, tt := range []struct {
		own, cluster *string
		external     bool
		want         string
		inherited    bool
	}{
		{&own, &all, false, "mine", false}, {nil, &all, false, "all", true}, {nil, &all, true, "all", true}, {nil, nil, false, "default", false}, {nil, nil, true, "", false},
	} {
		c.Infra.Spec.SSHKeyName, c.External = tt.cluster, tt.external
		name, inherited := c.KeyPair(tt.own)
		assert.Equal(t, tt.want, name)
		assert.Equal(t, tt.inherited, inherited)
	}
	assert.EqualValues(t, 6443, c.APIPort())
	c.Object.Spec.ClusterNetwork.APIServerPort = 443
	assert.EqualValues(t, 443, c.APIPort())
	c.SetRegion("eu-west-1")
	assert.Equal(t, "eu-west-1 eu-west-1", c.Region+" "+c.Infra.Spec.Region)
	eks := of(t, "eks")
	eks.SetRegion("eu-west-1")
	assert.Equal(t, "eu-west-1", eks.EKS.ControlPlane.Spec.Region)
	assert.Equal(t, eks.EKS.ControlPlane.Spec.EKSClusterName, eks.KubernetesName())
	assert.True(t, eks.IsManaged())
	assert.False(t, c.IsManaged())
	assert.True(t, manifest.IsReleaseName("a.b-c"))
	assert.False(t, manifest.IsReleaseName("-a"))
	assert.True(t, manifest.IsReleaseName(strings.Repeat("a", 53)))
	assert.False(t, manifest.IsReleaseName(strings.Repeat("a", 54)))
}

// The KMS key encrypts the resources that encryptionConfig lists. Without resources it has no effect, as in CAPA.
func TestEncryptionKey(t *testing.T) {
	const plane, key = "  sshKeyName: \"\"\n", "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
	assert.Empty(t, of(t, "eks").EKS.EncryptionKey())
	assert.Equal(t, key, of(t, "eks", plane, plane+"  encryptionConfig: {provider: '"+key+"', resources: [secrets]}\n").EKS.EncryptionKey())
	assert.Empty(t, of(t, "eks", plane, plane+"  encryptionConfig: {provider: '"+key+"', resources: []}\n").EKS.EncryptionKey())
}

// Roles are made for pods unless the manifest names one.
func TestPodRoles(t *testing.T) {
	policies := []string{"arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}
	c := of(t, "eks")
	c.EKS.PodIdentities = []manifest.PodIdentity{
		{Namespace: "shop", ServiceAccount: "orders", PodRole: manifest.PodRole{PolicyARNs: policies}},
		{Namespace: "shop", ServiceAccount: "carts", PodRole: manifest.PodRole{RoleARN: "arn:aws:iam::123456789012:role/carts"}},
	}
	c.EKS.AddonIdentities = map[string][]manifest.AddonIdentity{"aws-ebs-csi-driver": {
		{
			ServiceAccount: "ebs",
			PodRole:        manifest.PodRole{PolicyARNs: policies},
		},
		{ServiceAccount: "other", PodRole: manifest.PodRole{RoleARN: "arn:aws:iam::123456789012:role/o"}},
	}}
	assert.Equal(t, map[string][]string{
		c.EKS.PodRoleName("us-east-1", "shop.orders"): policies, c.EKS.PodRoleName("us-east-1", "ebs"): policies,
	}, c.EKS.PodRoles("us-east-1"))
	assert.True(t, c.EKS.HasPodIdentities())
	assert.False(t, of(t, "eks").EKS.HasPodIdentities())
	assert.True(t, of(t, "eks-karpenter").EKS.HasKarpenter())
	assert.True(t, of(t, "eks-karpenter").EKS.HasPodIdentities())
	assert.False(t, (*manifest.EKS)(nil).HasKarpenter())
	assert.True(t, manifest.PodRole{}.IsEmpty())
	assert.False(t, manifest.PodRole{PolicyARNs: policies}.IsEmpty())
	assert.False(t, manifest.PodRole{RoleARN: "a"}.IsEmpty())
}

// Charts write an empty value, such as "" or {}, for a setting that the user has left out. Such values count as not set.
func TestEmptyValues(t *testing.T) {
	for text, want := range map[string]bool{
		`""`: true, `"a"`: false, "false": true, "true": false, "0": true, "1": false, "[]": true, "[0]": false, "{}": true, `{"a": {"b": ""}}`: true, `{"a": {"b": 1}}`: false, "null": true,
	} {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(text), &value))
		if n, ok := value.(float64); ok {
			value = int64(n)
		}
		assert.Equal(t, want, manifest.IsZero(value), text)
	}
}

// A problem is at the field of the manifest, or at the nearest one that it sets: also where upstream's check leaves out
// the beginning of a path.
func TestPathsOfProblems(t *testing.T) {
	lines := map[string]manifest.Position{
		"": {
			Line: 1,
		},
		"spec":                            {Line: 2},
		"spec.template":                   {Line: 3},
		"spec.template.spec":              {Line: 4},
		"spec.template.spec.instanceType": {Line: 5},
		"metadata":                        {Line: 6},
	}
	template := &manifest.Entry{Kind: manifest.KindAWSMachineTemplate, Name: "a", Lines: lines}
	machine := &manifest.Entry{
		Kind:  manifest.KindAWSMachine,
		Name:  "a",
		Lines: map[string]manifest.Position{"": {Line: 1}, "spec": {Line: 2}, "spec.instanceType": {Line: 7}},
	}
	bare := &manifest.Entry{Kind: manifest.KindConfig, Name: "a", Lines: map[string]manifest.Position{"": {Line: 1}}}
	for _, tt := range []struct {
		entry      *manifest.Entry
		path, want string
		line       int
	}{
		{template, "<nil>", "", 1},
		{template, "spec.instanceType", "spec.template.spec.instanceType", 5},
		{template, "spec.template.spec.instanceType", "spec.template.spec.instanceType", 5},
		{template, "spec.rootVolume.size", "spec.template.spec.rootVolume.size", 4},
		{template, "metadata.labels", "metadata.labels", 6},
		{machine, "spec.instanceType", "spec.instanceType", 7},
		{machine, "instanceType", "spec.instanceType", 7},
		{machine, "rootVolume", "spec.rootVolume", 2},
		{bare, "files", "files", 1},
	} {
		p := tt.entry.Problem(tt.path, "is wrong", "correct it")
		assert.Equal(t, tt.want, p.Path, tt.path)
		assert.Equal(t, tt.line, p.Line, tt.path)
	}
	stands := *machine
	stands.Titled = "AWSMachineTemplate/of-a-class"
	assert.Equal(
		t,
		"AWSMachineTemplate/of-a-class spec.template.spec.rootVolume",
		stands.Problem("spec.rootVolume", "", "").Object+" "+stands.Problem("spec.rootVolume", "", "").Path,
	)
	assert.Empty(t, manifest.Parent("spec"))
	assert.Equal(t, "spec.a", manifest.Parent("spec.a[0]"))
}
