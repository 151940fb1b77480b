package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

type exportOptions struct {
	manifestFlags
	output      destination
	withSecrets bool
}

func newExport(f *flags) *cobra.Command {
	o := &exportOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "export {-f FILE | NAME}",
		Short: "Print the objects with which a management cluster takes over",
		Long: `Print the Cluster API objects with which a management cluster takes a cluster over:
the objects of the manifest, with the IDs of what exists in AWS, and those that
controllers make: Machines, AWSMachines, MachineSets and bootstrap configurations.

The Cluster is paused, so that controllers do nothing yet. When all objects have been
applied, remove its field spec.paused. 'cluster handover' does both.

The objects have no owner references, because those need the UIDs of a management
cluster. Controllers set them.

With NAME, the manifest is made from what exists in AWS, as 'cluster import' does. Notes
say what AWS does not tell: the objects lack it.

The keys of the cluster are only written with --with-secrets, and then every file is
readable only by the user. A management cluster cannot work without them: it would
make other keys, which the machines do not accept.`,
		Example: `  clusterawsadm cluster export -f demo.yaml --to objects --with-secrets
  clusterawsadm cluster export demo --to objects --with-secrets
  clusterawsadm cluster export -f demo.yaml | kubectl diff -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.addManifest(cmd)
	o.output.addTo(cmd, "`FOLDER` to write, with one file for each object; it must be empty or not exist (default: standard output)", "yaml", "json")
	cmd.Flags().BoolVar(&o.withSecrets, "with-secrets", false, "also write the Secrets with the keys and the kubeconfig of the cluster; needs --to")
	_ = cmd.MarkFlagDirname("to") // fails only for an unknown flag
	return cmd
}

func (o *exportOptions) run(ctx context.Context, args []string) (err error) {
	if o.withSecrets && o.output.to == "" {
		return env.Usagef("--with-secrets writes keys, which do not belong on a terminal: use it with --to FOLDER")
	}
	if err := o.checkFolder(); err != nil {
		return err
	}
	c, s, err := o.exported(ctx, args)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	all, err := c.Objects(ctx)
	if err != nil {
		return err
	}
	if !all.Plan.Empty() {
		o.Env.Story("warning: the cluster is not as the manifest says: controllers would change what 'cluster plan' shows")
	}
	objects := pausedObjects(all.Items)
	if o.output.to != "" {
		return o.writeFiles(objects)
	}
	return o.print(objects)
}

// exported opens the cluster of the manifest, or one that is imported.
func (o *exportOptions) exported(ctx context.Context, args []string) (*reconcile.Cluster, *session, error) {
	if len(args) == 0 || len(o.files) > 0 {
		x, err := o.subject(ctx, args, runFlags{})
		if err != nil {
			return nil, nil, err
		}
		return x.cluster, x.session, nil
	}
	i, s, err := o.imported(ctx, args[0], cluster.ImportOptions{})
	if err != nil {
		return nil, nil, err
	}
	o.tellMissing(i)
	return i.Cluster(), s, nil
}

// checkFolder refuses a folder that has something in it.
func (o *exportOptions) checkFolder() error {
	if o.output.to == "" {
		return nil
	}
	found, err := os.ReadDir(o.output.to)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return &env.UsageError{Err: err}
	case len(found) > 0:
		return env.Usagef("%s is not empty: use a new folder", o.output.to)
	}
	return nil
}

// pausedObjects returns the contents of objects, with the Cluster paused.
func pausedObjects(all []cluster.Object) (out []map[string]any) {
	for _, x := range all {
		if spec, ok := x.Content["spec"].(map[string]any); ok && x.Content["kind"] == "Cluster" {
			spec["paused"] = true
		}
		out = append(out, x.Content)
	}
	return out
}

func isSecret(object map[string]any) bool { return object["kind"] == "Secret" }

// print prints all objects but the Secrets.
func (o *exportOptions) print(objects []map[string]any) error {
	all := len(objects)
	objects = slices.DeleteFunc(objects, isSecret)
	if o.output.value == "json" { // as kubectl get -o json
		if err := render.Encode(o.Env.Out, render.JSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}); err != nil {
			return err
		}
		o.tellSecrets(all - len(objects))
		return nil
	}
	data, err := management.Documents(objects)
	if err != nil {
		return err
	}
	if _, err := o.Env.Out.Write(data); err != nil {
		return err
	}
	o.tellSecrets(all - len(objects))
	return nil
}

// writeFiles writes one file for each object.
func (o *exportOptions) writeFiles(objects []map[string]any) error {
	var all []files.File
	left := 0
	for i, x := range objects {
		if isSecret(x) && !o.withSecrets {
			left++
			continue
		}
		data, err := yaml.Marshal(x)
		if err == nil && o.output.value == "json" {
			data, err = json.MarshalIndent(x, "", "  ")
			data = append(data, '\n')
		}
		if err != nil {
			return err
		}
		metadata, _ := x["metadata"].(map[string]any)
		name := fmt.Sprintf("%03d-%v-%v.%s", i+1, x["kind"], metadata["name"], o.output.value) // in the order in which they are applied
		all = append(all, files.File{Name: name, Data: bytes.TrimLeft(data, "\n")})
	}
	if err := files.CreateFolder(o.output.to, all); err != nil {
		return fmt.Errorf("%s: %w", o.output.to, err)
	}
	o.Env.Story("wrote %s to %s; the Cluster is paused", text.Count(len(all), "object"), o.output.to)
	o.tellSecrets(left)
	return nil
}

// tellSecrets says that Secrets were left out.
func (o *exportOptions) tellSecrets(n int) {
	if n > 0 {
		o.Env.Story("left out %s with the keys of the cluster: --with-secrets writes them", text.Count(n, "Secret"))
	}
}
