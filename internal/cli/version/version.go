// Package version has the version command, and the build information of the binary.
package version

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

//nolint:gochecknoglobals // set by the linker: -X github.com/clusterawsadm/clusterawsadm/internal/cli/version.gitVersion=v1.2.3
var gitVersion string

// Info is the build information of the binary. The first fields and their order are those
// of Cluster API Provider AWS's clusterawsadm; the fields of this program come last.
type Info struct {
	Major         string `json:"major,omitempty"`
	Minor         string `json:"minor,omitempty"`
	GitVersion    string `json:"gitVersion,omitempty"`
	GitCommit     string `json:"gitCommit,omitempty"`
	GitTreeState  string `json:"gitTreeState,omitempty"` // "clean" or "dirty"
	BuildDate     string `json:"buildDate,omitempty"`
	GoVersion     string `json:"goVersion,omitempty"`
	AwsSdkVersion string `json:"awsSdkVersion,omitempty"`
	Compiler      string `json:"compiler,omitempty"`
	Platform      string `json:"platform,omitempty"`

	// UpstreamVersion is the version of Cluster API Provider AWS's clusterawsadm that
	// this program is compatible with.
	UpstreamVersion string `json:"upstreamVersion,omitempty"`
}

// Upstream is the version that docs/compatibility.md compares with.
const Upstream = "v2.13.0"

// String is the output of --version: version, commit and the version of upstream.
func (i Info) String() string {
	text := cmp.Or(i.GitVersion, "unknown")
	if i.GitCommit != "" {
		text += ", commit " + i.GitCommit
	}
	return text + ", compatible with clusterawsadm " + i.UpstreamVersion
}

// document is the structure of the JSON and YAML output.
type document struct {
	Provider Info `json:"awsProviderVersion"`
}

// Get returns the information from the linker and the build.
func Get() Info {
	i := Info{
		GitVersion: gitVersion,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,

		UpstreamVersion: Upstream,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	if i.GitVersion == "" && build.Main.Version != "(devel)" {
		i.GitVersion = build.Main.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.GitCommit = s.Value
		case "vcs.time":
			i.BuildDate = s.Value
		case "vcs.modified":
			i.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	for _, d := range build.Deps {
		if d.Path == "github.com/aws/aws-sdk-go-v2" {
			i.AwsSdkVersion = d.Version
		}
	}
	if rev, err := module.PseudoVersionRev(build.Main.Version); err == nil && i.GitCommit == "" {
		i.GitCommit = rev // installed from a module proxy: the first 12 digits
	}
	numbers := strings.SplitN(strings.TrimPrefix(i.GitVersion, "v"), ".", 3)
	if len(numbers) == 3 {
		i.Major, i.Minor = numbers[0], numbers[1]
	}
	return i
}

// New returns the version command.
func New(e *env.Env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of clusterawsadm",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return Print(e.Out, output, e.Program, Get())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: short, json or yaml")
	return cmd
}

// plugin is the name of the program as a plugin of clusterctl.
const plugin = "clusterctl-aws"

// Print prints the information in one of the formats "", "short", "json" and "yaml".
// program is the name with which the process was started.
func Print(w io.Writer, output, program string, i Info) error {
	var err error
	switch output {
	case "":
		if program != plugin {
			program = "clusterawsadm"
		}
		_, err = fmt.Fprintf(w, "%s version: %#v\n", program, &i)
	case "short":
		_, err = fmt.Fprintln(w, i.GitVersion)
	case "json":
		err = render.Encode(w, render.JSON, document{i})
	case "yaml":
		if err = render.Encode(w, render.YAML, document{i}); err == nil {
			_, err = fmt.Fprintln(w) // always in this format
		}
	default:
		err = env.Usagef("invalid output format: %s", output)
	}
	return err
}
