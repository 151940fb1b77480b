// Package loader reads the files of a manifest and returns a manifest.Cluster, or all problems of the files with their
// lines.
package loader

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/go-logr/logr"
	capafeature "sigs.k8s.io/cluster-api-provider-aws/v2/feature"
	capifeature "sigs.k8s.io/cluster-api/feature"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Load reads a manifest: it substitutes variables, validates each document against the
// schema of its kind, sets defaults, converts to the newest API version, applies the
// rules of the webhooks, and resolves references. For invalid input the error is an
// *InvalidError with all problems.
func Load(sources []input.Source, o input.LoadOptions) (*manifest.Cluster, error) {
	if err := openGates(); err != nil {
		return nil, err
	}
	l := newLoader(o)
	l.readIdentities(o.Identities)
	l.read(sources)
	l.readCharts(o.Charts)
	for _, f := range o.CNI {
		l.readFile(f, true)
	}
	for _, f := range o.Addons {
		l.readFile(f, false)
	}
	l.ignoreMade()
	l.placeClusters()
	l.choose()
	if l.refusesForeign() {
		return nil, &manifest.InvalidError{Problems: sortProblems(l.inTexts(l.problems), sources)}
	}
	for _, o := range l.objects {
		l.placeholders(o)
		l.warnGone(o)
	}
	l.expandTopology(valueContext())
	l.admitAll(valueContext())
	l.assemble()
	l.problems = append(l.problems, l.unset...)
	if o.Strict {
		l.problems = append(l.problems, l.warnings...)
		l.warnings = nil
	}
	sources = slices.Concat(sources, o.CNI, o.Addons, o.Charts, o.Identities)
	if len(l.problems) > 0 {
		return nil, &manifest.InvalidError{Problems: sortProblems(l.inTexts(l.problems), sources)}
	}
	l.cluster.Warnings = sortProblems(l.inTexts(l.warnings), sources)
	return l.cluster, nil
}

// newLoader returns a loader without objects.
func newLoader(o input.LoadOptions) *loader {
	return &loader{
		options:  o,
		kinds:    withClasses(kinds()),
		byKey:    map[key]*manifest.Entry{},
		applied:  map[string]*manifest.Document{},
		older:    map[string]*olderFile{},
		unserved: map[string]bool{},
		told:     map[string]bool{}, rendering: map[string]bool{}, invalid: map[*manifest.Entry][]string{},
		about:    map[manifest.Problem]*manifest.Entry{},
		misnamed: map[*manifest.Entry][]string{},
		cluster:  manifest.NewCluster(),
	}
}

// loader holds the state and the results of one Load.
type loader struct {
	options    input.LoadOptions
	begin      manifest.Position // start of the input
	kinds      map[string]kind
	objects    []*manifest.Entry
	files      []manifest.ResourceSet        // files from Options.CNI and Options.Addons
	applied    map[string]*manifest.Document // the document of each object that is applied unchanged, by identity
	byKey      map[key]*manifest.Entry
	older      map[string]*olderFile        // by file
	unserved   map[string]bool              // by file: that Cluster API Provider AWS no longer serves v1beta1 is said
	incomplete bool                         // variables without values: the values of fields have no meaning
	unreadable bool                         // some documents are invalid YAML: objects may be missing because of that
	unexpanded bool                         // the topology is invalid: the objects generated from it are missing
	dropped    bool                         // invalid values were removed: comparing objects has no meaning
	invalid    map[*manifest.Entry][]string // the paths of these values
	asides     []*aside                     // objects that are not used as objects of the cluster
	sets       []*manifest.Entry            // MachineSets
	told       map[string]bool              // what foreignReference has reported
	classes    bool                         // the object of which placeholders are searched may belong to a ClusterClass
	rendering  map[string]bool              // files of which is reported that they are templates
	// consequence: an object is missing because of a problem that is reported.
	consequence bool
	problems    []manifest.Problem
	topologies  map[string]*clusterv1.Topology       // by name of the Cluster
	found       []string                             // titles of all objects of the input
	misnamed    map[*manifest.Entry][]string         // by object: the fields that are meant, or the mapping with them, which ends with "."
	about       map[manifest.Problem]*manifest.Entry // the object of a problem that was found while the input was read
	warnings    []manifest.Problem
	unset       []manifest.Problem // variables without values
	managed     bool               // EKS runs the control plane
	infra       *manifest.Entry    // the object that describes the infrastructure
	cluster     *manifest.Cluster
}

func (l *loader) fail(p manifest.Problem) { l.problems = append(l.problems, p) }

// absent reports that the input lacks an object, unless it may be in a part that cannot be
// read, and no other object has a similar name.
func (l *loader) absent(p manifest.Problem) {
	if !l.unreadable || strings.HasPrefix(p.Fix, "did you mean") {
		l.fail(p)
	}
}

func (l *loader) warn(p manifest.Problem) { l.warnings = append(l.warnings, p) }

// read parses the sources into objects.
func (l *loader) read(sources []input.Source) {
	if len(sources) > 0 {
		l.begin = manifest.Position{File: sources[0].Name, Line: 1}
	}
	for _, d := range l.documents(sources) {
		l.identify(d)
	}
}

// documents splits the sources, and replaces their variables.
func (l *loader) documents(sources []input.Source) (all []yamldoc.Document) {
	manifests := slices.DeleteFunc(slices.Clone(sources), func(s input.Source) bool { return l.takeUnrendered(s, sources) })
	v, templates := yamldoc.NewVariables(&l.options, manifests)
	for _, t := range templates {
		found, problems := yamldoc.Split(v.Expand(t))
		l.unreadable = l.unreadable || len(problems) > 0
		all = append(all, found...)
		l.problems = append(l.problems, problems...)
	}
	l.problems = append(l.problems, v.Problems...)
	l.unset = append(l.unset, v.Unset()...)
	l.warnings = append(l.warnings, v.Warnings...)
	maps.Copy(l.cluster.Variables, v.Values)
	l.incomplete = l.incomplete || len(v.Order) > 0 || len(v.Problems) > 0
	return all
}

// gates enables upstream's feature gates once; they are global to the process.
//
//nolint:gochecknoglobals // upstream's feature gates are global to the process
var gates = sync.OnceValue(func() error {
	ctrllog.SetLogger(logr.Discard()) // without a logger, webhooks log a complaint after 30 seconds
	if err := capafeature.MutableGates.SetFromMap(map[string]bool{string(capafeature.BootstrapFormatIgnition): true}); err != nil {
		return err
	}
	return capifeature.MutableGates.SetFromMap(map[string]bool{string(capifeature.KubeadmBootstrapFormatIgnition): true})
})

// openGates enables BootstrapFormatIgnition, which a controller needs a flag for.
func openGates() error { return gates() }

// valueContext returns the context for webhooks and CEL validation. No call below waits.
func valueContext() context.Context {
	return context.Background() //nolint:forbidigo // only a value: no call below waits
}
