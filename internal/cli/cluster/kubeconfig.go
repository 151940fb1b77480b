package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/eks"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type kubeconfigOptions struct {
	manifestFlags
	output       destination
	merge, renew bool
	method       choice
}

func newKubeconfig(f *flags) *cobra.Command {
	o := &kubeconfigOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "kubeconfig {-f FILE | NAME}",
		Short: "Get the kubeconfig of an administrator",
		Long: `Get the kubeconfig of an administrator of a cluster.

The kubeconfig of a self-managed cluster is a secret: it gives full control of the
cluster. Its certificate is valid for one year. A file that has a certificate for
this cluster is not changed until half of that year is over.

The kubeconfig of an EKS cluster contains no secret: kubectl runs a program to get a
token: that of --token-method, or else tokenMethod of the AWSManagedControlPlane, or
else clusterawsadm.`,
		Example: `  clusterawsadm cluster kubeconfig demo --region us-east-1 --merge
  clusterawsadm cluster kubeconfig -f demo.yaml --to demo.kubeconfig`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("token-method") {
				o.method.value = "" // as in the manifest
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.addManifest(cmd)
	o.output.addTo(cmd, "`FILE` to write, readable only by the user (default: standard output)", "yaml", "json")
	cmd.Flags().
		BoolVar(&o.merge, "merge", false, "merge it into $KUBECONFIG, or else ~/.kube/config, and make it the current context, unless the cluster is simulated")
	cmd.Flags().BoolVar(&o.renew, "renew", false, "create a new certificate, even if the one in the file is still valid")
	o.method = choice{value: string(eks.Clusterawsadm), of: []string{string(eks.Clusterawsadm), string(eks.AWSCLI), string(eks.IAMAuthenticator)}}
	cmd.Flags().Var(&o.method, "token-method", "program that creates tokens for an EKS cluster: "+strings.Join(o.method.of, ", "))
	complete(cmd, "token-method", o.method.of)
	return cmd
}

func (o *kubeconfigOptions) run(ctx context.Context, args []string) (err error) {
	file, _, err := o.target() //nolint:contextcheck // a kubeconfig is read at once
	if err != nil {
		return err
	}
	x, err := o.subject(ctx, args, runFlags{})
	if err != nil {
		return err
	}
	defer x.end(ctx, &err)
	c, s := x.cluster, x.session
	data, err := c.Kubeconfig(ctx, cluster.KubeconfigOptions{Profile: o.Profile, Method: o.method.value})
	if errors.Is(err, cluster.ErrNotFound) {
		return o.notFound(c.Name, c.Region)
	}
	if err != nil {
		return err
	}
	made, err := clientcmd.Load(data)
	if err != nil {
		return err
	}
	if file == "" {
		if data, err = o.encoded(data); err == nil {
			_, err = o.Env.Out.Write(data)
		}
		o.printExpiry(made, "valid")
		if o.Simulate {
			o.unreachable()
		}
		return err
	}
	return o.change(ctx, file, made, s.Clock.Now())
}

// encoded returns a kubeconfig in the format of -o.
func (o *kubeconfigOptions) encoded(data []byte) ([]byte, error) {
	if o.output.value != "json" {
		return data, nil
	}
	data, err := yaml.YAMLToJSON(data)
	return append(data, '\n'), err
}

// change changes the file while no other program does: it may have changed since it was read
// first.
func (o *kubeconfigOptions) change(ctx context.Context, file string, made *api.Config, now time.Time) error {
	unlock, err := files.Lock(ctx, file, func(text string) { o.Env.Story("%s", text) })
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	defer unlock()
	defer o.Env.OnExit(unlock)()
	_, old, err := o.target() //nolint:contextcheck // a kubeconfig is read at once
	if err != nil {
		return err
	}
	return o.put(file, old, made, now)
}

// target returns the file to write, and its content: nil if it does not exist. The
// file is "" for standard output.
func (o *kubeconfigOptions) target() (file string, old *api.Config, err error) {
	switch {
	case o.merge && o.place() != "":
		return "", nil, env.Usagef("use --merge or --to, not both")
	case o.merge:
		if file = o.file(); !filepath.IsAbs(file) && o.Env.HomeDir == "" && o.Env.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
			return "", nil, env.Usagef("--merge: the home directory is unknown: set KUBECONFIG or HOME, or use --to FILE")
		}
	case o.place() != "":
		file = o.place()
	default:
		return "", nil, nil
	}
	old, err = loadKubeconfig(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil, nil
	case errors.As(err, new(*fs.PathError)):
		return file, nil, &env.UsageError{Err: err}
	case err != nil: // the error may contain secrets of the file
		return file, nil, env.Usagef("%s exists and is not a kubeconfig: fix it, or use another file", file)
	}
	return file, old, nil
}

// place is the file of --to; "" for standard output.
func (o *kubeconfigOptions) place() string {
	if o.output.to == "-" {
		return ""
	}
	return o.output.to
}

// loadKubeconfig reads a file that will be overwritten: it must be a kubeconfig, or
// empty. (clientcmd accepts any YAML without a kind.)
func loadKubeconfig(file string) (*api.Config, error) {
	data, err := new(input.Reader).File(file)
	if err != nil {
		return nil, err
	}
	var is struct {
		APIVersion, Kind          string
		Clusters, Contexts, Users any
	}
	if err := yaml.Unmarshal(data, &is); err != nil {
		return nil, err
	}
	switch unnamed := is.Clusters != nil || is.Contexts != nil || is.Users != nil; {
	case len(bytes.TrimSpace(data)) == 0, is.APIVersion == "v1" && is.Kind == "Config":
	case is.Kind != "":
		return nil, fmt.Errorf("it is %s %s", is.APIVersion, is.Kind)
	case !unnamed:
		return nil, errors.New("it has neither clusters nor users")
	}
	return clientcmd.LoadFromFile(file)
}

// put writes the new kubeconfig to a file, unless the certificate in the file is still
// valid.
func (o *kubeconfigOptions) put(file string, old, made *api.Config, now time.Time) error {
	kept, why := o.kept(old, made, now)
	if kept != nil {
		if old.CurrentContext == made.CurrentContext || o.merge && o.Simulate {
			o.printExpiry(kept, file+" is not changed: its certificate for this cluster is valid")
			return nil
		}
		made = kept
	}
	out := made
	if o.merge {
		out = merged(old, made, !o.Simulate)
	}
	data, err := clientcmd.Write(*out)
	if err == nil {
		data, err = o.encoded(data)
	}
	if err != nil {
		return err
	}
	if err := files.Replace(file, data, files.Private); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	o.wrote(file, made.CurrentContext)
	switch {
	case kept != nil:
		o.printExpiry(made, "the certificate is not changed: it is valid")
	case why != "":
		o.printExpiry(made, "renewed the certificate ("+why+"): valid")
	default:
		o.printExpiry(made, "its certificate is valid")
	}
	if o.Simulate {
		o.unreachable()
	}
	return nil
}

// wrote says what is in the file now.
func (o *kubeconfigOptions) wrote(file, context string) {
	switch {
	case !o.merge:
		o.Env.Story("wrote %s", file)
	case o.Simulate:
		o.Env.Story("added the context %q to %s; the current context is not changed, because the cluster is simulated", context, file)
	default:
		o.Env.Story("context %q is now the current one in %s", context, file)
	}
}

// unreachable warns of the kubeconfig of a simulated cluster.
func (o *kubeconfigOptions) unreachable() {
	o.Env.Story("warning: the API server of a simulated cluster does not exist: kubectl cannot connect to it")
}

// kept returns the new kubeconfig with the certificate that the file has for the same
// cluster; nil and the reason if it cannot be used; nil and "" if there is none.
func (o *kubeconfigOptions) kept(old, made *api.Config, now time.Time) (_ *api.Config, why string) {
	if old == nil {
		return nil, ""
	}
	context := made.Contexts[made.CurrentContext]
	cluster, user := made.Clusters[context.Cluster], old.AuthInfos[context.AuthInfo]
	if user == nil || len(user.ClientCertificateData) == 0 {
		return nil, ""
	}
	_, why = reconcile.CertificateExpiry(user.ClientCertificateData, user.ClientKeyData, cluster.CertificateAuthorityData, now)
	had, hadContext := old.Clusters[context.Cluster], old.Contexts[made.CurrentContext]
	switch {
	case o.renew:
		return nil, "--renew"
	case why != "":
		return nil, why
	case had == nil || had.Server != cluster.Server || !bytes.Equal(had.CertificateAuthorityData, cluster.CertificateAuthorityData):
		return nil, "the address or the CA of the cluster has changed"
	case hadContext == nil || hadContext.Cluster != context.Cluster || hadContext.AuthInfo != context.AuthInfo:
		return nil, "the context has changed"
	}
	kept := made.DeepCopy()
	kept.AuthInfos[context.AuthInfo], kept.Clusters[context.Cluster], kept.Contexts[made.CurrentContext] = user, had, hadContext
	return kept, ""
}

// printExpiry prints until when the certificate of a kubeconfig is valid, if it has one.
func (o *kubeconfigOptions) printExpiry(c *api.Config, what string) {
	for _, user := range c.AuthInfos {
		if pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err == nil {
			o.Env.Story("%s until %s", what, pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
		}
	}
}

// file is the kubeconfig that kubectl changes: the first of $KUBECONFIG, or
// the one in the home directory.
func (o *kubeconfigOptions) file() string {
	for _, file := range filepath.SplitList(o.Env.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if file != "" {
			return file
		}
	}
	return filepath.Join(o.Env.HomeDir, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)
}

// merged adds a kubeconfig to that of a file, and replaces entries of the same names. If
// it is to be used, its context becomes the current one.
func merged(all, added *api.Config, used bool) *api.Config {
	if all == nil {
		all = api.NewConfig()
	}
	maps.Copy(all.Clusters, added.Clusters)
	maps.Copy(all.AuthInfos, added.AuthInfos)
	maps.Copy(all.Contexts, added.Contexts)
	if used {
		all.CurrentContext = added.CurrentContext
	}
	return all
}
