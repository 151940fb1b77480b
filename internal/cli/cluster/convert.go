package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

type convertOptions struct {
	manifestFlags
	output       destination
	write, check bool
}

func newConvert(f *flags) *cobra.Command {
	o := &convertOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Convert a manifest of an older API version to v1beta2",
		Long: `Convert a manifest of an older API version to v1beta2: objects of Cluster API and of its
provider for AWS in v1alpha3, v1alpha4 and v1beta1. Cluster API stops to serve v1beta1.

The text stays as it is: comments, order, quotes, line ends, and the ${VARIABLES} of a
template. Only what v1beta2 has in another place, or under another name, is moved. The
cluster stays the same: 'cluster plan' shows no changes.

The result goes to standard output, to FILE with --to, or with --write to the files
that it comes from. A line on standard error says what has no place in v1beta2, or another
meaning. A result that is converted again does not change.

Exit codes: 0 if the result is complete, also if nothing is to be converted; 2 with
--check if something is; 3 if a file cannot be read, or if there are such lines with
--strict: then nothing is written.`,
		Example: `  clusterawsadm cluster convert -f old.yaml > new.yaml
  clusterawsadm cluster convert -f clusters/ --write
  clusterawsadm cluster convert -f clusters/ --check`,
		Args: manifestOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	p.StringArrayVarP(&o.files, "filename", "f", nil, "manifest `FILE`, a directory of manifests, or - for standard input; can be repeated")
	o.output.addTo(cmd, "`FILE` for the result; it is not overwritten (default: standard output)", "yaml")
	p.BoolVarP(&o.write, "write", "w", false, "write the result to the files that it comes from")
	p.BoolVar(&o.check, "check", false, "write nothing; exit code 2 if an object is of an older API version")
	p.BoolVar(&o.strict, "strict", false, "treat what has no place in v1beta2, or another meaning, as an error")
	return cmd
}

// converted is one file and its conversion.
type converted struct {
	input.Source

	*convert.Result
}

func (o *convertOptions) run(ctx context.Context) error {
	o.messagesAsRecords()
	if err := o.checkFlags(); err != nil {
		return err
	}
	ctx, done := o.whileReading(ctx)
	defer done()
	sources, err := o.sources(ctx)
	if err != nil {
		return err
	}
	all, err := o.convert(sources)
	if err != nil {
		return err
	}
	count := 0
	for _, c := range all {
		count += c.Converted
		for _, n := range c.Notes {
			o.Env.Story("note: %s", n)
		}
	}
	switch {
	case o.check:
		return o.report(all, count)
	case o.write:
		err = o.replace(all)
	case o.output.to != "":
		err = o.writeTo(ctx, joined(all))
	default:
		_, err = o.Env.Out.Write(joined(all))
	}
	if err == nil {
		o.Env.Story("%s converted to v1beta2", text.Count(count, "object"))
	}
	return err
}

func (o *convertOptions) checkFlags() error {
	switch {
	case len(o.files) == 0:
		return env.Usagef("no manifest: use -f FILE, or -f - for standard input")
	case o.output.to != "" && (o.write || o.check), o.write && o.check:
		return env.Usagef("--to, --write and --check exclude each other")
	}
	return checkWritable("to", o.output.to)
}

// convert converts the files. Problems of all of them are one error.
func (o *convertOptions) convert(sources []input.Source) (all []converted, err error) {
	var wrong input.InvalidError
	for _, s := range sources {
		r, err := convert.File(s.Name, s.Data)
		if err != nil {
			var invalid *input.InvalidError
			if !errors.As(err, &invalid) {
				return nil, err
			}
			wrong.Problems = append(wrong.Problems, invalid.Problems...)
			continue
		}
		if o.strict {
			wrong.Problems = append(wrong.Problems, r.Notes...)
		}
		all = append(all, converted{s, r})
	}
	if len(wrong.Problems) > 0 {
		return nil, &wrong
	}
	return all, nil
}

// report is the result of --check.
func (o *convertOptions) report(all []converted, count int) error {
	if count == 0 {
		return nil
	}
	for _, c := range all {
		if c.Converted > 0 {
			if _, err := fmt.Fprintf(o.Env.Out, "%s: %s of an older API version\n", c.Name, text.Count(c.Converted, "object")); err != nil {
				return err
			}
		}
	}
	return env.ErrChanges
}

// replace writes the results to the files that they come from. A file that does not change is not
// written.
func (o *convertOptions) replace(all []converted) error {
	for _, c := range all {
		if c.Name == sourceName("-") {
			return env.Usagef("--write needs files: standard input is not one")
		}
	}
	for _, c := range all {
		if bytes.Equal(c.Data, c.Text) {
			continue
		}
		mode := files.Private
		if info, err := os.Stat(c.Name); err == nil {
			mode = info.Mode().Perm()
		}
		if err := files.Replace(c.Name, c.Text, mode); err != nil {
			return err
		}
		o.Env.Story("%s is converted", c.Name)
	}
	return nil
}

// writeTo writes the result to the file of --to.
func (o *convertOptions) writeTo(ctx context.Context, content []byte) error {
	same, err := isWritten(ctx, o.output.to, content)
	if err != nil || same {
		return err
	}
	return files.Replace(o.output.to, content, files.Private)
}

// joined returns the results as one text, as YAML documents.
func joined(all []converted) []byte {
	var b bytes.Buffer
	for i, c := range all {
		if i > 0 && !bytes.HasPrefix(c.Text, []byte("---")) {
			b.WriteString("---\n")
		}
		b.Write(c.Text)
		if i < len(all)-1 && len(c.Text) > 0 && !bytes.HasSuffix(c.Text, []byte("\n")) {
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}
