// Package kube opens the management cluster of a command.
package kube

import (
	"path/filepath"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
)

// Flags select the management cluster.
type Flags struct {
	Env *env.Env

	kubeconfig, context string
	byDefault           string // the default of --kubeconfig
	flag                *pflag.Flag
}

// Add defines the flags.
func (f *Flags) Add(p *pflag.FlagSet) {
	p.StringVar(&f.kubeconfig, "kubeconfig", f.byDefault, "kubeconfig `FILE` of the management cluster; if not set, $KUBECONFIG, then ~/.kube/config")
	f.flag = p.Lookup("kubeconfig")
	p.StringVar(&f.context, "kubeconfig-context", "", "`NAME` of the context to use (default: the current one)")
}

// DefaultToHome shows the file in the user's home directory as the default of
// --kubeconfig, as upstream's gc commands do.
func (f *Flags) DefaultToHome() { f.byDefault = f.inHome() }

// inHome returns the default path of kubectl's configuration; "" without a home
// directory.
func (f *Flags) inHome() string {
	if f.Env.HomeDir == "" {
		return ""
	}
	return filepath.Join(f.Env.HomeDir, ".kube", "config")
}

// Connect opens the management cluster. It makes no call.
func (f *Flags) Connect() (*management.Cluster, error) {
	o := management.Options{Context: f.context, UserAgent: UserAgent()}
	if f.given() {
		o.Kubeconfig = f.kubeconfig
		return management.Connect(o)
	}
	if list := f.Env.Getenv("KUBECONFIG"); list != "" {
		o.Files = filepath.SplitList(list)
	} else if home := f.inHome(); home != "" {
		o.Files = []string{home}
	}
	return management.Connect(o)
}

// ConnectTo opens the management cluster of a kubeconfig, in one of its contexts; "" is the
// current one. It makes no call.
func ConnectTo(kubeconfig, context string) (*management.Cluster, error) {
	return management.Connect(management.Options{Kubeconfig: kubeconfig, Context: context, UserAgent: UserAgent()})
}

// UserAgent is what requests to a management cluster say about this program.
func UserAgent() string {
	return "clusterawsadm/" + version.Get().GitVersion + " (" + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

// given reports whether --kubeconfig is on the command line, so that no other file is
// used.
func (f *Flags) given() bool { return f.kubeconfig != "" && f.flag.Changed }

// Args returns the flags for the command line of another command for the same cluster.
func (f *Flags) Args() (words []string) {
	if f.given() {
		words = append(words, "--kubeconfig", f.kubeconfig)
	}
	if f.context != "" {
		words = append(words, "--kubeconfig-context", f.context)
	}
	return words
}
