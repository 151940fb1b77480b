package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addAddons adds what is installed in the cluster: the ClusterResourceSets of the
// manifest, and the files that the user names. It returns the pod network, without
// which Nodes do not become ready.
func addAddons(g *graph.Graph, in inputs, k kubernetes) (podNetwork []graph.Edge) {
	brought, defines := map[string]bool{}, map[string]incluster.AddonObject{}
	for _, set := range in.m.ResourceSets {
		for _, d := range set.Documents {
			o := addonObject(d)
			brought[o.Brings()] = true
			if d.Kind() == "CustomResourceDefinition" {
				defines[o.Brings()] = o
			}
		}
	}
	uninstalled := graph.Awaits(addLeftovers(g, in, k))
	var defined definitions
	for _, set := range in.m.ResourceSets {
		a := &incluster.Addons{
			API: k.api, Server: k.server, Name: set.Name, Reconcile: set.Reconcile, Brought: brought, Definitions: defines, Charts: len(in.m.Charts) > 0,
		}
		for _, d := range set.Documents {
			a.Objects = append(a.Objects, addonObject(d))
		}
		if len(a.Objects) > 0 {
			added := graph.Install(
				g,
				plan.ID(incluster.ResourceSetKind+"/"+set.Name),
				a,
				graph.From(set.Origin),
				graph.With(uninstalled),
				graph.Diagnosed(diagnose.Addons(a)),
			)
			if set.HasPodNetwork() {
				podNetwork = append(podNetwork, graph.Awaits(added)...)
			}
			defined.add(a, added)
		}
	}
	return append(podNetwork, addCharts(g, in, k, podNetwork, uninstalled, defined)...)
}

// addWorkloads adds what a run that waits for ready Nodes waits for after them: that the pods of
// kubeadm and of add-ons run. Without Nodes for them it waits only for those that the control plane
// may run: others may wait for a scaler that makes Nodes.
func addWorkloads(g *graph.Graph, in inputs, k kubernetes) {
	if in.o.Wait != plan.NodesReady || k.server == nil {
		return
	}
	after := append(runPods(g), graph.Awaits(desiredOf(g, incluster.ResourceSetKind, incluster.HelmReleaseKind)...)...)
	add := func(w *incluster.Workloads, from graph.Option) {
		w.API, w.Server, w.After, w.Types = k.api, k.server, after, in.nodeTypes()
		graph.Expect(g, plan.ID(incluster.WorkloadsKind+"/"+w.Name), w, from, graph.Diagnosed(diagnose.Workloads(w)))
	}
	if k.config != nil {
		_, origin := in.clusterConfiguration()
		add(&incluster.Workloads{Name: "kubeadm", Objects: incluster.SystemWorkloads(), Optional: true}, graph.From(origin))
	}
	for _, set := range in.m.ResourceSets {
		w := &incluster.Workloads{Name: set.Name}
		for _, d := range set.Documents {
			if o := addonObject(d); o.HasStatus() && (in.hasWorkers() || o.RunsOnControlPlane()) {
				w.Objects = append(w.Objects, o)
			}
		}
		if len(w.Objects) > 0 {
			add(w, graph.From(set.Origin))
		}
	}
}

// hasWorkers reports whether the manifest has machines for pods beside the control plane.
func (in inputs) hasWorkers() bool {
	return slices.ContainsFunc(in.m.Deployments, func(d manifest.Deployment) bool { return d.Replicas() > 0 }) ||
		slices.ContainsFunc(in.m.Pools, func(p manifest.Pool) bool { return p.Replicas() > 0 }) ||
		slices.ContainsFunc(in.m.Machines, func(m manifest.Machine) bool { return !m.ControlPlane })
}

// definitions are the sets that define kinds or namespaces, which charts may need. Sets may also need what charts
// define: these try again until it is there.
type definitions struct {
	pure   []graph.Edge // those that have nothing else
	others []graph.Edge // those that need nothing of a chart
}

func (d *definitions) add(a *incluster.Addons, added graph.Resource) {
	brings, only, needs := false, true, false
	for _, o := range a.Objects {
		brings, only = brings || o.Brings() != "", only && o.Brings() != ""
		needs = needs || !o.Builtin() && !a.Brought[o.Definition()]
	}
	switch {
	case !brings || needs:
	case only:
		d.pure = append(d.pure, graph.Awaits(added)...)
	default:
		d.others = append(d.others, graph.Awaits(added)...)
	}
}

// addLeftovers adds the releases of charts that are not in the manifest any more. They are uninstalled before other
// add-ons are installed, which may have the same objects.
func addLeftovers(g *graph.Graph, in inputs, k kubernetes) graph.Resource {
	leftovers := &incluster.HelmLeftovers{API: k.api, Server: k.server, Once: in.m.ChartsOnce, Charts: in.m.ChartObjects > 0}
	for _, c := range in.m.Charts {
		leftovers.Keep = append(leftovers.Keep, c.Namespace+"/"+c.Release)
	}
	return graph.Retire(g, incluster.HelmLeftoversKind, leftovers, graph.From("no longer in the manifest"))
}

// addCharts adds the releases of Helm charts: the pod network before the others, which may wait for their pods, and
// all after the sets with the kinds that they may need. A set that has more than these may wait for a webhook, whose
// pods need the network. addCharts returns the pod network.
func addCharts(g *graph.Graph, in inputs, k kubernetes, podNetwork, uninstalled []graph.Edge, defined definitions) (added []graph.Edge) {
	// pods get the credentials of an association only if it exists when they start ("Learn how EKS Pod Identity works", EKS user guide)
	identities := graph.Awaits(desiredOf(g, eks.PodIdentityKind)...)
	for _, network := range []bool{true, false} {
		for _, c := range in.m.Charts {
			if c.HasPodNetwork() != network {
				continue
			}
			after := slices.Concat(uninstalled, defined.pure, identities)
			if !network {
				after = slices.Concat(after, podNetwork, added, defined.others)
			}
			release := graph.Install(g, plan.ID(incluster.HelmReleaseKind+"/"+c.Release), releaseOf(c, k), graph.From(c.Origin), graph.With(after))
			if network {
				added = append(added, graph.Awaits(release)...)
			}
		}
	}
	return added
}

// releaseOf returns the release of a chart. It has the flags of helm for the options of CAAPH (internal/helm_client.go).
func releaseOf(c manifest.Chart, k kubernetes) *incluster.HelmRelease {
	o := c.Options
	r := &incluster.HelmRelease{
		API: k.api, Server: k.server, Proxy: c.Name, Name: c.Release, Namespace: c.Namespace, Chart: c.Chart, Title: c.Title, Repository: c.Repository,
		Version: c.Version, Values: c.Values, ValuesAt: c.ValuesAt, Once: c.Once, Reuse: o.Upgrade.ReuseValues || o.Upgrade.ResetThenReuseValues,
		RollbackFlag: o.Atomic, ForceFlag: o.Upgrade.Force, Timeout: o.Timeout.Duration,
	}
	history := 10
	if o.Upgrade.MaxHistory != nil {
		history = *o.Upgrade.MaxHistory
	}
	r.Flags = append(r.Flags, fmt.Sprintf("--history-max=%d", history))
	for _, f := range []struct {
		given bool
		flag  string
	}{
		{o.Install.CreateNamespace == nil || *o.Install.CreateNamespace, "--create-namespace"},
		{o.DisableHooks, "--no-hooks"},
		{o.Wait, "--wait"},
		{o.WaitForJobs, "--wait-for-jobs"},
		{o.DependencyUpdate, "--dependency-update"},
		{o.SkipCRDs, "--skip-crds"},
		{o.SubNotes, "--render-subchart-notes"},
		{o.DisableOpenAPIValidation, "--disable-openapi-validation"},
		{o.TakeOwnership, "--take-ownership"},
		{o.Upgrade.CleanupOnFail, "--cleanup-on-fail"},
		{o.Upgrade.ReuseValues, "--reuse-values"},
		{o.Upgrade.ResetThenReuseValues, "--reset-then-reuse-values"},
		{!r.Reuse, "--reset-values"},
		{c.Insecure, "--insecure-skip-tls-verify"},
	} {
		if f.given {
			r.Flags = append(r.Flags, f.flag)
		}
	}
	return r
}

func addonObject(d *manifest.Document) incluster.AddonObject {
	return incluster.AddonObject{Title: d.Title(), Origin: d.Origin, Object: d.Object}
}

// postponedRemarks lists the add-ons that a run does not install because it does not wait
// for the API server.
func (in inputs) postponedRemarks(mappings []incluster.Mapping) (out []string) {
	var names []string
	for _, set := range in.m.ResourceSets {
		names = append(names, set.Name)
	}
	for _, c := range in.m.Charts {
		names = append(names, c.Release)
	}
	if len(names) > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"not applied before the API server answers, which this run does not wait for: add-ons %s; run again with --wait=joined or --wait=ready",
				strings.Join(names, ", "),
			),
		)
	}
	if in.hasDaemonSetSettings() {
		out = append(
			out,
			in.m.Origin(
				in.m.InfraObject(),
				"spec",
			)+": vpcCni and kubeProxy are not applied before the API server answers, which this run does not wait for; run again with --wait=joined or --wait=ready",
		)
	}
	if len(mappings) > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"%s: the ConfigMap aws-auth is not written by a run with --wait=infrastructure, and those who are to be in it are not let into the cluster: run again with --wait=api",
				in.m.Origin(in.m.InfraObject(), "spec.accessConfig"),
			),
		)
	}
	return out
}
