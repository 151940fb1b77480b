package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

func TestExplain(t *testing.T) {
	s := newShell(t)
	explained := func(code int, args ...string) string {
		t.Helper()
		require.Equal(t, code, s.run(append([]string{"cluster", "explain"}, args...)...), s.err.String())
		return s.out.String()
	}
	golden.Assert(t, "explain.txt", strings.Join([]string{
		explained(0),
		explained(0, "AWSMachineTemplate.spec.template.spec.rootVolume"),
		explained(0, "awsclusters.spec.network.subnets[0].routeTableId"),
		explained(0, "AWSCluster.spec.network.vpc.ipamPool"),
		explained(0, "MachineDeployment.spec.rollout", "--recursive"),
		explained(0, "AWSManagedControlPlane.metadata.annotations.clusterawsadm/zonal-shift"),
		explained(0, "HelmChartProxy.spec.reconcileStrategy"),
		explained(0, "kubeadmconfig.spec.files.contentFormat"),
		explained(0, "Secret.stringData"),
	}, "---\n"))

	for args, want := range map[string]string{
		"AWSMachineTemplates.spec.template.spec.rootvolume": `AWSMachineTemplate v1beta2 has no field spec.template.spec.rootvolume: did you mean "rootVolume"?`,
		"AWSMachineTemplat":             `there is no kind AWSMachineTemplat: did you mean "AWSMachineTemplate"?`,
		".spec":                         "the kind is missing: without an argument",
		"AWSCluster/spec/network":       `there is no kind "AWSCluster/spec/network": write dots between the kind and its fields`,
		"Pod":                           "there is no kind Pod: without an argument, the command lists the kinds",
		"IPAddress":                     "objects of the kind IPAddress are ignored: Cluster API creates and maintains it",
		"Cluster --api-version v1beta3": "Cluster has no version v1beta3: it has v1beta2 and v1beta1",
		"MachineDeployment.spec.progressDeadlineSeconds": "MachineDeployment v1beta2 has no field spec.progressDeadlineSeconds: v1beta1 has it: use --api-version v1beta1",
		"MachineDeployment.spec.replicas.more":           "MachineDeployment v1beta2 has no field spec.replicas.more: there are no fields below spec.replicas",
	} {
		explained(env.Wrong, strings.Fields(args)...)
		assert.Contains(t, s.err.String(), want)
		assert.Empty(t, s.out.String())
	}
	assert.Equal(t, explained(0, "AWSCluster.spec.network.subnets[0].id"), explained(0, "AWSCluster.spec.network.subnets.0.id"))
	assert.Contains(
		t,
		explained(0, "MachineDeployment.spec.progressDeadlineSeconds", "--api-version", "cluster.x-k8s.io/v1beta1"),
		"ignored: Cluster API has removed it",
	)

	var e struct {
		APIVersion string
		Fields     []struct{ Name, Type string }
	}
	require.NoError(t, json.Unmarshal([]byte(explained(0, "AWSCluster.spec.bastion", "-o", "json")), &e))
	assert.Equal(t, "infrastructure.cluster.x-k8s.io/v1beta2", e.APIVersion)
	assert.Contains(t, e.Fields, struct{ Name, Type string }{"enabled", "boolean"})
	assert.Equal(
		t,
		"allowedCIDRBlocks ami disableIngressRules enabled instanceType",
		strings.TrimSpace(explained(0, "AWSCluster.spec.bastion", "-o", "jsonpath={.fields[*].name}")),
	)
}

// Every annotation is explained, and every note is about a field that exists.
func TestNotesAreAboutFields(t *testing.T) {
	s := newShell(t)
	for _, k := range loader.PublishedKinds() {
		for _, a := range loader.FieldAnnotations(k.Name) {
			assert.NotEmpty(t, a.Text, a.Name)
			assert.Equal(t, 0, s.run("cluster", "explain", k.Name+".metadata.annotations."+a.Name), s.err.String())
			assert.Contains(t, s.out.String(), "FIELD: "+a.Name+" <string>")
		}
		for _, n := range loader.FieldNotes(k.Name) {
			if some := regexp.MustCompile(`\.(minReadySeconds|nodeDeletionTimeout|nodeDeletionTimeoutSeconds|providerID)$`); some.MatchString(n.Path) {
				continue // not all kinds of the row have it
			}
			found := false
			for _, v := range k.Versions {
				found = found || s.run("cluster", "explain", k.Name+"."+n.Path, "--api-version", v) == 0
			}
			assert.True(t, found, "%s.%s: %s", k.Name, n.Path, s.err.String())
		}
	}
}

// change is a change of a field of a cluster that exists.
type change struct {
	kind, path string
	value      any
}

// fieldChanges lists a change of every field whose effect is explained, by flavor.
func fieldChanges() map[string][]change {
	list := func(items ...any) []any { return items }
	type fields = map[string]any
	return map[string][]change{
		"quickstart": {
			{"Cluster", "spec.clusterNetwork.pods", fields{"cidrBlocks": list("192.168.0.0/17")}},
			{"Cluster", "spec.clusterNetwork.services", fields{"cidrBlocks": list("10.200.0.0/16")}},
			{"Cluster", "spec.clusterNetwork.serviceDomain", "example.local"},
			{"AWSCluster", "spec.network.vpc.cidrBlock", "10.50.0.0/16"},
			{"AWSCluster", "spec.additionalTags", fields{"team": "a"}},
			{"AWSCluster", "spec.controlPlaneLoadBalancer.scheme", "internal"},
			{"AWSCluster", "spec.controlPlaneLoadBalancer.name", "other"},
			{"AWSCluster", "spec.bastion.instanceType", "t3.large"},
			{"AWSCluster", "spec.bastion.ami", "ami-0123456789abcdef0"},
			{"AWSCluster", "spec.bastion.allowedCIDRBlocks", list("10.0.0.0/8")},
			{"AWSCluster", "spec.bastion.disableIngressRules", true},
			{"AWSMachineTemplate", "spec.template.spec.instanceType", "m5.large"},
			{"AWSMachineTemplate", "spec.template.spec.additionalTags", fields{"team": "a"}},
			{
				"AWSMachineTemplate",
				"spec.template.spec.additionalSecurityGroups",
				list(fields{"filters": list(fields{"name": "tag:Name", "values": list("demo-apiserver-lb")})}),
			},
			{"AWSMachineTemplate", "spec.template.spec.instanceMetadataOptions", fields{"httpTokens": "required", "httpPutResponseHopLimit": 3}},
			{"KubeadmControlPlane", "spec.replicas", 3},
			{"KubeadmControlPlane", "spec.version", "v1.34.3"},
			{"KubeadmControlPlane", "spec.kubeadmConfigSpec.preKubeadmCommands", list("date")},
			{"KubeadmControlPlane", "spec.kubeadmConfigSpec.clusterConfiguration.dns", fields{"imageTag": "v1.12.3"}},
			{"KubeadmConfigTemplate", "spec.template.spec.preKubeadmCommands", list("date")},
			{"KubeadmConfigTemplate", "spec.template.spec.clusterConfiguration", fields{"certificatesDir": "/etc/other"}},
			{"KubeadmConfigTemplate", "spec.template.spec.initConfiguration", fields{"skipPhases": list("preflight")}},
			{"MachineDeployment", "spec.replicas", 2},
			{"MachineDeployment", "spec.template.spec.version", "v1.34.1"},
			{"MachineDeployment", "spec.template.spec.failureDomain", "us-east-1c"},
		},
		"listed-subnets": {
			{"AWSCluster", "spec.network.subnets[0].cidrBlock", "10.20.250.0/24"},
			{"AWSCluster", "spec.network.subnets[0].availabilityZone", "us-east-1d"},
		},
		"eks": {
			{"AWSManagedControlPlane", "spec.version", "v1.35"},
			{"AWSManagedControlPlane", "spec.roleName", "controllers.cluster-api-provider-aws.sigs.k8s.io"},
			{"AWSManagedMachinePool", "spec.amiType", "BOTTLEROCKET_x86_64"},
			{"AWSManagedMachinePool", "spec.capacityType", "spot"},
			{"AWSManagedMachinePool", "spec.diskSize", 100},
			{"AWSManagedMachinePool", "spec.instanceType", "m5.large"},
			{"AWSManagedMachinePool", "spec.scaling", fields{"minSize": 1, "maxSize": 9}},
			{"AWSManagedMachinePool", "spec.labels", fields{"team": "a"}},
			{"AWSManagedMachinePool", "spec.taints", list(fields{"key": "team", "value": "a", "effect": "no-schedule"})},
			{"AWSManagedMachinePool", "spec.availabilityZoneSubnetType", "private"},
		},
		"eks-fargate": {{"AWSFargateProfile", "spec.selectors", list(fields{"namespace": "other"})}},
	}
}

// TestFieldEffects changes fields of clusters that exist: what explain says of a change is what a plan says.
func TestFieldEffects(t *testing.T) {
	made := map[string]bool{}
	for flavor, all := range fieldChanges() {
		t.Run(flavor, func(t *testing.T) {
			s := newShell(t)
			s.simulated()
			require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", flavor), s.err.String())
			text := s.out.String()
			file := filepath.Join(t.TempDir(), "demo.yaml")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
			for _, c := range all {
				require.NoError(t, os.WriteFile(file, []byte(c.in(t, text)), 0o600))
				note, ok := effectOf(c.kind, c.path)
				require.True(t, ok, "%s %s", c.kind, c.path)
				made[c.kind+" "+note.Path] = true
				s.assertEffect(t, file, c, note.Effect)
			}
		})
	}
	for _, k := range loader.PublishedKinds() {
		for _, n := range loader.FieldNotes(k.Name) {
			twin := map[string]string{"AWSManagedControlPlane": "AWSCluster", "AWSMachinePool": "AWSManagedMachinePool"}[k.Name] // the same code
			if n.Effect != "" {
				assert.True(t, made[k.Name+" "+n.Path] || made[twin+" "+n.Path], "no change of %s %s", k.Name, n.Path)
			}
		}
	}
}

// effectOf returns the note with the longest path that is about a field.
func effectOf(kind, path string) (best loader.FieldNote, ok bool) {
	path = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, "[]")
	for _, n := range loader.FieldNotes(kind) {
		if n.Effect != "" && (path == n.Path || strings.HasPrefix(path, n.Path+".")) && len(n.Path) > len(best.Path) {
			best, ok = n, true
		}
	}
	return best, ok
}

func (s *shellEnv) assertEffect(t *testing.T, file string, c change, effect loader.Effect) {
	t.Helper()
	code := s.run("cluster", "plan", "-f", file, "-o", "json")
	name := fmt.Sprintf("%s %s: %s", c.kind, c.path, s.err.String())
	if effect == loader.EffectConflict {
		require.Equal(t, env.Refused, code, name)
		return
	}
	require.Equal(t, 0, code, name)
	var plan struct {
		Summary map[string]int
		Steps   []struct{ Resource, Action string }
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &plan))
	machines := slices.ContainsFunc(plan.Steps, func(x struct{ Resource, Action string }) bool {
		return strings.HasPrefix(x.Resource, "machine/") && (x.Action == "create" || x.Action == "delete")
	})
	switch effect {
	case loader.EffectNone:
		assert.Contains(t, s.err.String(), "has no effect", name)
		assert.Contains(t, s.err.String(), c.path, name)
		assert.True(t, !machines || c.kind == "KubeadmConfigTemplate", name) // it is in the user data all the same
	case loader.EffectReplace:
		assert.Positive(t, plan.Summary["replace"], name)
	case loader.EffectScale:
		assert.True(t, machines, name)
		assert.Zero(t, plan.Summary["replace"], name)
	case loader.EffectUpdate:
		assert.Positive(t, plan.Summary["update"], name)
		assert.Zero(t, plan.Summary["replace"], name)
		assert.False(t, machines, name)
	case loader.EffectConflict:
	}
}

// in makes the change in the first object of the kind.
func (c change) in(t *testing.T, text string) string {
	t.Helper()
	documents := strings.Split(text, "\n---\n")
	for i, d := range documents {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(d), &o))
		if o["kind"] != c.kind {
			continue
		}
		setAt(o, strings.FieldsFunc(c.path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }), c.value)
		out, err := yaml.Marshal(o)
		require.NoError(t, err)
		documents[i] = string(out)
		return strings.Join(documents, "\n---\n")
	}
	require.Fail(t, "there is no "+c.kind)
	return ""
}

func setAt(in any, path []string, value any) {
	switch x := in.(type) {
	case map[string]any:
		if len(path) == 1 {
			x[path[0]] = value
			return
		}
		if x[path[0]] == nil {
			x[path[0]] = map[string]any{}
		}
		setAt(x[path[0]], path[1:], value)
	case []any:
		i, _ := strconv.Atoi(path[0])
		setAt(x[i], path[1:], value)
	}
}

// What generate prints names the schema in each document of Cluster API.
func TestGenerateNamesTheSchema(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo"))
	const line = "# yaml-language-server: $schema=https://clusterawsadm.github.io/clusterawsadm/schema.json\napiVersion: "
	assert.Equal(t, len(regexp.MustCompile(`(?m)^apiVersion: .*cluster\.x-k8s\.io/`).FindAllString(s.out.String(), -1)), strings.Count(s.out.String(), line))
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--schema", "./schema.json"))
	assert.Contains(t, s.out.String(), "# yaml-language-server: $schema=./schema.json\n")
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--schema", "none"))
	assert.NotContains(t, s.out.String(), "yaml-language-server")

	require.Equal(t, 0, s.run("cluster", "schema"))
	assert.True(t, json.Valid(s.out.Bytes()))
}
