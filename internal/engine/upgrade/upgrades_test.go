package upgrade_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim/helmsim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// edited loads an example with replaced texts, which it must contain.
func edited(t *testing.T, file string, oldNew ...string) *reconcile.Manifest {
	t.Helper()
	raw, err := enginetest.Read(file)
	require.NoError(t, err)
	text := string(raw)
	for i := 0; i < len(oldNew); i += 2 {
		require.Contains(t, text, oldNew[i])
		text = strings.ReplaceAll(text, oldNew[i], oldNew[i+1])
	}
	variables := map[string]string{"KUBERNETES_VERSION": "v1.33.0"}
	m, err := reconcile.Load([]input.Source{{Name: file, Data: []byte(text)}}, input.LoadOptions{
		Lookup:       func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		EKSEnableIAM: true,
	})
	require.NoError(t, err)
	return m
}

// upgrading opens a cluster for a run that replaces machines. Warnings are added to the text.
func upgrading(m *reconcile.Manifest, p *awssim.Process, warnings *strings.Builder) *reconcile.Cluster {
	target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Drain: true, Wait: plan.APIServer, Helm: &helmsim.Helm{}}
	if warnings != nil {
		target.Warn = func(text string) { warnings.WriteString(text + "\n") }
	}
	return reconcile.Open(m, target)
}

// created creates the cluster in a new account.
func created(t *testing.T, m *reconcile.Manifest) *awssim.AWS {
	t.Helper()
	a := awssim.New(awssim.Options{Region: m.Region(), EKSRoles: true})
	_, err := upgrading(m, a.Process(), nil).Apply(t.Context(), cluster.Options{})
	require.NoError(t, err)
	time.Sleep(enginetest.Booting)
	return a
}

// versionsOf lists versions with their steps: "v1.35 minor recommended".
func versionsOf(u cluster.Upgrades) (all []string) {
	for _, v := range u.Versions {
		text := v.Version + " " + string(v.Step)
		if v.Recommended {
			text += " recommended"
		}
		all = append(all, text)
	}
	return all
}

// lastPatches lists the last patch of each minor version: "v1.34.13 minor recommended".
func lastPatches(u cluster.Upgrades) (last []string) {
	minor := func(version string) string { return version[:strings.LastIndexByte(version, '.')] }
	for i, text := range versionsOf(u) {
		if i+1 == len(u.Versions) || minor(u.Versions[i].Version) != minor(u.Versions[i+1].Version) {
			last = append(last, text)
		}
	}
	return last
}

// editsOf lists edits: "quickstart.yaml:45 KubeadmControlPlane/quickstart spec.version v1 → v2".
func editsOf(u cluster.Upgrades) (all []string) {
	for _, e := range u.Edits {
		all = append(all, strings.TrimSpace(strings.Join([]string{e.At, e.Object, e.Path, e.Old, "→", e.New, e.Written}, " ")))
	}
	return all
}

// A self-managed cluster can use the versions that have images for all its machines. A plan
// with the edited manifest, however the versions are written, says what is replaced.
func TestUpgradesOfImages(t *testing.T) {
	for written, old := range map[string]string{
		`v1.33.0 # as yet`:               "v1.33.0",
		`"1.33.0"`:                       "1.33.0",
		"${KUBERNETES_VERSION:=v1.33.0}": "v1.33.0",
		`'v${KUBERNETES_VERSION:1}'`:     "v1.33.0",
	} {
		t.Run(written, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := edited(t, "quickstart.yaml", "version: v1.34.2", "version: "+written)
				a := created(t, m)
				u, err := upgrading(m, a.Process(), nil).Upgrades(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, "v1.33.0", u.Version)
				assert.True(t, u.Exists && u.Known && !u.EKS)
				assert.Equal(t, []string{"v1.33.13 patch", "v1.34.13 minor recommended", "v1.35.10 later", "v1.36.6 later", "v1.37.2 later"}, lastPatches(u))
				require.NotEmpty(t, u.Edits)
				for _, e := range u.Edits {
					assert.Equal(t, old, e.Old)
					assert.Equal(t, strings.Replace(old, "1.33.0", "1.34.13", 1), e.New)
					assert.Regexp(t, `^quickstart.yaml:\d+$`, e.At)
					assert.Equal(t, strings.Contains(written, "${"), e.Written != "", e.Written)
				}
				assert.Equal(t, "KubeadmControlPlane/quickstart-control-plane", u.Edits[0].Object)
				assert.Empty(t, u.Refusals)
				assert.Empty(t, u.Remarks)

				machines := 0
				for _, r := range u.Replaces {
					machines += r.Machines
				}
				s := m.Summary()
				assert.Equal(t, s.ControlPlanes+s.Workers, machines, u.Replaces)
				assert.Contains(t, u.Updates, plan.ID("kube-proxy"))

				named := reconcile.OpenByName(m.Name(), cluster.Target{Config: a.Process().Config()})
				byName, err := named.Upgrades(t.Context(), "")
				require.NoError(t, err)
				assert.Equal(t, u.Versions, byName.Versions)
				assert.Equal(t, "v1.33.0", byName.Version)
				assert.Empty(t, byName.Edits)
			})
		})
	}
}

// Versions that cannot be reached are refused, with the reason.
func TestUpgradesRefused(t *testing.T) {
	m := edited(t, "quickstart.yaml", "version: v1.34.2", "version: v1.32.4")
	a := awssim.New(awssim.Options{Region: m.Region()})
	for to, want := range map[string]string{
		"v1.31.0":  "v1.31.0 is older than v1.32.4: Kubernetes cannot be downgraded",
		"1.32.4":   "the cluster has v1.32.4 already",
		"v1.34":    "v1.34.13 cannot be reached from v1.32.4 in one step: upgrade by one minor version at a time, first to v1.33",
		"v1.33.99": "there are no images of v1.33.99 for all machines: use v1.32.13 or v1.33.13",
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := upgrading(m, a.Process(), nil).Upgrades(t.Context(), to)
			require.ErrorAs(t, err, new(*plan.RefusedError), to)
			assert.ErrorContains(t, err, want)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		u, err := upgrading(m, a.Process(), nil).Upgrades(t.Context(), "v1.33")
		require.NoError(t, err)
		assert.Equal(t, "v1.33.13", u.Target)
		assert.False(t, u.Exists)
		assert.Len(t, u.Edits, 2)
		assert.Empty(t, u.Replaces, "nothing exists")

		newest, err := upgrading(edited(t, "quickstart.yaml", "version: v1.34.2", "version: v1.37.2"), a.Process(), nil).Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.Empty(t, newest.Versions)
		assert.Empty(t, newest.Target)
		assert.Empty(t, newest.Edits)
		assert.True(t, newest.Known)
	})
}

// A topology has one field for the version.
func TestUpgradesOfTopology(t *testing.T) {
	m := edited(t, "clusterclass.yaml", "version: v1.34.2", "version: v1.33.0")
	synctest.Test(t, func(t *testing.T) {
		u, err := upgrading(m, created(t, m).Process(), nil).Upgrades(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []string{"clusterclass.yaml:22 Cluster/quickstart spec.topology.version v1.33.0 → v1.34.13"}, editsOf(u))
		assert.NotEmpty(t, u.Replaces)
	})
}

// A kubelet may be three minor versions older than the API server, also during the upgrade.
func TestUpgradesOfOldWorkers(t *testing.T) {
	m := edited(t, "quickstart.yaml", "      version: v1.34.2", "      version: v1.30.5", "  version: v1.34.2", "  version: v1.33.0")
	synctest.Test(t, func(t *testing.T) {
		u, err := upgrading(m, created(t, m).Process(), nil).Upgrades(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, u.Edits, 2)
		assert.Equal(
			t,
			[]string{"there are workers with v1.30.5, and kubelets may be at most 3 minor versions older than the control plane: replace them first"},
			u.Refusals,
		)
		require.ErrorAs(t, u.Refused(), new(*plan.RefusedError))
	})
}

// An image that the manifest names decides what the machines run.
func TestUpgradesWithImageID(t *testing.T) {
	m := edited(
		t,
		"quickstart.yaml",
		"version: v1.34.2",
		"version: v1.33.0",
		"      instanceType: t3.large",
		"      instanceType: t3.large\n      ami:\n        id: ami-0123456789abcdef0",
	)
	synctest.Test(t, func(t *testing.T) {
		c := upgrading(m, awssim.New(awssim.Options{Region: m.Region()}).Process(), nil)
		u, err := c.Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.False(t, u.Known)
		assert.Empty(t, u.Target)
		u, err = c.Upgrades(t.Context(), "v1.34.2")
		require.NoError(t, err)
		assert.Len(t, u.Edits, 2)
		assert.Contains(t, strings.Join(u.Remarks, "\n"), "spec.template.spec.ami.id: the image decides which version the machines run: set an image of v1.34.2")
	})
}

// In EKS the versions are those that EKS offers. Versions of add-ons that EKS does not have for
// the new one are among the edits.
func TestUpgradesOfEKS(t *testing.T) {
	m := edited(t, "eks-addons.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := created(t, m)
		u, err := upgrading(m, a.Process(), nil).Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []string{"v1.34 current", "v1.35 minor recommended"}, versionsOf(u))
		assert.Equal(t, "STANDARD_SUPPORT", u.Versions[0].Status)
		assert.Equal(t, "2026-12-02", u.Versions[0].EndOfStandardSupportDate.Format(time.DateOnly))
		assert.Equal(t, "2028-03-27", u.Versions[1].EndOfExtendedSupportDate.Format(time.DateOnly))
		all := editsOf(u)
		require.NotEmpty(t, all)
		assert.Equal(t, "eks-addons.yaml:57 AWSManagedControlPlane/eks-addons spec.version v1.34 → v1.35", all[0])
		assert.Regexp(
			t,
			`\neks-addons.yaml:88 AWSManagedControlPlane/eks-addons spec.addons\[1\].version v1.34.0-eksbuild.2 → v1\.35\.\S+-eksbuild\.\d+ \$\{KUBE_PROXY_VERSION:=v1.34.0-eksbuild.2\}`,
			strings.Join(all, "\n"),
		)
		assert.Contains(t, u.Updates, plan.ID("addon/kube-proxy"))
		assert.Contains(t, u.Updates, plan.ID("eks-cluster"))
		assert.Empty(t, u.Refusals)

		_, err = upgrading(m, a.Process(), nil).Upgrades(t.Context(), "v1.36")
		require.ErrorContains(t, err, "v1.36 cannot be reached from v1.34 in one step")

		named, err := reconcile.OpenByName(m.Name(), cluster.Target{Config: a.Process().Config()}).Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, u.Versions, named.Versions)
	})
}

// Who may not ask EKS for its versions can still ask for the edits to one.
func TestUpgradesDenied(t *testing.T) {
	m := edited(t, "eks.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := created(t, m)
		var warnings strings.Builder
		c := upgrading(m, enginetest.Refusing(a, "EKS", "DescribeClusterVersions", awssim.Denied), &warnings)
		u, err := c.Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.False(t, u.Known)
		assert.Empty(t, u.Target)
		assert.Contains(t, warnings.String(), "the versions that EKS offers are not known: the caller lacks the IAM action eks:DescribeClusterVersions\n")
		u, err = c.Upgrades(t.Context(), "v1.35")
		require.NoError(t, err)
		assert.Equal(t, []string{"eks.yaml:45 AWSManagedControlPlane/eks spec.version v1.34 → v1.35"}, editsOf(u))
		assert.Contains(t, strings.Join(u.Remarks, "\n"), "version is not set, so the nodes keep the version that they have")
		_, err = c.Upgrades(t.Context(), "v1.33")
		require.ErrorContains(t, err, "v1.33 is older than v1.34")
	})
}

// upgrade-plan shows the insights of EKS, by name too; one with an error refuses the upgrade.
func TestUpgradesWithInsights(t *testing.T) {
	m := edited(t, "eks.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := created(t, m)
		a.Edit(func(s *awssim.State) {
			for _, c := range s.EKS.Clusters {
				c.Insights = map[string]*ekssim.Insight{
					"1": {ID: "1", Name: "Deprecated APIs", Version: "1.35", Status: "ERROR", Reason: "One is in use.", Recommendation: "Use another one."},
					"2": {ID: "2", Name: "Kubelet version skew", Version: "1.35", Status: "WARNING", Reason: "Nodes are old."},
					"3": {ID: "3", Name: "Later", Version: "1.36", Status: "ERROR", Reason: "Not of this upgrade."},
				}
			}
		})
		want := []cluster.UpgradeInsight{
			{Name: "Deprecated APIs", Version: "1.35", Status: "ERROR", Reason: "One is in use.", Advice: "Use another one."},
			{Name: "Kubelet version skew", Version: "1.35", Status: "WARNING", Reason: "Nodes are old."},
		}
		u, err := upgrading(m, a.Process(), nil).Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, want, u.Insights)
		require.Len(t, u.Refusals, 1)
		assert.Contains(t, u.Refusals[0], "Deprecated APIs (Kubernetes 1.35): One is in use. Use another one.")
		named, err := reconcile.OpenByName(m.Name(), cluster.Target{Config: a.Process().Config()}).Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, want, named.Insights)

		var warnings strings.Builder
		u, err = upgrading(m, enginetest.Refusing(a, "EKS", "ListInsights", awssim.Denied), &warnings).Upgrades(t.Context(), "")
		require.NoError(t, err)
		assert.Empty(t, u.Insights)
		assert.Contains(t, warnings.String(), "the upgrade insights of EKS are not known: the caller lacks the IAM action eks:ListInsights\n")
	})
}

// The version of the AWS cloud controller manager belongs to that of Kubernetes: in a set, and in the values of a chart.
func TestUpgradesOfCloudControllers(t *testing.T) {
	const once = "  name: cloud-controller\nspec:\n"
	for file, want := range map[string]struct {
		edit    string
		updates plan.ID
		more    []string
	}{
		"resource-sets.yaml": {"Secret/cloud-controller stringData.cloud-controller.yaml v1.33.0 → v1.34.0", "resource-set/cloud-controller", []string{once, once + "  strategy: Reconcile\n"}},
		"charts.yaml":        {"HelmChartProxy/charts-cloud-controller-manager spec.valuesTemplate v1.33.0 → v1.34.0", "helm-release/aws-cloud-controller-manager", nil},
	} {
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := edited(t, file, append([]string{"version: v1.34.2", "version: v1.33.0", "v1.34.0", "v1.33.0"}, want.more...)...)
				raw, err := enginetest.Read(file)
				require.NoError(t, err)
				a := created(t, m)
				u, err := upgrading(m, a.Process(), nil).Upgrades(t.Context(), "v1.34")
				require.NoError(t, err)
				last := u.Edits[len(u.Edits)-1]
				assert.Equal(t, want.edit, last.Object+" "+last.Path+" "+last.Old+" → "+last.New)
				_, line, _ := strings.Cut(last.At, ":")
				n, err := strconv.Atoi(line)
				require.NoError(t, err)
				assert.Contains(t, strings.Split(string(raw), "\n")[n-1-len(want.more)/2], "v1.34.0", "it is the line with the tag")
				assert.Contains(t, u.Updates, want.updates)
				assert.Empty(t, u.Remarks)

				u, err = upgrading(m, a.Process(), nil).Upgrades(t.Context(), "v1.33.1")
				require.NoError(t, err)
				for _, e := range u.Edits {
					assert.NotEqual(t, want.edit[:12], (e.Object + " ")[:12], "a patch keeps it")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := edited(t, "resource-sets.yaml", "version: v1.34.2", "version: v1.33.0", "v1.34.0", "v1.33.0")
		u, err := upgrading(m, created(t, m).Process(), nil).Upgrades(t.Context(), "v1.34")
		require.NoError(t, err)
		require.Len(t, u.Remarks, 1)
		assert.Contains(
			t,
			u.Remarks[0],
			"Secret/cloud-controller stringData.cloud-controller.yaml: runs do not change what this has installed: set strategy: Reconcile",
		)
	})
	synctest.Test(t, func(t *testing.T) {
		m := edited(t, "charts.yaml", "version: v1.34.2", "version: v1.33.0", "    image:\n      tag: v1.34.0\n", "")
		u, err := upgrading(m, created(t, m).Process(), nil).Upgrades(t.Context(), "v1.34")
		require.NoError(t, err)
		require.Len(t, u.Remarks, 1)
		assert.Contains(t, u.Remarks[0], "set image.tag to v1.34.0")
	})
}
