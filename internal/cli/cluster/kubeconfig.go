package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"clusterawsadm/internal/cli/env"
	"clusterawsadm/pkg/eks"
	"clusterawsadm/pkg/reconcile"
)

type kubeconfigOptions struct {
	*flags
	output string
	merge  bool
	method choice
}

func newKubeconfig(f *flags) *cobra.Command {
	o := &kubeconfigOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "kubeconfig {-f FILE | NAME}",
		Short: "Get an administrator's kubeconfig",
		Long: `Get an administrator's kubeconfig. That of a self-managed cluster is a secret:
whoever has it is master of the cluster. In that of an EKS cluster there is none:
kubectl asks a program for a token, this one unless another is named.`,
		Example: `  clusterawsadm cluster kubeconfig demo --region us-east-1 --merge
  clusterawsadm cluster kubeconfig -f demo.yaml -o demo.kubeconfig`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "-", "`FILE` to write, for the user's eyes only; - is standard output")
	cmd.Flags().BoolVar(&o.merge, "merge", false, "add it to $KUBECONFIG, or else ~/.kube/config, and make it the current context")
	o.method = choice{string(eks.Clusterawsadm), []string{string(eks.Clusterawsadm), string(eks.AWSCLI), string(eks.IAMAuthenticator)}}
	cmd.Flags().Var(&o.method, "token-method", "program that makes tokens for an EKS cluster: "+strings.Join(o.method.of, ", "))
	complete(cmd, "token-method", o.method.of)
	return cmd
}

func (o *kubeconfigOptions) run(ctx context.Context, args []string) (err error) {
	ctx, cancel := o.within(ctx)
	defer cancel()
	c, s, err := o.subject(ctx, args)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	data, err := c.Kubeconfig(ctx, reconcile.KubeconfigOptions{Profile: o.Profile, Method: o.method.value})
	switch {
	case err != nil:
		return err
	case o.merge:
		return o.mergeInto(o.file(), data)
	case o.output == "-":
		_, err = o.Env.Out.Write(data)
		return err
	}
	if err := write(o.output, data); err != nil {
		return err
	}
	o.Env.Story("wrote %s", o.output)
	return nil
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

// mergeInto adds a kubeconfig to a file, in place of what has the same names.
func (o *kubeconfigOptions) mergeInto(file string, data []byte) error {
	added, err := clientcmd.Load(data)
	if err != nil {
		return err
	}
	all, err := clientcmd.LoadFromFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		all = api.NewConfig()
	case err != nil:
		return &env.UsageError{Err: err}
	}
	for name, c := range added.Clusters {
		all.Clusters[name] = c
	}
	for name, u := range added.AuthInfos {
		all.AuthInfos[name] = u
	}
	for name, c := range added.Contexts {
		all.Contexts[name] = c
	}
	all.CurrentContext = added.CurrentContext
	out, err := clientcmd.Write(*all)
	if err != nil {
		return err
	}
	if err := write(file, out); err != nil {
		return err
	}
	o.Env.Story("context %q is now the current one in %s", all.CurrentContext, file)
	return nil
}

// write replaces a file, all of it or nothing, with one that nobody but the
// user can read. A link stays a link.
func write(file string, data []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("kubeconfig: %w", err), os.Remove(f.Name()))
	}
	return nil
}
