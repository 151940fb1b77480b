package loader_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A field that exists in v1beta1 only, and is dropped when it is converted, is not ignored without a word, and no advice leads to v1beta1.
func TestGoneFieldsAreSaid(t *testing.T) {
	older := func(kind, more string) string {
		parts := strings.Split(manifests.Plain(t), "---\n")
		for i, x := range parts {
			if strings.Contains(x, "kind: AWSMachineTemplate") && strings.Contains(x, kind) {
				x = strings.Replace(x, "infrastructure.cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1beta1", 1)
				x, _, _ = strings.Cut(x, "      instanceMetadataOptions:") // only in v1beta2
				parts[i] = strings.Replace(x, "instanceType:", more+"      instanceType:", 1)
			}
		}
		return strings.Join(parts, "---\n")
	}
	const zone, group, subnet = "failureDomain: us-east-1c\n", "additionalSecurityGroups: [{id: sg-0123456789abcdef0, arn: a}]\n", "subnet: {id: subnet-0123456789abcdef0, arn: a}\n"
	const gone = "has no effect: Cluster API Provider AWS drops it, because v1beta2 has no such field any more — "
	for name, tt := range map[string]struct{ kind, more, want string }{
		"zone of a control plane": {"name: quickstart-control-plane", zone, "spec.template.spec.failureDomain: " + gone +
			"remove it: a control plane is spread over the zones by itself; only subnet puts its machines into one"},
		"zone of workers": {"name: quickstart-md-0", zone, "spec.template.spec.failureDomain: " + gone +
			"set failureDomain in spec.template.spec of the MachineDeployment, or subnet here"},
		"ARN of a group":  {"name: quickstart-md-0", group, "spec.template.spec.additionalSecurityGroups[0].arn: " + gone + "use id"},
		"ARN of a subnet": {"name: quickstart-md-0", subnet, "spec.template.spec.subnet.arn: " + gone + "use id"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := manifests.Load(t, older(tt.kind, tt.more), input.LoadOptions{})
			require.NoError(t, err)
			assert.Contains(t, strings.Join(manifests.Warnings(c), "\n"), tt.want)
			newer := strings.ReplaceAll(older(tt.kind, tt.more), "infrastructure.cluster.x-k8s.io/v1beta1", "infrastructure.cluster.x-k8s.io/v1beta2")
			_, err = manifests.Load(t, newer, input.LoadOptions{})
			_, advice, _ := strings.Cut(tt.want, " — ")
			require.ErrorContains(t, err, "the field does not exist in v1beta2 any more, and v1beta1 ignores it — "+advice)
		})
	}
}

// The list has every field of the kinds of Cluster API Provider AWS that is in the schema of v1beta1 and not in that of v1beta2.
// Two of them have only got another name.
func TestGoneFields(t *testing.T) {
	renamed := []string{"AWSManagedControlPlane spec.disableVPCCNI", "AWSManagedMachinePool spec.updateConfig.maxUnavailablePrecentage"}
	var want []string
	for _, kind := range loader.PublishedKinds() {
		if !strings.HasPrefix(kind.Name, "AWS") && !strings.HasPrefix(kind.Name, "EKS") || !slices.Contains(kind.Versions, "v1beta1") {
			continue
		}
		older, err := crd.Described(kind.Name, "v1beta1")
		require.NoError(t, err)
		newer, err := crd.Described(kind.Name, "v1beta2")
		require.NoError(t, err)
		has := fieldsOf("spec", newer.Properties["spec"])
		for path := range fieldsOf("spec", older.Properties["spec"]) {
			if !has[path] {
				want = append(want, kind.Name+" "+path)
			}
		}
	}
	require.NotEmpty(t, want)
	assert.ElementsMatch(t, want, append(loader.GoneFields(), renamed...))
}

// fieldsOf returns the paths of a schema.
func fieldsOf(path string, s apiextensionsv1.JSONSchemaProps) map[string]bool {
	all := map[string]bool{path: true}
	for name, below := range s.Properties {
		maps.Copy(all, fieldsOf(path+"."+name, below))
	}
	if s.Items != nil && s.Items.Schema != nil {
		maps.Copy(all, fieldsOf(path+"[]", *s.Items.Schema))
	}
	return all
}
