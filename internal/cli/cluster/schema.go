package cluster

import (
	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

func newSchema(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of manifests, for editors",
		Long: `Print the JSON Schema of manifests (draft-07): all kinds that a manifest may have, with
the descriptions of their fields, what this program ignores or refuses, and its
annotations.

Editors complete, explain and check a manifest with it: VS Code with the extension YAML of
Red Hat, IntelliJ, and all with yaml-language-server. 'cluster generate' writes the
comment that they look for into each document. The comment may name a file, too, such as
one that this command has printed:

  # yaml-language-server: $schema=./schema.json

The schema works with every validator for JSON Schema. 'cluster validate' finds more: it
also checks what depends on other objects.`,
		Example: `  clusterawsadm cluster schema > schema.json
  clusterawsadm cluster generate demo --schema ./schema.json > demo.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := schema.JSON()
			if err != nil {
				return err
			}
			_, err = f.Env.Out.Write(text)
			return err
		},
	}
}
