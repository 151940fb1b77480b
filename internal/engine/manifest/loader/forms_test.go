package loader_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// objects splits a manifest into JSON objects.
func jsonObjects(t require.TestingT, text string) (all []string) {
	for _, d := range strings.Split(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(d))
		require.NoError(t, err)
		all = append(all, string(raw))
	}
	return all
}

// quickstart is the example without variables.
func quickstart(t *testing.T) string {
	t.Helper()
	return manifests.Plain(t)
}

// What kubectl reads is read: streams of JSON, directives, and lists of one kind.
func TestForms(t *testing.T) {
	yaml := quickstart(t)
	all := jsonObjects(t, yaml)
	var indented []string
	for _, o := range all {
		var value any
		require.NoError(t, json.Unmarshal([]byte(o), &value))
		raw, err := json.MarshalIndent(value, "", "  ")
		require.NoError(t, err)
		indented = append(indented, string(raw))
	}
	bare := strings.NewReplacer(`"apiVersion":"cluster.x-k8s.io/v1beta2",`, "", `"kind":"Cluster",`, "").Replace(all[0])
	for form, text := range map[string]string{
		"JSON stream":           strings.Join(indented, "\n"),
		"JSON without newlines": strings.Join(all, ""),
		"JSON with BOM":         "\ufeff" + strings.Join(all, "\r\n"),
		"JSON and YAML":         strings.Join(all[:2], "\n") + "\n---\n" + strings.Join(strings.Split(yaml, "\n---\n")[2:], "\n---\n"),
		"directive":             "%YAML 1.2\n---\n" + yaml,
		"directives":            "# a comment\n%YAML 1.2\n%TAG ! tag:example.com,2000:\n---\n" + yaml + "\n...\n%YAML 1.2\n---\n# nothing\n",
		"List":                  `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(all, ",") + `]}`,
		"list of Clusters":      `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"ClusterList","metadata":{},"items":[` + bare + `]}` + "\n" + strings.Join(all[1:], "\n"),
		"lists in a list":       `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"ClusterList","items":[` + all[0] + `]},` + strings.Join(all[1:], ",") + `]}`,
		"empty list":            "apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: ConfigMapList\nitems: []\n---\n" + yaml,
	} {
		c, err := manifests.Load(t, text, input.LoadOptions{})
		require.NoError(t, err, form)
		assert.Equal(t, "quickstart", c.Name, form)
	}
	c := manifests.MustLoad(t, strings.Join(indented, "\n"), input.LoadOptions{})
	assert.Greater(t, c.At("AWSCluster/quickstart", "spec.region").Line, strings.Count(indented[0], "\n"))
}

// What is not a manifest yet is recognised, with one line for each file.
func TestOtherTools(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"Helm", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata:\n  name: {{ .Release.Name }}\n", "x.yaml:4: this is a Helm chart or another Go template ({{ … }}) — render it first: helm template CHART | clusterawsadm cluster … -f -"},
		{"Helm, blocks", "{{- range .Values.pools }}\napiVersion: v1\nkind: Secret\n{{- end }}\n", "x.yaml:1: this is a Helm chart"},
		{"Helm, quoted", strings.Replace(quickstart(t), "  region: us-east-1", `  region: "{{ .Values.region }}"`, 1), `AWSCluster/quickstart spec.region: this is a Helm chart or another Go template ({{ … }})`},
		{"Jinja", "kind: Cluster\n{% if a %}\nx: y\n{% endif %}\n", "x.yaml:2: this is a Jinja template ({% … %}) — render it first: jinja2 FILE"},
		{"ytt", "#@ manifests.Load(\"@ytt:data\", \"data\")\n---\nkind: Cluster\n", "x.yaml:1: this is a template of ytt — render it first: ytt -f FILE"},
		{"ytt in a line", "kind: Cluster\nmetadata:\n  name: #@ data.values.name\n", "x.yaml:3: this is a template of ytt"},
		{"Jsonnet", "local k = import 'k.libsonnet';\n{ a: k }\n", "x.yaml:1: this is Jsonnet — evaluate it first: jsonnet -y FILE"},
		{"KCL", "import k8s.api.core.v1 as v1\n\na = v1.Pod {\n}\n", "x.yaml:1: this is KCL — run it first: kcl run FILE"},
		{"CUE", "package kube\n\ncluster: x: {}\n", "x.yaml:1: this is CUE — export it first: cue export --out yaml FILE"},
		{"Terraform", "resource \"aws_vpc\" \"main\" {\n  cidr_block = \"10.0.0.0/16\"\n}\n", "x.yaml:1: this is a configuration of Terraform — see docs/guides/moving.md"},
		{"Kustomization", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n", "x.yaml:2: Kustomization/ kind: a Kustomization changes other files — build it first: kustomize build . | clusterawsadm cluster … -f -"},
		{"CAPITemplate", "apiVersion: capi.weave.works/v1alpha2\nkind: CAPITemplate\nmetadata: {name: a}\nspec: {resourcetemplates: [{content: [{kind: Cluster, metadata: {name: \"${CLUSTER_NAME}\"}}]}]}\n", "x.yaml:2: CAPITemplate/a kind: there is no Cluster in the input: CAPITemplate contains the objects of a cluster as a template — render it first, and pass the result"},
		{"GitOpsTemplate", "apiVersion: templates.weave.works/v1alpha2\nkind: GitOpsTemplate\nmetadata: {name: a}\n", "GitOpsTemplate contains the objects of a cluster as a template"},
		{"ClusterTemplate", "apiVersion: k0rdent.mirantis.com/v1beta1\nkind: ClusterTemplate\nmetadata: {name: a}\n", "ClusterTemplate names a template of a cluster"},
		{"kubeconfig", "apiVersion: v1\nkind: Config\nclusters: []\n", "there is no Cluster in the input: Config is a kubeconfig, with which one reaches a cluster — pass the manifest of the cluster"},
		{"definition of a kind", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: awsclusters.infrastructure.cluster.x-k8s.io}\n", "a CustomResourceDefinition defines a kind of objects, and is none of them"},
		{"provider", "apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: CoreProvider\nmetadata: {name: a}\n", "CoreProvider is for a management cluster, and this program needs none"},
		{"settings of clusterctl", "providers: []\n", "x.yaml:1: the file is the configuration of clusterctl — pass the manifest of a cluster"},
		{"CloudFormation", "{\n\"AWSTemplateFormatVersion\": \"2010-09-09\"}\n", "this is a template of CloudFormation"},
		{"Ansible", "- hosts: all\n  tasks: []\n", "the file is a playbook of Ansible"},
		{"Compose", "services:\n  web:\n    image: nginx\n", "the file is for Docker Compose"},
		{"eksctl", "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: a, region: us-east-1}\n", "x.yaml:2: ClusterConfig/a kind: there is no Cluster in the input: ClusterConfig is the configuration of a cluster for eksctl — see docs/guides/moving.md, or write a manifest: clusterawsadm cluster generate NAME"},
		{"kOps", "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: a.example.com}\n", "there is no Cluster of Cluster API in the input: Cluster describes a cluster for kOps — see docs/guides/moving.md, or write a manifest: clusterawsadm cluster generate NAME"},
		{"Rancher", "apiVersion: provisioning.cattle.io/v1\nkind: Cluster\nmetadata: {name: a}\n", "Cluster describes a cluster for Rancher"},
		{"ROSA alone", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: ROSARoleConfig\nmetadata: {name: a}\n", "there is no Cluster in the input: ROSA clusters are not supported: ROSARoleConfig comes from"},
		{
			"template of another provider",
			"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: \"${UNKNOWN}\"}\nspec:\n  controlPlaneRef: {kind: RKE2ControlPlane, apiGroup: controlplane.cluster.x-k8s.io, name: \"${UNKNOWN}\"}\n",
			"x.yaml:5: Cluster/UNKNOWN spec.controlPlaneRef.kind: RKE2 clusters are not supported: RKE2ControlPlane comes from the RKE2 provider of Rancher (cluster-api-provider-rke2) — this program takes Kubeadm",
		},
		{
			"v1alpha2",
			"apiVersion: cluster.x-k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: a}\n",
			"x.yaml:1: Cluster/a apiVersion: cluster.x-k8s.io/v1alpha2 is not supported — no program converts it: make a new manifest with clusterawsadm cluster generate",
		},
		{
			"several of v1alpha2",
			"apiVersion: cluster.x-k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: a}\n---\napiVersion: cluster.x-k8s.io/v1alpha2\nkind: Machine\nmetadata: {name: a}\n",
			"x.yaml:1: Cluster/a apiVersion: cluster.x-k8s.io/v1alpha2 is not supported, nor is the API version of another object in the file — no program converts it",
		},
		{"unquoted text for cloud-init", strings.ReplaceAll(manifests.NodeName(t, "{{ ds.x }}"), "'{{ ds.x }}'", "{{ ds.x }}"), "the text {{ … }} for cloud-init is not in quotes — put the whole value in quotes"},
		{"gzip", "\x1f\x8b\x08\x00", "x.yaml:1: the file is compressed with gzip — unpack it first: gunzip -c FILE | clusterawsadm cluster … -f -"},
		{"web page", "\n<!DOCTYPE html>\n<html>\n", "x.yaml:1: this is a web page — download the file itself: in GitHub, its address is that of the button Raw"},
		{"script", "#!/bin/sh\nkubectl apply -f - <<EOF\n" + quickstart(t) + "EOF\n", "x.yaml:1: this is a script — run it, or pass the manifest that is in it"},
		{"Markdown", "# A cluster\n\n```yaml\n" + quickstart(t) + "```\n", "x.yaml:1: this is Markdown, with a manifest between two lines ``` — pass only what is between these lines"},
		{"helm install", "NAME: a\nSTATUS: deployed\nREVISION: 1\n---\n" + quickstart(t), "x.yaml:1: this is what helm install or helm upgrade prints — use the output of helm template, or of helm get manifest"},
		{"list", "- a\n- b\n", "x.yaml:1: the document is a list — write its items as documents of their own, or as items of an object of kind List"},
		{"no separator", strings.Replace(quickstart(t), "---\napiVersion: infrastructure", "apiVersion: infrastructure", 1), "another object begins in the same document — write a line --- before it"},
		{"no-break space", strings.Replace(quickstart(t), "  region: us-east-1", "\u00a0 region: us-east-1", 1), "the YAML is invalid: a no-break space is used for indentation — use spaces"},
		{"number as a name", strings.Replace(quickstart(t), "kind: AWSCluster\nmetadata:\n  name: quickstart", "kind: AWSCluster\nmetadata:\n  name: 7", 1), "AWSCluster/ metadata.name: must be a string, not the number 7 — put the value in quotes"},
		{"script without #!", "set -e\nNAME=$1\ncat <<EOF | kubectl apply -f -\n" + quickstart(t) + "EOF\n", "x.yaml:1: this is a script — run it, or pass the manifest that is in it"},
		{"Python", "import yaml\nc = f\"\"\"\n" + quickstart(t) + "\"\"\"\n", "x.yaml:1: this is a program — run it, and pass the manifest that it writes"},
		{"TypeScript", "import { Chart } from \"cdk8s\";\nnew Chart();\n", "x.yaml:1: this is a program"},
		{"part of a web page", "<p>Text: a</p>\n<pre>\n" + quickstart(t) + "</pre>\n", "x.yaml:1: this is a web page"},
		{"AsciiDoc", "= Title\n\n[source,yaml]\n----\n" + quickstart(t) + "----\n", "x.yaml:1: this is AsciiDoc, with a manifest between two lines ----"},
		{"kubectl apply", "cluster.cluster.x-k8s.io/a created\nawscluster.infrastructure.cluster.x-k8s.io/a created\n", "x.yaml:1: this is what kubectl apply prints — use the file that was applied"},
		{"error message", "Error: failed to get a: value for variables [B] is not set: c\n", "x.yaml:1: this is the error message of another command — correct that command"},
		{"shell session", "$ clusterctl generate cluster a\n" + quickstart(t), "x.yaml:1: this is a session of a shell — pass only the manifest in it"},
		{"merge conflict", strings.Replace(quickstart(t), "  region: us-east-1\n", "<<<<<<< HEAD\n  region: us-east-1\n=======\n  region: eu-west-1\n>>>>>>> b\n", 1), "x.yaml:40: a conflict of a merge begins here — resolve it first"},
		{"patch", "diff --git a/x.yaml b/x.yaml\n--- a/x.yaml\n+++ b/x.yaml\n@@ -1 +1 @@\n-a: 1\n+a: 2\n", "x.yaml:1: this is a patch — apply it first"},
		{"template of Terraform", strings.Replace(quickstart(t), "  region: us-east-1\n", "  region: us-east-1\n%{ for x in y ~}\n  a: ${x}\n%{ endfor ~}\n", 1), "x.yaml:1: this is a template of Terraform (%{ … }) — render it first, with templatefile"},
		{"CloudFormation", "AWSTemplateFormatVersion: '2010-09-09'\nResources:\n  A: {Type: 'AWS::EC2::VPC', Properties: {CidrBlock: !Ref B}}\n", "x.yaml:1: this is a template of CloudFormation"},
		{"typographic quotes", strings.Replace(quickstart(t), "  region: us-east-1", "  region: “us-east-1”", 1), "AWSCluster/quickstart spec.region: “us-east-1” is in typographic quotes, which are part of the value — write \", or no quotes"},
		{"Cluster of another tool", "apiVersion: kubermatic.k8c.io/v1\nkind: Cluster\nmetadata: {name: a}\n", "x.yaml:2: Cluster/a kind: there is no Cluster of Cluster API in the input: Cluster is an object of Kubermatic — write a manifest"},
		{"Cluster of an unknown tool", "apiVersion: x.example.com/v1\nkind: Cluster\nmetadata: {name: a}\n", "the Cluster is one of x.example.com, not of cluster.x-k8s.io — write a manifest"},
		{"OpenShift", "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: a}\n", "there is no Cluster in the input: HostedCluster is an object of OpenShift"},
		{"Argo CD", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n", "Application says where manifests are, and contains none — pass what is there, rendered"},
		{"roles of CAPA", "apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSIAMConfiguration\n", "AWSIAMConfiguration is for the roles that clusters need — use it with: clusterawsadm bootstrap iam … --config FILE"},
		{"a part in another case", strings.Replace(quickstart(t), "  name: quickstart-control-plane\nspec:", "  name: quickstart-control-plane\nSpec:", 1), `KubeadmControlPlane/quickstart-control-plane Spec: the field does not exist — did you mean "spec"?`},
		{"metadata in another case", strings.Replace(quickstart(t), "\nmetadata:", "\nMetadata:", 1), `Cluster/quickstart Metadata: the field does not exist — did you mean "metadata"?`},
		{"version in another case", strings.Replace(quickstart(t), "apiVersion:", "APIVersion:", 1), `Cluster/quickstart APIVersion: the field does not exist — did you mean "apiVersion"?`},
		{"kind in another case", strings.Replace(quickstart(t), "\nkind:", "\nKind:", 1), `Cluster/quickstart Kind: the field does not exist — did you mean "kind"?`},
		{"SOPS", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\nspec: ENC[AES256_GCM,data:x,type:str]\nsops: {mac: \"ENC[x]\", version: 3.9.0}\n", "x.yaml:5: Cluster/a sops: the object is encrypted with SOPS — decrypt it first: sops decrypt FILE | clusterawsadm cluster … -f -"},
		{"braces", strings.Replace(quickstart(t), "  region: us-east-1", "  region: {REGION}", 1), `AWSCluster/quickstart spec.region: {REGION} looks like a placeholder — replace it by the value`},
		{"angle brackets", strings.Replace(quickstart(t), "  region: us-east-1", "  region: <your region>", 1), `AWSCluster/quickstart spec.region: "<your region>" looks like a placeholder`},
		{"part of a value", strings.Replace(quickstart(t), `  sshKeyName: ""`, "  identityRef: {kind: AWSClusterRoleIdentity, name: team-<TEAM>}\n"+`  sshKeyName: ""`, 1), `spec.identityRef.name: "team-<TEAM>" looks like a placeholder`},
		{"words", strings.Replace(quickstart(t), "  region: us-east-1", "  region: REPLACE_ME", 1), `AWSCluster/quickstart spec.region: "REPLACE_ME" looks like a placeholder`},
		{"dollar", strings.Replace(quickstart(t), "  region: us-east-1", "  region: $AWS_REGION", 1), `AWSCluster/quickstart spec.region: this is a template with variables of a shell ($NAME) — replace its variables, such as $AWS_REGION, first: envsubst < FILE | clusterawsadm cluster … -f -`},
		{"dollars", strings.NewReplacer("us-east-1", "$(REGION)", "name: quickstart\n", "name: team-$TEAM\n").Replace(quickstart(t)), `metadata.name: this is a template with variables of a shell ($NAME) — replace its variables, such as $TEAM, first`},
		{"underscores", strings.Replace(quickstart(t), "  region: us-east-1", "  region: __REGION__", 1), `AWSCluster/quickstart spec.region: "__REGION__" looks like a placeholder`},
		{"here", strings.Replace(quickstart(t), "  region: us-east-1", "  region: YOUR_REGION_HERE", 1), `AWSCluster/quickstart spec.region: "YOUR_REGION_HERE" looks like a placeholder`},
		{"braces for a number", strings.Replace(quickstart(t), "  replicas: 1", "  replicas: {REPLICAS}", 1), `KubeadmControlPlane/quickstart-control-plane spec.replicas: {REPLICAS} looks like a placeholder`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loader.Load([]input.Source{{Name: "x.yaml", Data: []byte(tt.yaml)}}, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n", "one problem")
		})
	}
	for file, want := range map[string]string{
		"shop/kustomization.yaml": "shop/kustomization.yaml:1: the file is a Kustomization, which changes other files — build it first: kustomize build shop | clusterawsadm cluster … -f -",
		"shop/Chart.yaml":         "shop/Chart.yaml:1: the file belongs to a Helm chart — render it first: helm template shop | clusterawsadm cluster … -f -",
	} {
		_, err := loader.Load([]input.Source{{Name: file, Data: []byte("resources: []\n")}}, input.LoadOptions{})
		require.EqualError(t, err, want)
	}
}

// unquoted is a manifest with a command that is not in quotes.
func unquoted(t *testing.T, command string) string {
	t.Helper()
	return manifests.Edit(t, quickstart(t), "  kubeadmConfigSpec:\n", "  kubeadmConfigSpec:\n    preKubeadmCommands:\n    - "+command+"\n")
}

// Text that only looks like that of another tool is valid.
func TestNoOtherTools(t *testing.T) {
	for _, yaml := range []string{
		manifests.Plain(t, "echo {{ ds.meta_data.instance_id }} <REGION> REPLACE_ME $HOME"),
		manifests.Plain(t, "{% if a %}b{% endif %}"),
		unquoted(t, "echo a{{ ds.meta_data.instance_id }}"),
		unquoted(t, "sed -i \"s/x/http:{{\n      ds.meta_data.local_ipv4 }}:2381/g\" /etc/x"), // as kubectl breaks long lines
		unquoted(t, "echo\n      {{ ds.meta_data.local_ipv4 }} /etc/x"),
		"#!/usr/bin/env -S clusterawsadm cluster create -f\n" + quickstart(t),
		quickstart(t) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    ```yaml\n    ```\n",
		manifests.NodeName(t, "{{ ds.meta_data.local_hostname }}"),
		strings.Replace(quickstart(t), "kind: Cluster\nmetadata:\n", "kind: Cluster\nmetadata:\n  annotations: {a: \"{{ x }}\", b: \"<x>\", c: \"{X}\"}\n", 1),
		quickstart(t) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    {{ x }}\n    #@ load\n  b: '{{ x }} # #@ x'\n  c: \"{{\n    {{ x }}\"\n",
		"# {{ x }}\n# {% x %}\n" + quickstart(t),
		quickstart(t) + "---\napiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: \"<x>\"}\nspec: {a: \"{{ x }}\", b: {X: }}\n",
	} {
		manifests.MustLoad(t, yaml, input.LoadOptions{})
	}
	manifests.MustLoad(t, manifests.Read(t, "../../../../configs/clusterclass.yaml"), input.LoadOptions{})
}

// An object that nothing refers to is a warning; one that the cluster needs is one error.
func TestOtherProviders(t *testing.T) {
	beside := func(group, kind string) string {
		return "---\napiVersion: " + group + "\nkind: " + kind + "\nmetadata: {name: x}\nspec: {}\n"
	}
	for kind, want := range map[string]string{
		"addons.cluster.x-k8s.io/v1alpha1 HelmReleaseProxy":             "HelmReleaseProxy is ignored: the Helm add-on provider creates and maintains it",
		"ipam.cluster.x-k8s.io/v1beta1 InClusterIPPool":                 "InClusterIPPool is ignored",
		"operator.cluster.x-k8s.io/v1alpha2 CoreProvider":               "CoreProvider in operator.cluster.x-k8s.io/v1alpha2 is not part of a cluster and is ignored",
		"runtime.cluster.x-k8s.io/v1beta2 ExtensionConfig":              "ExtensionConfig is ignored: runtime extensions are not supported, and nothing in the input refers to it",
		"infrastructure.cluster.x-k8s.io/v1alpha1 KarpenterMachinePool": "KarpenterMachinePool is ignored",
		"infrastructure.cluster.x-k8s.io/v1beta1 AzureCluster":          "AzureCluster is ignored",
		"controlplane.cluster.x-k8s.io/v1beta1 RKE2ControlPlane":        "RKE2ControlPlane is ignored",
		"bootstrap.cluster.x-k8s.io/v1beta1 K0sWorkerConfigTemplate":    "K0sWorkerConfigTemplate is ignored",
		"ipam.cluster.x-k8s.io/v1beta2 IPAddressClaim":                  "IPAddressClaim is ignored: Cluster API creates and maintains it",
		"postgresql.cnpg.io/v1 Cluster":                                 "Cluster in postgresql.cnpg.io/v1 is not part of a cluster and is ignored",
		"infrastructure.cluster.x-k8s.io/v1beta2 ROSANetwork":           "ROSANetwork is ignored",
	} {
		group, name, _ := strings.Cut(kind, " ")
		c := manifests.MustLoad(t, quickstart(t)+beside(group, name), input.LoadOptions{})
		assert.Contains(t, strings.Join(manifests.Warnings(c), "\n"), want)
	}
	_, err := manifests.Load(t, quickstart(t)+beside("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachineTemplates"), input.LoadOptions{})
	require.ErrorContains(t, err, `there is no kind AWSMachineTemplates in infrastructure.cluster.x-k8s.io/v1beta2 — did you mean "AWSMachineTemplate"?`)

	for from, to := range map[string]string{
		"KubeadmControlPlane":   "RKE2ControlPlane RKE2 clusters are not supported: RKE2ControlPlane comes from the RKE2 provider of Rancher (cluster-api-provider-rke2) — this program takes KubeadmControlPlane, and AWSManagedControlPlane for EKS",
		"KubeadmConfigTemplate": "TalosConfigTemplate Talos clusters are not supported: TalosConfigTemplate comes from the Talos providers of Sidero (cluster-api-control-plane-provider-talos) — this program takes KubeadmConfigTemplate",
		"AWSCluster":            "AzureCluster clusters on Azure are not supported: AzureCluster comes from Cluster API Provider Azure — this program takes AWSCluster",
	} {
		kind, want, _ := strings.Cut(to, " ")
		_, err := manifests.Load(t, strings.ReplaceAll(quickstart(t), "kind: "+from+"\n", "kind: "+kind+"\n"), input.LoadOptions{})
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "\n", "one problem")
	}
	all := strings.NewReplacer("kind: KubeadmControlPlane\n", "kind: K0sControlPlane\n", "kind: KubeadmConfigTemplate\n", "kind: K0sWorkerConfigTemplate\n").
		Replace(quickstart(t))
	_, err = manifests.Load(t, all, input.LoadOptions{})
	require.ErrorContains(t, err, "k0s clusters are not supported: K0sControlPlane comes from the k0s provider (k0smotron)")
	assert.NotContains(t, err.Error(), "\n", "one problem for each provider")
}

// What is of another provider is refused first, and alone: nobody has to replace placeholders, correct fields, find values
// or convert a manifest that this program does not take.
func TestOtherProviderIsTheOnlyProblem(t *testing.T) {
	k0s := strings.ReplaceAll(quickstart(t), "kind: KubeadmControlPlane\n", "kind: K0sControlPlane\n")
	const want = "Cluster/quickstart spec.controlPlaneRef.kind: k0s clusters are not supported: K0sControlPlane comes from the k0s provider (k0smotron)"
	class := "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: talos}\nspec:\n" +
		"  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSClusterTemplate, name: talos}}\n" +
		"  controlPlane: {templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1alpha3, kind: TalosControlPlaneTemplate, name: talos}}\n"
	topology := "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\nspec:\n  topology:\n    classRef: {name: talos}\n" +
		"    version: <VERSION>\n    variable: []\n"
	for _, tt := range []struct{ name, yaml, want string }{
		{"placeholder", manifests.Edit(t, k0s, "  region: us-east-1", "  region: <your-region>"), want},
		{"field that does not exist", manifests.Edit(t, k0s, "  region: us-east-1", "  region: us-east-1\n  networkSpec: {}"), want},
		{"variable", manifests.Edit(t, k0s, "  region: us-east-1", "  region: ${REGION}"), want},
		{"older objects", strings.ReplaceAll(k0s, "/v1beta2", "/v1alpha4"), want},
		{"ClusterClass", topology + class, "ClusterClass/talos spec.controlPlane.templateRef.kind: Talos clusters are not supported: TalosControlPlaneTemplate comes from"},
		{
			"ClusterClass of v1beta1",
			strings.NewReplacer("classRef: {name: talos}", "class: talos", "templateRef", "ref", "x-k8s.io/v1beta2\nkind", "x-k8s.io/v1beta1\nkind").Replace(topology + class),
			"ClusterClass/talos spec.controlPlane.ref.kind: Talos clusters are not supported: TalosControlPlaneTemplate comes from",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifests.Load(t, tt.yaml, input.LoadOptions{})
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n", "one problem")
		})
	}
}

// A consequence of a problem is no problem.
func TestConsequences(t *testing.T) {
	for _, edits := range [][]string{
		{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4\nkind: AWSCluster\n"},
		{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusters\n"},
		{"kind: AWSCluster\nmetadata:\n  name: quickstart\n", "kind: AWSCluster\nmetadata: {}\n"},
		{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "kind: AWSCluster\n"},
		{"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "apiVersion: cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n"},
	} {
		_, err := manifests.Load(t, manifests.Edit(t, quickstart(t), edits...), input.LoadOptions{})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "\n", "one problem")
		assert.NotContains(t, err.Error(), "add it: ")
	}
	set := quickstart(
		t,
	) + "---\napiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: ClusterResourceSet\nmetadata: {name: a}\nspec: {clusterSelector: {matchLabels: {a: b}}, resources: [{kind: Secret, name: s}]}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: \"ENC[x]\"}\nsops: {mac: \"ENC[x]\"}\n"
	assert.Contains(
		t,
		strings.Join(manifests.Warnings(manifests.MustLoad(t, set, input.LoadOptions{})), "\n"),
		"the Secret is encrypted with SOPS and is ignored",
		"no cluster matches",
	)
	_, err := manifests.Load(
		t,
		manifests.Edit(t, set, "kind: Cluster\nmetadata:\n  name: quickstart\n", "kind: Cluster\nmetadata:\n  name: quickstart\n  labels: {a: b}\n"),
		input.LoadOptions{},
	)
	require.ErrorContains(t, err, "Secret/s sops: the object is encrypted with SOPS — decrypt it first")
	assert.NotContains(t, err.Error(), "\n", "one problem")
}

// The objects that controllers make are in what kubectl and export print.
func TestMadeObjects(t *testing.T) {
	made := func(kind, group, label, owner string) string {
		return "---\napiVersion: " + group + "/v1beta2\nkind: " + kind + "\nmetadata: {name: made, labels: {cluster.x-k8s.io/" + label + ": " + owner + "}}\nspec: {clusterName: quickstart}\n"
	}
	yaml := quickstart(t) + made("MachineSet", "cluster.x-k8s.io", "deployment-name", "quickstart-md-0") +
		made(
			"Machine",
			"cluster.x-k8s.io",
			"control-plane-name",
			"quickstart-control-plane",
		) + made("AWSMachine", "infrastructure.cluster.x-k8s.io", "control-plane-name", "quickstart-control-plane")
	c := manifests.MustLoad(t, yaml, input.LoadOptions{})
	assert.Empty(t, c.Machines)
	ignored := slices.DeleteFunc(manifests.Warnings(c), func(w string) bool { return !strings.Contains(w, "is ignored: it belongs to") })
	require.Len(t, ignored, 2, "a MachineSet and a Machine, and not its parts")
	assert.Contains(t, ignored[1], " Machine/made kind: Machine is ignored: it belongs to KubeadmControlPlane/quickstart-control-plane")
	_, err := manifests.Load(t, quickstart(t)+made("MachineSet", "cluster.x-k8s.io", "cluster-name", "quickstart"), input.LoadOptions{})
	require.ErrorContains(t, err, "a MachineSet without a MachineDeployment is not supported — write a MachineDeployment")
	_, err = manifests.Load(t, quickstart(t)+made("MachineSet", "cluster.x-k8s.io", "deployment-name", "other"), input.LoadOptions{})
	require.ErrorContains(t, err, "the MachineSet belongs to MachineDeployment/other, which is not in the input — add the MachineDeployment")
}

// Objects that have lost their labels still have owners. There is one warning for a MachineSet and one for a Machine, and none for the parts
// of the Machine, whether or not these have owners. A configuration that a pool owns and refers to is no part of a Machine.
func TestMadeObjectsWithoutLabels(t *testing.T) {
	made := func(kind, group, name, owner, spec string) string {
		ownerKind, ownerName, _ := strings.Cut(owner, "/")
		meta := "{name: " + name + "}"
		if owner != "" {
			meta = "{name: " + name + ", ownerReferences: [{apiVersion: a/v1, kind: " + ownerKind + ", name: " + ownerName + ", uid: x, controller: true}]}"
		}
		version := map[bool]string{true: "/v1beta2", false: "/v1beta1"}[strings.HasPrefix(kind, "AWS")]
		return "---\napiVersion: " + group + version + "\nkind: " + kind + "\nmetadata: " + meta + "\nspec: " + spec + "\n"
	}
	const core, infra, boot = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"
	machine := func(owner string) string {
		return made("Machine", core, "m", owner, "{clusterName: quickstart, bootstrap: {configRef: {apiVersion: "+boot+"/v1beta1, kind: KubeadmConfig, name: c}}, "+
			"infrastructureRef: {apiVersion: "+infra+"/v1beta1, kind: AWSMachine, name: a}}")
	}
	set := made("MachineSet", core, "quickstart-md-0-x1y2z", "MachineDeployment/quickstart-md-0", "{clusterName: quickstart}")
	aws := func(owner string) string {
		return made("AWSMachine", infra, "a", owner, "{instanceType: t3.large, instanceID: i-0, providerID: 'aws:///a/i-0'}")
	}
	config := func(owner string) string { return made("KubeadmConfig", boot, "c", owner, "{joinConfiguration: {}}") }
	for name, yaml := range map[string]string{
		"owners":                   set + machine("MachineSet/quickstart-md-0-x1y2z") + aws("Machine/m") + config("Machine/m"),
		"no MachineSet":            machine("MachineSet/quickstart-md-0-x1y2z") + aws("Machine/m") + config("Machine/m"),
		"no owners of the parts":   machine("MachineSet/quickstart-md-0-x1y2z") + aws("") + config(""),
		"owned by a control plane": machine("KubeadmControlPlane/quickstart-control-plane") + aws("Machine/m") + config("KubeadmControlPlane/quickstart-control-plane"),
	} {
		t.Run(name, func(t *testing.T) {
			c := manifests.MustLoad(t, quickstart(t)+yaml, input.LoadOptions{})
			assert.Empty(t, c.Machines)
			for _, w := range manifests.Warnings(c) {
				assert.Contains(t, w, "is ignored: it belongs to")
			}
			assert.Len(t, manifests.Warnings(c), strings.Count(yaml, "kind: MachineSet\n")+1)
		})
	}
}

// Unknown fields are warnings on request.
func TestIgnoreUnknown(t *testing.T) {
	yaml := manifests.Edit(
		t,
		quickstart(t),
		"  region: us-east-1",
		"  regoin: us-east-1\n  region: us-east-1",
		"kind: Cluster\nmetadata:\n",
		"kind: Cluster\nmetadata:\n  colour: red\n",
	) +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {}\n"
	_, err := manifests.Load(t, yaml, input.LoadOptions{})
	require.ErrorContains(t, err, `spec.regoin: the field does not exist — did you mean "region"?`)
	c := manifests.MustLoad(t, yaml, input.LoadOptions{IgnoreUnknown: true})
	text := strings.Join(manifests.Warnings(c), "\n")
	for _, want := range []string{`spec.regoin: the field does not exist and is ignored — did you mean "region"?`, "metadata.colour: the field does not exist and is ignored", "ConfigMap/a spec: the field does not exist and is ignored"} {
		assert.Contains(t, text, want)
	}
	_, err = manifests.Load(t, yaml, input.LoadOptions{IgnoreUnknown: true, Strict: true})
	require.ErrorContains(t, err, "spec.regoin")
}

// Objects whose API Kubernetes has removed are not applied; the others are.
func TestRemovedAPIs(t *testing.T) {
	const data = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
	yaml := manifests.Edit(
		t,
		quickstart(t),
		"kind: Cluster\nmetadata:\n  name: quickstart\n",
		"kind: Cluster\nmetadata:\n  name: quickstart\n  labels: {a: b}\n",
	) +
		"---\napiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: ClusterResourceSet\nmetadata: {name: a}\nspec: {clusterSelector: {matchLabels: {a: b}}, resources: [{kind: ConfigMap, name: c}]}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |\n    " + strings.ReplaceAll(
		data,
		"\n",
		"\n    ",
	) + "\n"
	c := manifests.MustLoad(t, yaml, input.LoadOptions{Addons: []input.Source{{Name: "more.yaml", Data: []byte("---\n" + data)}}})
	require.Len(t, c.ResourceSets, 2)
	for _, s := range c.ResourceSets {
		require.Len(t, s.Documents, 1)
		assert.Equal(t, "ConfigMap b", s.Documents[0].Title())
	}
	text := strings.Join(manifests.Warnings(c), "\n")
	assert.Contains(t, text, "ConfigMap/c data.a: PodDisruptionBudget a is not applied: Kubernetes has no policy/v1beta1 since v1.25 — use policy/v1")
	assert.Contains(t, text, "more.yaml:2: PodDisruptionBudget a is not applied")
	c = manifests.MustLoad(t, strings.ReplaceAll(yaml, "v1.34.2", "v1.24.2"), input.LoadOptions{})
	assert.Len(t, c.ResourceSets[0].Documents, 2, "v1.24 has it")
}

// For every stream of documents of any of these forms, Load returns a cluster or problems with
// file and line, and never asks for an object that is there.
func TestAnyStream(t *testing.T) {
	whole := quickstart(t)
	extras := []string{
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {a: \"${HOME} ${A%%.*} ${\"}\n",
		"apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: x}\n",
		"apiVersion: capi.weave.works/v1alpha2\nkind: CAPITemplate\nmetadata: {name: x}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: \"ENC[x]\"}\nsops: {mac: x}\n",
		"kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n",
		"#@ x\n",
		"{{ if x }}\n",
		"%YAML 1.2\n",
		"...\n",
		"{}\n",
		"[]\n",
		"null\n",
		"a\n",
		"- a\n",
		"{\"a\":1}{\"b\":2}\n",
		"{\"a\":1} x\n",
		"apiVersion: v1\nkind: List\nitems: [null, 1, {}, []]\n",
		"apiVersion: v1\nkind: PodList\nitems: [{}]\n",
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterList\nitems: [{metadata: {name: x}}]\n",
		"apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: RKE2ControlPlane\nmetadata: {name: quickstart-control-plane}\n",
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClustr\nmetadata: {name: quickstart}\n",
		"local x = 1;\n",
		"package a\n",
		"kind: Cluster\n",
		"apiVersion: {A: }\nkind: {B: }\n",
		"a: &a [*a]\n",
		"<<: 1\n",
		"${X}\n",
		"${X:-a: b}\n",
		"\tx\n",
		"apiVersion: a/b/c\nkind: Cluster\nmetadata: {name: quickstart}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: <x>}\ndata: {a: {B: }}\n",
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineSet\nmetadata: 1\n",
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata: {name: m, labels: {cluster.x-k8s.io/deployment-name: quickstart-md-0}}\n",
	}
	edits := [][2]string{
		{"/v1beta2", "/v1alpha4"},
		{"/v1beta2", "/v1beta1"},
		{"kind: AWS", "kind: AWZ"},
		{"kind: AWS", "kind: Azure"},
		{"kind: Kubeadm", "kind: RKE2"},
		{"kind: Kubeadm", "kind: Talos"},
		{"name: quickstart", "name: ${CLUSTER_NAME}"},
		{"name: quickstart", "name: <NAME>"},
		{"name: quickstart", "name: {NAME}"},
		{"name: quickstart", "name: \"{{ x }}\""},
		{"  name: ", "  nome: "},
		{"apiVersion: ", "apiVersion: x"},
		{"apiVersion: ", "#"},
		{"\n", "\r\n"},
		{"kind: ", "#"},
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := strings.Split(whole, "\n---\n")
		if rapid.Bool().Draw(t, "JSON") {
			parts = jsonObjects(t, whole)
		}
		complete := true
		for i := range parts {
			if rapid.IntRange(0, 5).Draw(t, "edited") == 0 {
				e := rapid.SampledFrom(edits).Draw(t, "edit")
				parts[i] = strings.ReplaceAll(parts[i], e[0], e[1])
				complete = complete && e[0] != "  name: "
			}
		}
		if n := rapid.IntRange(0, 3).Draw(t, "extras"); n > 0 {
			parts = append(parts, rapid.SliceOfN(rapid.SampledFrom(extras), n, n).Draw(t, "extra")...)
		}
		parts = rapid.Permutation(parts).Draw(t, "order")
		text := strings.Join(parts, rapid.SampledFrom([]string{"\n---\n", "\n--- # x\n", "\n...\n---\n", "\r\n---\r\n"}).Draw(t, "separator"))
		if rapid.IntRange(0, 9).Draw(t, "BOM") == 0 {
			text = "\ufeff" + text
		}
		mode := rapid.SampledFrom([]input.Substitution{input.SubstituteAuto, input.SubstituteAll, input.SubstituteNone}).Draw(t, "substitution")
		_, err := loader.Load(
			[]input.Source{{Name: "x.yaml", Data: []byte(text)}},
			input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment()), Substitute: mode},
		)
		var invalid *manifest.InvalidError
		if err == nil {
			return
		}
		if !errors.As(err, &invalid) {
			t.Fatal(err)
		}
		for _, p := range invalid.Problems {
			if p.File == "" || p.Line == 0 || p.What == "" {
				t.Fatalf("no position: %s", p)
			}
			if complete && (strings.HasPrefix(p.Fix, "add it:") || strings.HasPrefix(p.Fix, "add it, or use")) {
				t.Fatalf("it is there: %s", p)
			}
			if strings.Contains(p.What, "upstream's validation failed") || strings.Contains(p.String(), "/opt/secret/bin") {
				t.Fatal(p)
			}
		}
	})
}

// If the object for the purpose is one of another provider, the problem says so, also if it has another name.
func TestMissingObjectOfOtherProvider(t *testing.T) {
	text := strings.Replace(
		quickstart(t),
		"kind: KubeadmConfigTemplate\nmetadata:\n  name: quickstart-md-0",
		"kind: RKE2ConfigTemplate\nmetadata:\n  name: other",
		1,
	)
	_, err := manifests.Load(t, text, input.LoadOptions{})
	require.ErrorContains(
		t,
		err,
		"there is no KubeadmConfigTemplate/quickstart-md-0 in the input — the input has RKE2ConfigTemplate/other, which is not supported",
	)
}

// The names of images are a Go template of Cluster API Provider AWS, not of a chart.
func TestImageLookupFormatIsNoChart(t *testing.T) {
	const format = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*"
	text := strings.Replace(quickstart(t), "  region: us-east-1", "  region: us-east-1\n  imageLookupFormat: '"+format+"'", 1)
	text = strings.Replace(text, "      instanceType: t3.large", "      imageLookupFormat: '"+format+"'\n      instanceType: t3.large", 1)
	c := manifests.MustLoad(t, text, input.LoadOptions{})
	assert.Equal(t, format, c.Infra.Spec.ImageLookupFormat)
}

// A webhook's rule about what contains an invalid value is not another problem.
func TestInvalidValuesHaveOneProblem(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one of two fields of a node group": {
			strings.Replace(manifests.Read(t, "../../../../configs/eks.yaml"), "  scaling:\n", "  updateConfig: {maxUnavailable: 0}\n  scaling:\n", 1),
			"spec.updateConfig.maxUnavailable: 0: should be greater than or equal to 1",
		},
		"what is not supported": {
			strings.Replace(quickstart(t), "      instanceType: t3.large", "      dynamicHostAllocation: {}\n      instanceType: t3.large", 1),
			"spec.template.spec.dynamicHostAllocation: is not supported yet",
		},
	} {
		_, err := manifests.Load(t, c.text, input.LoadOptions{})
		require.ErrorContains(t, err, c.want, name)
		var invalid *input.InvalidError
		require.ErrorAs(t, err, &invalid)
		assert.Len(t, invalid.Problems, 1, "%s: %v", name, err)
	}
}

// A value of the wrong type is one problem, whose fix is about what is written.
func TestWrongTypes(t *testing.T) {
	const number, truth, list, mapping, text = "  replicas: 1\n", "  bastion: {enabled: %}\n", "  bastion: {allowedCIDRBlocks: %}\n", "  additionalTags: %\n", "  region: us-east-1\n"
	for _, tt := range []struct{ at, value, want string }{
		{number, "one", "must be of type integer, not string — write a whole number, such as 3"},
		{number, `"3"`, "must be of type integer, not string — write 3, without quotes"},
		{number, "!!str 3", "must be of type integer, not string — write 3, without quotes"},
		{number, "true", "must be of type integer, not boolean — write a whole number, such as 3"},
		{number, "[1]", "must be of type integer, not array — write a whole number, such as 3"},
		{number, "{a: 1}", "must be of type integer, not object — write a whole number, such as 3"},
		{number, "1.5", "must be a whole number of at most 32 bits"},
		{truth, "1", "must be of type boolean, not integer — write true or false"},
		{truth, "tru", "must be of type boolean, not string — write true or false"},
		{truth, `"false"`, "must be of type boolean, not string — write false, without quotes"},
		{truth, "{}", "must be of type boolean, not object — write true or false"},
		{list, "10.0.0.0/8", "must be of type array, not string — write a list"},
		{mapping, "[a]", "must be of type object, not array — write a mapping"},
		{mapping, "{a: {b: c}}", "spec.additionalTags.a: must be of type string, not object — put the text in quotes"},
		{text, "7", "must be of type string, not integer — put the value in quotes"},
		{text, "[us-east-1]", "must be of type string, not array — write a text, without [ ] and -"},
		{text, "{a: b}", "must be of type string, not object — put the text in quotes"},
	} {
		given := strings.Replace(quickstart(t), text, text+strings.Replace(tt.at, "%", tt.value, 1), 1)
		switch tt.at {
		case number:
			given = quickstart(t)
			at := strings.LastIndex(given, number)
			given = given[:at] + "  replicas: " + tt.value + "\n" + given[at+len(number):]
		case text:
			given = strings.Replace(quickstart(t), text, "  region: "+tt.value+"\n", 1)
		}
		_, err := manifests.Load(t, given, input.LoadOptions{})
		require.ErrorContains(t, err, tt.want, tt.value)
		assert.NotContains(t, err.Error(), "\n", "one problem")
	}
}
