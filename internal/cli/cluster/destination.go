package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// destination is where a command writes its result, --to, and the format of it, -o. Until 0.1, -o was the place: that
// still works for one release, with a warning.
type destination struct {
	choice

	to  string // "" for the default
	old string // the place, as the value of -o
}

// addTo adds both flags. what describes the place, with its `KIND`. The first format is the default; a single one
// has no flag in the help.
func (p *destination) addTo(cmd *cobra.Command, what string, formats ...string) {
	p.choice = choice{value: formats[0], of: formats}
	cmd.Flags().Var((*fileName)(&p.to), "to", what)
	cmd.Flags().VarP(p, "output", "o", "output format: "+strings.Join(formats, ", "))
	cmd.Flags().Lookup("output").Hidden = len(formats) == 1
	complete(cmd, "output", formats)
}

// fileName is the value of a flag that takes the name of a file.
type fileName string

// String implements pflag.Value.
func (n *fileName) String() string { return string(*n) }

// Type implements pflag.Value.
func (n *fileName) Type() string { return "string" }

// Set implements pflag.Value.
func (n *fileName) Set(v string) error {
	if v == "" {
		return errors.New("it needs a name")
	}
	*n = fileName(v)
	return nil
}

// Set implements pflag.Value.
func (p *destination) Set(v string) error {
	switch {
	case v == "":
		return fmt.Errorf("must be one of %s", strings.Join(p.of, ", "))
	case slices.Contains(p.of, v):
		p.value = v
	case slices.Contains(formatWords(), v):
		return fmt.Errorf("must be one of %s; --to %s writes a file of that name", strings.Join(p.of, ", "), v)
	default:
		p.old = v
	}
	return nil
}

// SetFormat sets the value of a setting, which is a format, and no place.
func (p *destination) SetFormat(v string) error { return p.choice.Set(v) }

// formatWords are the formats of all commands: no file is meant by them.
func formatWords() []string {
	return []string{"text", "wide", "name", "table", "json", "yaml", "mermaid", "dot", "svg", "html", "markdown", "short"}
}

// settle implements settled.
func (p *destination) settle(*pflag.Flag) (warning string) {
	if p.old == "" || p.to != "" {
		return ""
	}
	p.to = p.old
	return fmt.Sprintf("-o %s: use --to %[1]s; the next release takes a format only", env.Shell([]string{p.old}))
}

// conflict is the error for two places.
func (p *destination) conflict() error {
	if p.old != "" && p.to != "" && p.to != p.old {
		return env.Usagef("-o: must be one of %s, is %s; --to names the place", strings.Join(p.of, ", "), p.old)
	}
	return nil
}

// oldName is a flag under the name that it had in releases before.
type oldName struct {
	pflag.Value

	now  string
	used bool
}

// addOldName accepts a flag under another name, with a warning.
func addOldName(cmd *cobra.Command, name, now string) {
	f := cmd.Flags().Lookup(now)
	cmd.Flags().Var(&oldName{Value: f.Value, now: now}, name, f.Usage)
	cmd.Flags().Lookup(name).Hidden = true
}

// Set implements pflag.Value.
func (o *oldName) Set(v string) error {
	o.used = true
	return o.Value.Set(v)
}

// settle implements settled.
func (o *oldName) settle(f *pflag.Flag) (warning string) {
	if !o.used {
		return ""
	}
	return fmt.Sprintf("--%s is --%s now; the next release does not take the old name", f.Name, o.now)
}

// settle implements settled.
func (c *choice) settle(f *pflag.Flag) (warning string) {
	if c.given == "" {
		return ""
	}
	return fmt.Sprintf("--%s=%s is --%[1]s=%[3]s now; the next release does not take the old word", f.Name, c.given, c.value)
}

// settled is the value of a flag that has something to say when all flags are parsed.
type settled interface {
	settle(f *pflag.Flag) (warning string)
}

// settle lets the flags of a command say what they have to.
func (f *flags) settle(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(one *pflag.Flag) {
		v, is := one.Value.(settled)
		if !is || err != nil {
			return
		}
		if both, is := v.(interface{ conflict() error }); is {
			err = both.conflict()
		}
		if warning := v.settle(one); warning != "" && err == nil {
			f.warn(warning)
		}
	})
	return err
}
