package cluster

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// formats is the value of an output flag that takes a JSONPath expression, too.
type formats struct {
	choice
	path *render.Path // nil for another format
}

// pathPrefix begins the value of a JSONPath expression.
const pathPrefix = "jsonpath="

// Set implements pflag.Value.
func (f *formats) Set(v string) error {
	expression, is := strings.CutPrefix(v, pathPrefix)
	if !is {
		f.path = nil
		if !slices.Contains(f.of, v) {
			return fmt.Errorf("must be one of %s, %sEXPRESSION", strings.Join(f.of, ", "), pathPrefix)
		}
		f.value = v
		return nil
	}
	path, err := render.ParsePath(expression)
	if err != nil {
		return err
	}
	f.value, f.path = "jsonpath", path
	return nil
}

// addTo adds the flag; the first format is the default.
func (f *formats) addTo(cmd *cobra.Command, of ...string) {
	f.choice = choice{value: of[0], of: of}
	cmd.Flags().VarP(f, "output", "o", "output format: "+strings.Join(of, ", ")+", "+pathPrefix+"EXPRESSION (as in kubectl, of the JSON document)")
	complete(cmd, "output", append(slices.Clone(of), pathPrefix))
}

// encode prints a document if the format is one for programs, and reports whether it is.
func (f *formats) encode(w io.Writer, document any) (is bool, err error) {
	switch {
	case f.path != nil:
		return true, f.path.Print(w, document)
	case f.value == "json" || f.value == "yaml":
		return true, render.Encode(w, render.Format(f.value), document)
	}
	return false, nil
}

// printNames prints a name in each line.
func printNames[T any](w io.Writer, all []T, name func(T) string) error {
	var b strings.Builder
	for _, x := range all {
		b.WriteString(name(x) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
