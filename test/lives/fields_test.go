package lives_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// fieldExamples are example manifests that together contain every kind of object except
// MachineDrainRule, which always causes a warning.
func fieldExamples() []string {
	return []string{
		"quickstart", "machine-pool", "single-machines", "eks", "eks-machines", "eks-fargate", "eks-templates", "multi-tenancy",
		"resource-sets", "self-healing", "flatcar", "bastion", "eks-addons", "spot-volumes-placement", "byo-vpc", "classic-elb", "clusterclass",
	}
}

// quiet lists patterns of fields that may be ignored without a message, with the reason.
func quiet() map[string]string {
	const (
		objects = "Cluster API ignores it, or it is about objects in a management cluster"
		usual   = "the other values are refused or reported; this one is the default"
		rollout = "it says how machines are replaced or deleted, not which (TestNoSurge, TestDeletionOrder, TestDrainTimeout, TestCertificatesExpire)"
		labels  = "labels of Nodes are compared if the API server answers (TestLabelsAreMended)"
		boot    = "it is in boot data or in kubeconfigs, which are not part of a plan, and matters only until the first machine runs"
		health  = "it says which machines are unhealthy, and here is none (TestUnhealthyMachineIsReplaced, TestUnhealthyMachinesThatStay)"
		values  = "it describes which values of variables are valid"
	)
	return map[string]string{
		`.*metadata\.(labels|annotations)`:                                                labels,
		`ClusterClass spec\.variables\[\]\.(schema|deprecatedV1Beta1Metadata|required).*`: values,
		`ClusterClass spec\.patches.*\.(description|name|names)`:                          objects,
		`ClusterClass spec\.infrastructure\.naming\.template`:                             objects,
		`.*deletion\.(nodeDrainTimeoutSeconds|nodeVolumeDetachTimeoutSeconds|order)`:      rollout,
		`.*deletePolicy`:                                       rollout,
		`.*(rollout\.|spec\.)strategy\..*`:                     rollout,
		`.*rolloutStrategy\.type`:                              rollout,
		`.*refreshPreferences\..*`:                             rollout,
		`.*certificatesExpiryDays`:                             rollout,
		`.*[rR]ef\.(apiVersion|fieldPath|resourceVersion|uid)`: objects,
		`.*Configuration\.(apiVersion|kind)`:                   objects,
		`.*initConfiguration\..*`:                              boot,
		`.*tokenMethod`:                                        boot,
		`AWSManagedControlPlane spec\.vpcCni\.env\[\]\..*`:     "it is in the DaemonSet aws-node, which is compared if the API server answers (TestEnvironmentOfTheVPCCNI)",
		`.*dns\.imageRepository`:                               "without imageTag it matters only for kubeadm init, as in Cluster API",
		`.*dnsResolutionCheck`:                                 "it says how a controller waits; a run waits until the API server answers",
		`.*healthCheck\.(checks|remediation)\..*`:              health,
		`MachineHealthCheck spec\.(checks|remediation)\..*`:    health,
		`MachineDeployment spec\.remediation\.maxInFlight`:     health,
		`ClusterResourceSet spec\.strategy`:                    usual,
		`AWSClusterTemplate .*(region|sshKeyName)`:             "the class of the example patches it",
		`AWSClusterRoleIdentity .*matchLabels`:                 "the list of the example permits the namespace",
	}
}

// TestFields sets each field of each kind to other values. In at least one of the examples, a
// value must change the plan of a new cluster, the plan of an existing cluster, or the warnings,
// or must be refused. Fields in quiet are exempt.
func TestFields(t *testing.T) {
	if !enginetest.Sweeping() {
		t.Skip("it takes two minutes: see make sweep")
	}
	t.Parallel()
	silent, heard := map[string]string{}, map[string]bool{}
	for _, example := range fieldExamples() {
		objects := objectsOf(t, example)
		base, err := loadObjects(t, objects)
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			fresh, living := enginetest.Account(base, 0), enginetest.Account(base, 0)
			enginetest.Prepare(t, fresh, base)
			enginetest.Prepare(t, living, base)
			enginetest.MustApply(t, base, living)
			before := seen(t, base, fresh, living)
			for i, original := range objects {
				kind, api := original["kind"].(string), original["apiVersion"].(string)
				schema := schemaOf(t, kind, api[strings.Index(api, "/")+1:])
				if schema == nil {
					continue
				}
				for _, f := range fieldsOf(schema, func() any { return objects[i] }, func(v any) { objects[i] = v.(map[string]any) }) {
					name := kind + " " + f.path
					for _, value := range candidates(f.name, f.schema, 0) {
						if heard[name] || fmt.Sprint(value) == fmt.Sprint(f.get()) {
							continue
						}
						f.set(value)
						m, err := loadObjects(t, objects)
						objects[i] = original
						switch {
						case err != nil:
							heard[name] = concerns(err, f)
						case seen(t, m, fresh, living) != before:
							heard[name] = true
						default:
							silent[name] = fmt.Sprint(value)
						}
					}
				}
			}
		})
	}
	unused := quiet()
	for name, value := range silent {
		excused := heard[name]
		for pattern := range quiet() {
			if !heard[name] && regexp.MustCompile("^("+pattern+")$").MatchString(name) {
				excused = true
				delete(unused, pattern)
			}
		}
		if !excused {
			t.Errorf("%s: with the value %s, nothing that the user sees is different", name, value)
		}
	}
	require.Empty(t, unused, "all reasons are needed")
}

// concerns reports whether an error is about a field.
func concerns(err error, f field) bool {
	parts := strings.Split(f.path, ".")
	return slices.ContainsFunc(parts[max(0, len(parts)-2):], func(part string) bool { return strings.Contains(err.Error(), strings.TrimSuffix(part, "[]")) })
}

// seen is what a user sees of a manifest: the warnings, and the plan of each account.
func seen(t *testing.T, m *manifest.Cluster, accounts ...*awssim.AWS) string {
	t.Helper()
	var text strings.Builder
	for _, w := range m.Warnings {
		fmt.Fprintln(&text, w.Object, w.Path, w.What)
	}
	for _, a := range accounts {
		p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		if err != nil {
			fmt.Fprintln(&text, "error:", err)
			continue
		}
		for _, s := range p.Steps {
			fmt.Fprintln(&text, s.Resource, s.Action, s.Diff)
		}
	}
	return text.String()
}

// loadObjects loads a manifest.
func loadObjects(t *testing.T, objects []map[string]any) (*manifest.Cluster, error) {
	t.Helper()
	var sources []input.Source
	for _, o := range objects {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		sources = append(sources, input.Source{Name: "x.yaml", Data: data})
	}
	return loader.Load(sources, input.LoadOptions{})
}

// objectsOf returns the objects of an example.
func objectsOf(t *testing.T, example string) (objects []map[string]any) {
	t.Helper()
	raw, err := enginetest.Read(example + ".yaml")
	require.NoError(t, err)
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(doc), &o))
		if o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}
