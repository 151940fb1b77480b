package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// What other people keep beside their manifests, or leave out of them, has advice that helps.
func TestManifestsOfOthers(t *testing.T) {
	const infra = "kind: AWSCluster\nmetadata:\n  name: quickstart\nspec:\n"
	for name, tt := range map[string]struct {
		edits   []string
		after   string
		want    string
		warning bool
	}{
		"object of a management cluster": {
			after: "apiVersion: gitops.weave.works/v1alpha1\nkind: GitopsCluster\nmetadata: {name: a}\n", warning: true,
			want: "GitopsCluster in gitops.weave.works/v1alpha1 is for a management cluster and is ignored",
		},
		"object of eksctl": {
			after: "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: a, region: us-east-1}\n", warning: true,
			want: "ClusterConfig in eksctl.io/v1alpha5 is for eksctl and is ignored",
		},
		"object of Crossplane": {
			after: "apiVersion: ec2.aws.upbound.io/v1beta1\nkind: VPC\nmetadata: {name: a}\n", warning: true,
			want: "VPC in ec2.aws.upbound.io/v1beta1 is for a management cluster and is ignored",
		},
		"kind of Cluster API that is not used": {
			after: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSRemediationTemplate\nmetadata: {name: a}\n", warning: true,
			want: "AWSRemediationTemplate in infrastructure.cluster.x-k8s.io/v1beta2 is not part of a cluster and is ignored",
		},
		"identity without its Secret": {
			edits: []string{infra, infra + "  identityRef: {kind: AWSClusterStaticIdentity, name: a}\n"},
			after: "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterStaticIdentity\nmetadata: {name: a}\nspec: {secretRef: keys, allowedNamespaces: {}}\n",
			want: "there is no Secret/keys in the input — its keys do not belong into Git: pass a file with the Secret with --identities FILE, " +
				"or remove spec.identityRef of the cluster to use your own credentials",
		},
		"field that only looks like another": {
			edits: []string{infra, infra + "  bastion: {version: v1}\n"}, want: "spec.bastion.version: the field does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := manifests.Load(t, manifests.Edit(t, manifests.Plain(t), tt.edits...)+"---\n"+tt.after, input.LoadOptions{})
			if tt.warning {
				require.NoError(t, err)
				said := strings.Join(manifests.Warnings(c), "\n")
				assert.Contains(t, said, tt.want)
				assert.NotContains(t, said, "ClusterResourceSet")
				return
			}
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "move it to")
		})
	}
}

// EKS replaces {{SessionName}} and others in the names of users (https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html).
func TestTemplatesOfUsers(t *testing.T) {
	raw, err := configs.Manifests.ReadFile("eks-addons.yaml")
	require.NoError(t, err)
	const entry = "accessEntries:\n"
	_, err = manifests.Load(
		t,
		manifests.Edit(t, string(raw), entry, entry+"  - {principalARN: 'arn:aws:iam::123456789012:role/dev', username: 'dev:{{SessionName}}'}\n"),
		input.LoadOptions{},
	)
	require.NoError(t, err)
}

// A value of a Secret that is no base64 is one problem: the key is there.
func TestSecretThatIsNoBase64(t *testing.T) {
	const config = "        configRef:\n          apiGroup: bootstrap.cluster.x-k8s.io\n          kind: KubeadmConfigTemplate\n          name: quickstart-md-0\n"
	yaml := manifests.Edit(t, manifests.Plain(t), config, "        dataSecretName: boot\n") +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: boot}\ndata: {value: '#!'}\n"
	_, err := manifests.Load(t, yaml, input.LoadOptions{})
	require.ErrorContains(t, err, "Secret/boot data.value: the value is not base64")
	assert.NotContains(t, err.Error(), "has no key")
}

// A ConfigMap that only an ignored object refers to is not said to be without any reference.
func TestNamedByIgnoredObjects(t *testing.T) {
	c, err := withChart(
		t,
		"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-values}\ndata: {a: b}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"+
			"metadata: {name: web}\nspec: {valuesFrom: [{kind: ConfigMap, name: web-values}]}\n---\napiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: sealed}\n",
	)
	require.NoError(t, err)
	var all []string
	for _, w := range c.Warnings {
		all = append(all, w.Object+": "+w.What)
	}
	require.ElementsMatch(t, []string{
		"ConfigMap/web-values: has no effect: HelmRelease/web, which is ignored, refers to it",
		"HelmRelease/web: HelmRelease in helm.toolkit.fluxcd.io/v2 is for a management cluster and is ignored",
		"SealedSecret/sealed: SealedSecret in bitnami.com/v1alpha1 is for a management cluster and is ignored",
	}, all)
}

// A command with ": " is a mapping for YAML: there is one problem, at its line.
func TestUnquotedCommand(t *testing.T) {
	text := strings.Replace(manifests.Read(t, "../../../../configs/quickstart.yaml"), "      joinConfiguration:\n",
		"      preKubeadmCommands:\n      - sed -i \"s/cpu_count:.*/cpu_count: 2/\" /etc/x\n      joinConfiguration:\n", 1)
	_, err := loader.Load([]input.Source{{Name: "cluster.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.EqualError(t, err, "cluster.yaml:142: KubeadmConfigTemplate/quickstart-md-0 spec.template.spec.preKubeadmCommands[0]: "+
		"must be of type string, not object — put the text in quotes: it contains ': ', with which YAML begins a mapping")
}
