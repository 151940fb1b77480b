package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// manifestFlags are the flags of commands that read a manifest.
type manifestFlags struct {
	*flags
	input input.Reader

	files       []string
	set         []string
	substitute  choice
	validation  choice
	strict      bool
	cni, addons []string
	charts      []string
	identities  []string
	chosen      string // of several clusters

	setFlag *pflag.Flag // --set
}

// addManifest adds the flags.
func (f *manifestFlags) addManifest(cmd *cobra.Command) {
	f.substitute = choice{value: "auto", of: []string{"auto", "all", "none"}}
	f.validation = choice{value: "strict", of: []string{"strict", "warn"}}
	p := cmd.Flags()
	p.StringArrayVarP(&f.files, "filename", "f", nil, "manifest `FILE`, a directory of manifests, or - for standard input; can be repeated")
	p.StringArrayVar(
		&f.set,
		"set",
		nil,
		"set the ${VARIABLE} KEY of the manifest, as `KEY=VALUE`; overrides the environment; without =VALUE, take the value in the environment; can be repeated",
	)
	f.setFlag = p.Lookup("set")
	p.Var(
		&f.substitute,
		"substitute",
		"in which files ${VARIABLES} are replaced: auto (in templates, which kubectl could not apply as they are; environment variables only for their fields), all, none; --set NAME replaces ${NAME} everywhere",
	)
	complete(cmd, "substitute", f.substitute.of)
	p.Var(&f.validation, "validation", "fields that do not exist are errors (strict), or are ignored with a warning (warn)")
	complete(cmd, "validation", f.validation.of)
	p.StringVar(&f.chosen, "cluster", "", "`NAME` of the cluster, if the manifest has several; NAMESPACE/NAME if two have the same name")
	f.completeChosen(cmd)
	p.BoolVar(&f.strict, "strict", false, "treat warnings about the manifest as errors")
	f.addIdentities(cmd)
}

func (f *manifestFlags) addIdentities(cmd *cobra.Command) {
	cmd.Flags().
		StringArrayVar(&f.identities, "identities", nil, "`FILE` with the identities that the manifest refers to, and their Secrets, or the kubeconfig of a management cluster that has them; can be repeated")
}

// addObjects adds the flags for Kubernetes objects that are not in the manifest.
func (f *manifestFlags) addObjects(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.cni, "cni", nil, "`FILE` with the Kubernetes objects of the pod network, to apply to the cluster; can be repeated")
	cmd.Flags().StringArrayVar(&f.addons, "addon", nil, "`FILE` with Kubernetes objects to apply to the cluster; can be repeated")
	addChartFlag(cmd, &f.charts)
}

// setTyped reports whether --set is on the command line: then its variables must exist.
func (f *manifestFlags) setTyped() bool {
	return f.setFlag != nil && f.setFlag.Changed && env.SettingOf(f.setFlag) == ""
}

// loaded is a manifest that was read.
type loaded struct {
	*reconcile.Manifest
	digest string // of the manifest, its variables and what else is applied
}

// load reads the manifest of one cluster and prints its warnings.
func (f *manifestFlags) load(ctx context.Context) (m loaded, err error) {
	ctx, done := f.whileReading(ctx)
	defer done()
	sources, err := f.manifestSources(ctx)
	if err != nil {
		return m, err
	}
	return f.loadSources(ctx, sources)
}

// manifestSources reads the files of -f, of which there must be one.
func (f *manifestFlags) manifestSources(ctx context.Context) ([]input.Source, error) {
	f.messagesAsRecords()
	if len(f.files) == 0 {
		return nil, env.Usagef("no manifest: use -f FILE, or -f - for standard input")
	}
	return f.sources(ctx)
}

// whileReading returns a context that ends after --timeout also in commands that have no other
// use for it: a manifest may come from a pipe.
func (f *flags) whileReading(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited || f.timeout <= 0 || f.limit != nil {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.timeout, &env.TimeoutError{After: f.timeout})
}

// rolesVariable is the variable with which CAPA's controller makes the IAM roles of EKS
// clusters itself.
const rolesVariable = "CAPA_EKS_IAM"

// loadSources is load for a manifest that is in memory.
func (f *manifestFlags) loadSources(ctx context.Context, sources []input.Source) (m loaded, err error) {
	g, err := f.given(ctx, sources)
	if err != nil {
		return m, err
	}
	manifest, err := reconcile.Load(sources, g.options) //nolint:contextcheck // it reads what is in memory
	if err != nil {
		return m, err
	}
	return f.checked(manifest, g)
}

// given is what a manifest is loaded with.
type given struct {
	sources   []input.Source
	variables map[string]string // of --set
	options   input.LoadOptions
}

// given reads the files of the other flags, and returns the options.
func (f *manifestFlags) given(ctx context.Context, sources []input.Source) (g given, err error) {
	g.sources = sources
	if g.variables, err = f.variables(); err != nil {
		return g, err
	}
	cni, addons, err := f.addedObjects(ctx)
	if err != nil {
		return g, err
	}
	charts, err := f.chartSources(ctx)
	if err != nil {
		return g, err
	}
	identities, err := f.identitySources(ctx)
	if err != nil {
		return g, err
	}
	set := func(name string) (string, bool) {
		value, ok := g.variables[name]
		return value, ok
	}
	roles, err := isTrue(func(name string) (string, bool) {
		if value, ok := set(name); ok {
			return value, true
		}
		return f.Env.LookupEnv(name)
	}, rolesVariable)
	if err != nil {
		return g, err
	}
	g.options = input.LoadOptions{
		Set:          set,
		Lookup:       f.Env.LookupEnv,
		Substitute:   f.substitution(),
		Region:       f.ambientRegion(ctx),
		EKSEnableIAM: roles,
		Strict:       f.strict,
		Cluster:      f.chosen,

		AssumeIdentities: f.assume,

		IgnoreUnknown: f.validation.value == "warn",
		CNI:           cni,
		Addons:        addons,
		Charts:        charts,
		Identities:    identities,
	}
	return g, nil
}

// checked checks the flags against a manifest, and prints its warnings.
func (f *manifestFlags) checked(manifest *reconcile.Manifest, g given) (m loaded, err error) {
	m.Manifest = manifest
	used := maps.Clone(m.Variables())
	if f.setTyped() {
		if err := checkVariables(g.variables, used); err != nil {
			return m, err
		}
	}
	if err := f.move(m.Manifest); err != nil {
		return m, err
	}
	f.remarkRegion(m.Manifest)
	used[rolesVariable] = strconv.FormatBool(g.options.EKSEnableIAM)
	m.digest = digestOf([][]input.Source{g.sources, g.options.CNI, g.options.Addons, g.options.Charts, g.options.Identities}, used)
	f.warnAll(m.Warnings)
	return m, nil
}

// warnAll prints warnings about a manifest. For people, those of one sort are one line.
func (f *manifestFlags) warnAll(warnings []input.Problem) {
	lines := render.Warnings(warnings)
	if f.progress.value == "json" {
		lines = nil
		for _, w := range warnings {
			lines = append(lines, w.String())
		}
	}
	for _, line := range lines {
		f.warn(line)
	}
}

// move changes the region of a cluster to that of --region, with a warning if the
// manifest has another one. A setting is only for manifests without a region.
func (f *manifestFlags) move(m *reconcile.Manifest) error {
	if f.Region == "" || f.Region == m.Region() {
		return nil
	}
	at, object, path := m.RegionField()
	if setting := f.RegionSetting(); setting != "" {
		f.Env.Story("note: using region %s of the manifest (%s %s %s), not %s of %s", m.Region(), at, object, path, f.Region, setting)
		return nil
	}
	what := input.Problem{
		Position: at, Object: object, Path: path,
		What: fmt.Sprintf("the manifest has region %s, and --region overrides it with %s", m.Region(), f.Region),
		Fix:  "use the same region, or omit --region",
	}
	if f.strict {
		return &input.InvalidError{Problems: append(m.Warnings, what)}
	}
	m.Warnings = append(m.Warnings, what)
	m.SetRegion(f.Region)
	return nil
}

// remarkRegion warns if the region in the manifest is not in the list of the SDK: it is misspelled,
// or newer than the list. --strict does not make it an error.
func (f *manifestFlags) remarkRegion(m *reconcile.Manifest) {
	at, object, path := m.RegionField()
	remark := regions.Remark(m.Region())
	if remark == "" || at.File == "" || f.Region != "" && f.RegionSetting() == "" {
		f.RemarkRegion(m.Region())
	} else {
		m.Warnings = append(m.Warnings, input.Problem{Position: at, Object: object, Path: path, What: remark})
	}
	f.Remarked = m.Region()
}

// isTrue parses a boolean variable.
func isTrue(lookup func(string) (string, bool), name string) (bool, error) {
	value, _ := lookup(name)
	if value == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, env.Usagef("%s is %q: it must be true or false", name, value)
	}
	return on, nil
}

// messagesAsRecords prints every message as a JSON record, with --progress json, including
// warnings and errors.
func (f *flags) messagesAsRecords() {
	if f.progress.value == "json" {
		f.Env.RedirectMessages(render.NewNDJSON(f.Env.Err, render.Terminal{}).Note)
	}
}

// variables returns the variables of --set. Those without a value have that of the environment.
func (f *manifestFlags) variables() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range f.set {
		key, value, ok := strings.Cut(s, "=")
		if key == "" {
			return nil, env.Usagef("--set %q: use KEY=VALUE, or KEY for the value in the environment", s)
		}
		if !ok {
			if value, ok = f.Env.LookupEnv(key); !ok {
				return nil, env.Usagef("--set %s: the environment has no %[1]s: use --set %[1]s=VALUE", key)
			}
		}
		out[key] = value
	}
	if len(out) > 0 && f.substitute.value == "none" && f.setTyped() {
		return nil, env.Usagef("--set has no effect with --substitute=none")
	}
	return out, nil
}

// substitution is the value of --substitute.
func (f *manifestFlags) substitution() input.Substitution {
	switch f.substitute.value {
	case "all":
		return input.SubstituteAll
	case "none":
		return input.SubstituteNone
	default:
		return input.SubstituteAuto
	}
}

// checkVariables refuses variables of --set that the manifest does not have.
func checkVariables(variables, used map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if _, ok := used[name]; ok || name == rolesVariable {
			continue
		}
		hint := ""
		if near := suggest.DidYouMean(name, slices.Sorted(maps.Keys(used))); near != "" {
			hint = ": " + near
		}
		return env.Usagef("--set %s: the manifest has no ${%[1]s}%s", name, hint)
	}
	return nil
}

// ambientRegion returns the region for a manifest that has none.
func (f *manifestFlags) ambientRegion(ctx context.Context) string {
	switch {
	case f.Region != "":
		return f.Region
	case f.Simulate:
		return account.DefaultRegion
	}
	cfg, err := f.Env.AWS(ctx, "", f.Profile)
	if err != nil {
		return "" // a missing region is reported where it is used
	}
	return cfg.Region
}

// sources reads the files and directories of -f.
func (f *manifestFlags) sources(ctx context.Context) (out []input.Source, err error) {
	seen := map[string]bool{}
	for _, name := range f.files {
		if name == "" {
			return nil, env.Usagef("-f needs the name of a file")
		}
		files := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if files, err = manifestsIn(name); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			clean := filepath.Clean(file)
			if seen[clean] {
				return nil, env.Usagef("%s is named twice with -f", file)
			}
			seen[clean] = true
			data, err := f.read(ctx, file)
			if err != nil {
				return nil, err
			}
			out = append(out, input.Source{Name: sourceName(file), Data: data})
		}
	}
	return out, nil
}

// sourceName is the name of a file of -f in messages.
func sourceName(file string) string {
	if file == "-" {
		return "stdin"
	}
	return file
}

// addedObjects reads the files of --cni and --addon.
func (f *manifestFlags) addedObjects(ctx context.Context) (cni, addons []input.Source, err error) {
	if cni, err = f.objects(ctx, "cni", f.cni); err != nil {
		return nil, nil, err
	}
	addons, err = f.objects(ctx, "addon", f.addons)
	return cni, addons, err
}

// identitySources reads the files of --identities. If a file is a kubeconfig, the identities
// are read from its cluster.
func (f *manifestFlags) identitySources(ctx context.Context) ([]input.Source, error) {
	out, err := f.objects(ctx, "identities", f.identities)
	if err != nil {
		return nil, err
	}
	for i, s := range out {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(s.Data, &head); err != nil || head.Kind != "Config" || head.APIVersion != "v1" {
			continue
		}
		cluster, err := kube.ConnectTo(s.Name, "")
		if err != nil {
			return nil, err
		}
		if out[i].Data, err = cluster.Identities(ctx, management.DefaultNamespace); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// objects reads the files of a flag.
func (f *manifestFlags) objects(ctx context.Context, flag string, names []string) (out []input.Source, err error) {
	for _, name := range names {
		if name == "-" {
			return nil, env.Usagef("--%s needs a file: standard input is not supported", flag)
		}
		data, err := f.read(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, input.Source{Name: name, Data: data})
	}
	return out, nil
}

// manifestsIn lists the YAML files of a directory.
func manifestsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &env.UsageError{Err: err}
	}
	if err := forOtherTool(dir, entries); err != nil {
		return nil, err
	}
	var files, folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, filepath.Join(dir, e.Name()))
		}
		if !utf8.ValidString(e.Name()) {
			return nil, env.Usagef("%s: the name of the file %q is not UTF-8", dir, e.Name())
		}
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 && len(folders) > 0 {
		return nil, env.Usagef("%s: this directory contains no YAML file, and those in it are not read: pass them with -f, such as -f %s", dir, folders[0])
	}
	if len(files) == 0 {
		return nil, env.Usagef("%s: this directory contains no YAML file", dir)
	}
	return files, nil
}

// forOtherTool refuses a directory whose files another tool makes a manifest of.
func forOtherTool(dir string, entries []os.DirEntry) error {
	for _, e := range entries {
		render := ""
		switch e.Name() {
		case "kustomization.yaml", "kustomization.yml", "Kustomization":
			render = "kustomize build " + dir
		case "Chart.yaml":
			render = "helm template " + dir
		default:
			continue
		}
		return env.Usagef("%s: this directory has a %s: use the result of its tool: %s | clusterawsadm cluster … -f -", dir, e.Name(), render)
	}
	return nil
}

func (f *manifestFlags) read(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		data, err := f.input.ReadContext(ctx, f.Env.Input("the manifest"), "standard input")
		if errors.As(err, new(*input.TooLargeError)) {
			err = &env.UsageError{Err: err}
		}
		return data, err
	}
	data, err := f.input.FileContext(ctx, file)
	switch _, link := os.Lstat(file); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(file, "://"):
		return nil, env.Usagef("%s: addresses are not read: download it first, or use -f -", file)
	case errors.Is(err, fs.ErrNotExist) && link == nil:
		return nil, env.Usagef("%s: this symbolic link leads to a file that does not exist", file)
	case err != nil:
		return nil, &env.UsageError{Err: noSuchFile(file, err)}
	}
	return data, nil
}
