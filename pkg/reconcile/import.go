package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
)

// Imported is a manifest of a cluster that exists in AWS.
type Imported struct {
	Name     string // of the Cluster object
	Manifest []byte // YAML documents
	// LeftOut are parts that the manifest does not contain, because no manifest can describe
	// them. Runs leave them as they are.
	LeftOut []string
	// Plan is the plan of a run with the manifest. The tags by which runs find resources
	// are missing on those that another tool has made: Adopt sets them.
	Plan plan.Plan
	// Differences are the steps of the plan that do more than to set tags. With them, Adopt is
	// refused.
	Differences []plan.Step
	// Templates are groups of machines that were launched from another template than that of
	// the manifest, which lacks what AWS does not tell. Without Adopt, a run replaces such
	// machines. Adopt records that they have the template of the manifest.
	Templates []TemplateDifference

	// Later are the pools of Cluster API for which the first run with the manifest writes what new
	// machines boot with into the launch template. It replaces no machine.
	Later []string

	// KeysFrom is the ID of the machine on which the keys of the cluster were read; "" if they were
	// not.
	KeysFrom string

	// Unknown are parts of the cluster that have to be known before Adopt can record them.
	// With them, Adopt is refused.
	Unknown []string

	cluster *Cluster
	keys    []byte // Secrets with the keys of the cluster, which Adopt stores: never shown
}

// ImportOptions are the options of Import.
type ImportOptions struct {
	LoadOptions
	// Keys are the certificates and keys of a self-managed cluster whose keys are not in the
	// account, by the paths of their files in /etc/kubernetes/pki: "ca.crt", "etcd/ca.key".
	// KeyFiles reads them from a folder. Adopt stores them where runs keep them.
	Keys map[string][]byte
	// KeysFromMachine reads them on a machine of the control plane, with SSM Run Command. If that is
	// not possible, Unknown says why.
	KeysFromMachine bool
	// BootDataFromMachines reads what machines of a self-managed cluster have booted with, with SSM
	// Run Command: files, commands, users. LeftOut says what cannot be read.
	BootDataFromMachines bool
}

// TemplateDifference is a group of machines and the fields in which its template differs from
// that of the manifest.
type TemplateDifference struct {
	Group    string   // name of the KubeadmControlPlane, the MachineDeployment, the Machine or the pool
	Pool     bool     // a launch template: Adopt cannot record that it is that of the manifest
	Machines int      // 0: those of a node group
	Fields   []string // "bootstrap.files"; empty if the machines do not say
}

// Import makes a manifest of a cluster in the region of the target's Config. An EKS cluster may
// be that of any tool; its name is that of the EKS cluster or of its Cluster object. A
// self-managed cluster is one that runs or Cluster API have made. It changes nothing. If there
// is no such cluster, the error is ErrNotFound.
func Import(ctx context.Context, name string, t Target, o ImportOptions) (*Imported, error) {
	i, err := importCluster(cloud.ReadOnly(ctx), name, t, o)
	return i, err
}

func importCluster(ctx context.Context, name string, t Target, o ImportOptions) (*Imported, error) {
	c := cloud.New(t.Config, name, t.options())
	c.Snapshot()
	found, err := discover.FindEKS(cloud.InSnapshot(ctx), c, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("EKS cluster: %w", err)
	case found == nil:
		return importSelfManaged(ctx, c, t, o)
	}
	return importEKS(ctx, *found, t, o.LoadOptions)
}

// ErrNotFound says that there is no cluster of the name.
var ErrNotFound = errors.New("there is no such cluster")

func importEKS(ctx context.Context, cluster eks.ClusterState, t Target, o LoadOptions) (*Imported, error) {
	c := cloud.New(t.Config, discover.ClusterName(cluster), t.options())
	c.Snapshot()
	found, err := discover.ReadEKS(cloud.InSnapshot(ctx), c, cluster)
	if err != nil {
		return nil, err
	}
	i := &Imported{Name: found.Name}
	if err := i.leaveOutIndescribable(found); err != nil {
		return nil, err
	}
	i.readNodeBootData(ctx, c, found)
	readEKSNodes(ctx, c, found)
	o.EKSEnableIAM = o.EKSEnableIAM || found.OwnsRoles()
	for {
		if i.Manifest, err = discover.YAML(i.head(found), found.Objects()); err != nil {
			return nil, err
		}
		r, err := i.check(ctx, t, o)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.plan.Steps, func(s plan.Step) bool { return i.leavesOut(found, s) }) && !pinImages(found.Workers, r) {
			i.compareTemplates(r)
			if err := i.compareNodeTemplates(ctx, found.Templates); err != nil {
				return nil, err
			}
			if err := i.comparePools(ctx, found.Workers.Pools); err != nil {
				return nil, err
			}
			return i, i.checkComplete(found.Owned)
		}
	}
}

// check loads the manifest and plans it.
func (i *Imported) check(ctx context.Context, t Target, o LoadOptions) (*run, error) {
	sources := []Source{{Name: i.Name + ".yaml", Data: i.Manifest}}
	if len(i.keys) > 0 {
		sources = append(sources, Source{Name: "keys", Data: i.keys})
	}
	m, err := Load(sources, o) //nolint:contextcheck // it reads what is in memory
	if err != nil {
		return nil, fmt.Errorf("no manifest can describe the cluster: %w", err)
	}
	i.cluster = Open(m, t)
	i.cluster.adopts = true
	r := i.cluster.begin(Options{})
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	i.Plan, i.Differences = r.plan, nil
	for at, s := range r.plan.Steps {
		if s.Does() && !adopts(s) {
			i.Differences = append(i.Differences, i.Plan.Steps[at])
		}
	}
	return r, nil
}

// leaveOutIndescribable removes the node groups that no manifest can describe. A run deletes
// those of the cluster that are not in its manifest: then the import is refused.
func (i *Imported) leaveOutIndescribable(found *discover.EKS) error {
	var reasons []error
	for _, g := range slices.Clone(found.NodeGroups) {
		switch why := found.Indescribable(g); {
		case why == "":
		case found.Owned:
			reasons = append(reasons, fmt.Errorf("no manifest can be made of node-group/%s: %s", g.Name, why))
		default:
			found.Without(eks.NodeGroupKind, g.Name)
			i.LeftOut = append(i.LeftOut, fmt.Sprintf("node-group/%s: %s", g.Name, why))
		}
	}
	if len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// leavesOut removes the resource of a step from what is found, if a run with the manifest
// would change more of it than its tags, and if it can do without it.
func (i *Imported) leavesOut(found *discover.EKS, s plan.Step) bool {
	kind, name, _ := strings.Cut(string(s.Resource), "/")
	if !s.Does() || adopts(s) || found.Owned || !found.Without(kind, name) {
		return false
	}
	i.LeftOut = append(i.LeftOut, fmt.Sprintf("%s: a run would change it (%s)", s.Resource, fieldsOf(s.Diff)))
	return true
}

// fieldsOf prints the fields that differ, without tags.
func fieldsOf(d plan.Diff) string {
	var out []string
	for _, c := range d {
		if !strings.HasPrefix(c.Field, "tag ") {
			out = append(out, fmt.Sprintf("%s %s → %s", c.Field, cmp.Or(c.Have, "none"), cmp.Or(c.Want, "none")))
		}
	}
	return strings.Join(out, ", ")
}

// checkComplete refuses a manifest of a cluster of Cluster API's with which a run would
// delete something: machines, which AWS does not say enough about.
func (i *Imported) checkComplete(owned bool) error {
	var reasons []error
	for _, s := range i.Differences {
		if s.Action == plan.Remove && owned {
			reasons = append(reasons, fmt.Errorf("no manifest can be made of %s (%s): the configuration that its machines get when they boot is not read", s.Resource, s.CloudID))
		}
	}
	if len(reasons) > 0 {
		return &plan.RefusedError{Reasons: reasons}
	}
	return nil
}

// head is the comment at the beginning of the manifest.
func (i *Imported) head(found *discover.EKS) []string {
	lines := []string{fmt.Sprintf("EKS cluster %s in %s, imported with 'clusterawsadm cluster import'.", found.Cluster.Name, found.Region), ""}
	lines = append(lines, found.Remarks()...)
	if len(i.LeftOut) > 0 {
		lines = append(lines, "", "These parts of the cluster are not in the manifest, and runs leave them as they are:")
		for _, x := range i.LeftOut {
			lines = append(lines, "- "+x)
		}
	}
	return lines
}

// Cluster prepares work on the cluster with the manifest.
func (i *Imported) Cluster() *Cluster { return i.cluster }

// Adopt sets the tags by which runs find the resources of the cluster, and which say that
// they delete them with it. It changes nothing else. If a run with the manifest would change
// more, the error is a RefusedError.
func (i *Imported) Adopt(ctx context.Context, o Options) (Result, error) {
	r := i.cluster.begin(o)
	if err := refusalFor(i.Unknown); err != nil {
		return r.result(err)
	}
	if err := r.lock(ctx, "import"); err != nil {
		return r.result(err)
	}
	defer r.unlock(ctx)
	if m := r.cloud.Lock.Manager(); m != nil {
		return r.result(r.managed(m))
	}
	return r.result(r.adopt(ctx, nil))
}
