package adopt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// importSelfManaged imports a cluster whose control plane consists of machines.
func importSelfManaged(ctx context.Context, c *cloud.Clients, t cluster.Target, o cluster.ImportOptions) (*Imported, error) {
	found, err := discover.ReadSelfManaged(cloud.InSnapshot(ctx), c)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, cluster.ErrNotFound
	}
	i := &Imported{Imported: cluster.Imported{Name: found.Name}}
	if err := i.readCluster(ctx, c, found, o); err != nil {
		return nil, err
	}
	if err := i.leaveOutNodes(ctx, c, found.Name); err != nil {
		return nil, err
	}
	others := slices.Clone(i.LeftOut)
	i.readStoredBootData(ctx, c, found)
	if o.BootDataFromMachines {
		i.readBootData(ctx, c, found)
	}
	var l *looking
	for again := true; again; again = pinImages(found, l) {
		if i.Manifest, err = discover.YAML(selfManagedHead(found, others), found.Objects()); err != nil {
			return nil, err
		}
		switch {
		case found.HasAllNodes():
			t.Wait = plan.NodesJoined // it compares the labels of Nodes, too
		case found.Config != nil:
			t.Wait = plan.APIServer // it knows from which template a machine was made, and compares what kubeadm stores
		}
		if l, err = i.check(ctx, t, o.LoadOptions); err != nil {
			return nil, err
		}
	}
	i.compareTemplates(l)
	if err := i.comparePools(ctx, found.Pools); err != nil {
		return nil, err
	}
	return i, i.checkComplete(true)
}

// pinImages finds the pools whose machines a run would replace because there is a newer image.
// It reports whether there are any.
func pinImages(found *discover.SelfManaged, l *looking) (more bool) {
	for _, s := range l.Plan.Steps {
		name, ok := strings.CutPrefix(string(s.Resource), ec2.LaunchTemplateKind+"/")
		if ok && s.Does() && s.Diff.Has("imageId") && !found.Pinned[name] {
			found.Pinned[name], more = true, true
		}
	}
	return more
}

// patience is how long an import waits for the API server.
const patience = 20 * time.Second

// readCluster asks the API server for the configuration of kubeadm and for the Nodes, with the keys
// of the account, those of the options, or those on a machine.
func (i *Imported) readCluster(ctx context.Context, c *cloud.Clients, found *discover.SelfManaged, o cluster.ImportOptions) error {
	keys, given, err := i.clusterKeys(ctx, c, found, o)
	if err != nil {
		return err
	}
	client, err := administrator(c, found.Endpoint(), keys)
	if err == nil {
		found.Config, err = storedConfig(ctx, c, client, found.Endpoint())
	}
	switch {
	case err != nil && given && i.KeysFrom == "":
		return &plan.RefusedError{Reasons: []error{fmt.Errorf("the keys may not be those of cluster %s, because %w", found.Name, err)}}
	case err != nil:
		found.Unread = append(found.Unread, "how kubeadm is configured in the cluster, and labels and taints of Nodes, because "+err.Error())
	default:
		if err := readNodes(ctx, c, client, found.Endpoint(), found); err != nil {
			found.Unread = append(found.Unread, "labels and taints of Nodes, because "+err.Error())
		}
		if err := readCharts(ctx, c, client, found.Endpoint(), found); err != nil {
			found.Unread = append(found.Unread, "Helm charts that runs have installed, because "+err.Error())
		}
	}
	if given {
		if i.keys, err = keys.Secrets(found.Namespace, found.Name); err != nil {
			return err
		}
	}
	if found.Config == nil && found.Marker == nil {
		i.Unknown = append(
			i.Unknown,
			"the network of pods and Services of the cluster is not known, and a run could not add machines: import it with the keys of the cluster",
		)
	}
	return nil
}

// clusterKeys returns the keys of the cluster, and whether they are others than those of the
// account; nil if there are none.
func (i *Imported) clusterKeys(
	ctx context.Context,
	c *cloud.Clients,
	found *discover.SelfManaged,
	o cluster.ImportOptions,
) (keys *boot.PKI, given bool, err error) {
	if keys, err = secrets.StoredPKI(ctx, c); err != nil {
		return nil, false, fmt.Errorf("keys of the cluster: %w", err)
	}
	if keys != nil {
		return keys, false, nil
	}
	files := o.Keys
	if o.KeysFromMachine {
		if files, i.KeysFrom, err = keysOnMachine(ctx, c, found); err != nil {
			i.Unknown = append(i.Unknown, fmt.Sprintf("the keys of the cluster could not be read on its machines: %v", err))
		}
	}
	if len(files) == 0 {
		return nil, false, nil
	}
	if keys, err = givenKeys(files); err != nil {
		return nil, false, &plan.RefusedError{Reasons: []error{err}}
	}
	return keys, true, nil
}

// givenKeys reads the files of /etc/kubernetes/pki.
func givenKeys(files map[string][]byte) (*boot.PKI, error) {
	parts := map[string][]byte{}
	for name, data := range files {
		parts[strings.ReplaceAll(name, "/", "-")] = data
	}
	keys, err := boot.ParsePKI(parts)
	if err != nil {
		return nil, fmt.Errorf("keys of the cluster: %w", err)
	}
	return keys, nil
}

// administrator returns a client of the API server of a self-managed cluster.
func administrator(c *cloud.Clients, endpoint string, keys *boot.PKI) (*kube.Client, error) {
	switch {
	case keys == nil:
		return nil, errors.New("the keys of the cluster are not in this account")
	case endpoint == "":
		return nil, errors.New("the address of its API server is not known")
	}
	return incluster.Administrator(c, endpoint, keys)
}

// storedConfig reads the ConfigMap of kubeadm.
func storedConfig(ctx context.Context, c *cloud.Clients, client *kube.Client, endpoint string) (*boot.ClusterConfig, error) {
	ctx, cancel := c.Clock.WithTimeout(ctx, patience, nil)
	defer cancel()
	var have corev1.ConfigMap
	if err := client.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", &have); err != nil {
		return nil, unasked(endpoint, err)
	}
	return boot.ParseClusterConfig(have.Data["ClusterConfiguration"])
}

// unasked says why an API server cannot be asked.
func unasked(endpoint string, err error) error {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		err = request.Err
	}
	return fmt.Errorf("its API server at %s cannot be asked: %s", endpoint, kube.Reason(err))
}

// selfManagedHead is the comment at the beginning of the manifest.
func selfManagedHead(found *discover.SelfManaged, leftOut []string) []string {
	lines := []string{fmt.Sprintf("Cluster %s in %s, imported with 'clusterawsadm cluster import'.", found.Name, found.Region), ""}
	return slices.Concat(lines, found.Remarks(), leftOutComment(leftOut))
}

// compareTemplates finds the machines that say that they were launched from another template
// than that of the manifest.
func (i *Imported) compareTemplates(l *looking) {
	templates, at := topology.TemplateTags(l.Cluster.Manifest), map[string]int{}
	for _, m := range l.Inventory.Machines {
		group := topology.GroupOf(m.Tags)
		have, want := m.Tags[cloud.TemplateTag], templates[group][cloud.TemplateTag]
		if have == "" || want == "" || have == want {
			continue
		}
		n, known := at[group]
		if !known {
			n, at[group] = len(i.Templates), len(i.Templates)
			i.Templates = append(i.Templates, cluster.TemplateDifference{Group: group})
		}
		d := &i.Templates[n]
		d.Machines++
		if m.Tags[cloud.TemplateFieldsTag] != "" {
			d.Fields = append(d.Fields, topology.RecordedTemplate(m.Tags).Differs(topology.RecordedTemplate(templates[group]))...)
		}
		slices.Sort(d.Fields)
		d.Fields = slices.Compact(d.Fields)
	}
	slices.SortFunc(i.Templates, func(x, y cluster.TemplateDifference) int { return strings.Compare(x.Group, y.Group) })
}

// comparePools finds the pools whose machines do not boot with what the manifest says. Adopt does
// not change that, and a run does.
func (i *Imported) comparePools(ctx context.Context, pools []discover.Pool) error {
	if len(pools) == 0 {
		return nil
	}
	changed, err := i.changedTemplates(ctx)
	for _, p := range pools {
		switch {
		case !changed[ec2.LaunchTemplateKind+"/"+plan.ID(p.Group.ID)]:
		case p.Ours():
			i.Templates = append(i.Templates, cluster.TemplateDifference{Group: p.Group.ID, Pool: true, Machines: len(p.Group.Instances), Fields: []string{"bootstrap"}})
		default:
			i.Later = append(i.Later, p.Group.ID)
		}
	}
	return err
}

// changedTemplates returns the launch templates of which a run with the manifest makes a new
// version because of the boot data.
func (i *Imported) changedTemplates(ctx context.Context) (map[plan.ID]bool, error) {
	later := *i.Cluster
	later.Adopts = false
	l := begin(&later, nil)
	if err := l.Look(ctx); err != nil {
		return nil, err
	}
	changed := map[plan.ID]bool{}
	for _, s := range l.Plan.Steps {
		changed[s.Resource] = s.Diff.Has("bootstrapData")
	}
	return changed, nil
}
