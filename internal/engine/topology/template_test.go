package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The tag of a machine tells which settings have changed since it was launched, and the old
// values that are short and no secret.
func TestTemplateChanges(t *testing.T) {
	of := func(edit func(*group)) template {
		g := group{specAt: "AWSMachineTemplate/a", specPath: templatePath, boot: source{"KubeadmConfigTemplate/a", templatePath}, version: "v1.34.2"}
		g.spec.InstanceType, g.spec.IAMInstanceProfile = "t3.large", "nodes.cluster-api-provider-aws.sigs.k8s.io"
		g.spec.RootVolume = &infrav1.Volume{Size: 8}
		g.kubeadm = &bootstrapv1.KubeadmConfigSpec{PreKubeadmCommands: []string{"echo secret"}}
		edit(&g)
		return templateOf(g)
	}
	old := of(func(*group) {})
	require.LessOrEqual(t, len(encodeFields(old.fields)), mostTagValue)
	require.NotContains(t, encodeFields(old.fields), "secret")
	in := inputs{m: &manifest.Cluster{}}
	for name, c := range map[string]struct {
		edit func(*group)
		want []string
	}{
		"nothing":        {func(*group) {}, nil},
		"changed":        {func(g *group) { g.spec.RootVolume.Size = 100 }, []string{"rootVolume.size 8 → 100"}},
		"added":          {func(g *group) { g.zone = "us-east-1b" }, []string{"failureDomain  → us-east-1b"}},
		"removed":        {func(g *group) { g.spec.RootVolume = nil }, []string{"rootVolume.size 8 → "}},
		"long":           {func(g *group) { g.spec.IAMInstanceProfile = "mine" }, []string{"iamInstanceProfile (another value) → mine"}},
		"version":        {func(g *group) { g.version = "v1.34.3" }, []string{"version v1.34.2 → v1.34.3"}},
		"secret":         {func(g *group) { g.kubeadm.PreKubeadmCommands[0] = "echo other" }, []string{"bootstrap.preKubeadmCommands (another value) → (not shown)"}},
		"removed secret": {func(g *group) { g.kubeadm.PreKubeadmCommands = nil }, []string{"bootstrap.preKubeadmCommands (another value) → "}},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := of(c.edit)
			require.Equal(t, c.want == nil, fresh.digest == old.digest)
			require.Equal(t, c.want, printedChanges(in.templateChanges(fresh, encodeFields(old.fields))))
		})
	}
	require.Empty(t, in.templateChanges(old, ""), "a machine of an earlier version has no such tag")
}

func printedChanges(all []plan.Change) (out []string) {
	for _, c := range all {
		out = append(out, fmt.Sprintf("%s %s → %s", c.Field, c.Have, c.Want))
	}
	return out
}

// A template with very many fields fits into a tag, and a field that did not is not reported.
func TestManyFields(t *testing.T) {
	var fields []templateField
	for i := range 100 {
		fields = append(fields, templateField{name: fmt.Sprintf("field%d", i), value: strings.Repeat("x", i)})
	}
	tag := encodeFields(fields)
	require.LessOrEqual(t, len(tag), mostTagValue)
	require.True(t, strings.HasSuffix(tag, " +"), tag)
	in := inputs{m: &manifest.Cluster{}}
	require.Empty(t, in.templateChanges(template{fields: fields}, tag))
}

// No two fields have the same letters: a plan would name the wrong one.
func TestLettersAreDistinct(t *testing.T) {
	names := listFields()
	require.Greater(t, len(names), 100)
	require.Len(t, fieldNames(), len(names))
	require.Contains(t, names, "bootstrap.joinConfiguration.nodeRegistration.kubeletExtraArgs")
	require.Contains(t, names, "rootVolume.size")
}
