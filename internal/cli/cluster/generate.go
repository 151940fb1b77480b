package cluster

import (
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"clusterawsadm/configs"
	"clusterawsadm/internal/cli/env"
)

type generateOptions struct {
	*flags
	flavor choice
}

func newGenerate(f *flags) *cobra.Command {
	o := &generateOptions{flags: f, flavor: choice{"quickstart", flavors()}}
	cmd := &cobra.Command{
		Use:   "generate NAME",
		Short: "Print a manifest to start from",
		Example: `  clusterawsadm cluster generate demo > demo.yaml
  clusterawsadm cluster generate demo --region eu-west-1 | clusterawsadm cluster create -f - --simulate --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	cmd.Flags().Var(&o.flavor, "flavor", "what kind of cluster: "+strings.Join(o.flavor.of, ", "))
	complete(cmd, "flavor", o.flavor.of)
	return cmd
}

// flavors are the names of the manifests in configs.
func flavors() (out []string) {
	files, _ := fs.Glob(configs.Manifests, "*.yaml") // the pattern is well-formed
	for _, f := range files {
		out = append(out, strings.TrimSuffix(f, ".yaml"))
	}
	return out
}

func (o *generateOptions) run(name string) error {
	if len(name) > 63 || !regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`).MatchString(name) {
		return env.Usagef("%q cannot be the name of a cluster: it has to begin with a letter and may have lower-case letters, digits and dashes, 63 at most", name)
	}
	data, err := configs.Manifests.ReadFile(o.flavor.value + ".yaml")
	if err != nil {
		return err
	}
	_, err = o.Env.Out.Write([]byte(personal(string(data), name, o.Region)))
	return err
}

// personal returns a manifest with the cluster's name, and its region if there
// is one, in place of those it has, wherever names are. An example may be named
// after what else is in it: a field, a value.
func personal(text, name, region string) string {
	old := regexp.MustCompile(`(?m)^kind: Cluster\nmetadata:\n(?:  .*\n)*?  name: (\S+)$`).FindStringSubmatch(text)
	if old == nil {
		return text
	}
	named := regexp.MustCompile(`^(\s*(?:- )?(?:name|Name|clusterName|cluster\.x-k8s\.io/cluster-name): (?:\$\{\w+:=cluster-api-provider-aws-)?)` + regexp.QuoteMeta(old[1]) + `\b`)
	place := regexp.MustCompile(`^(\s+region:) \S+$`)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			line = named.ReplaceAllString(line, "${1}"+name)
			if region != "" {
				line = place.ReplaceAllString(strings.TrimSuffix(line, "\n"), "$1 "+region) + "\n"
			}
		}
		b.WriteString(line)
	}
	return b.String()
}
