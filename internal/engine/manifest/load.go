package manifest

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	capafeature "sigs.k8s.io/cluster-api-provider-aws/v2/feature"
	capifeature "sigs.k8s.io/cluster-api/feature"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Source is one input: a file, or standard input.
type Source struct {
	Name string // as printed in file:line; "-" for stdin
	Data []byte
}

// Options are what a manifest does not say itself.
type Options struct {
	// Lookup gives the values of ${VARIABLES}. When it is nil none is set.
	Lookup func(name string) (string, bool)
	// Region is used when the AWSCluster has none.
	Region string
	// EKSEnableIAM has roles for EKS made where they are missing, as the feature
	// gate of CAPA of that name does.
	EKSEnableIAM bool
	// CNI and Addons are files of Kubernetes objects that are brought into the
	// cluster as ClusterResourceSets are. The first bring the pod network.
	CNI, Addons []Source
	// Strict makes problems of warnings.
	Strict bool
}

// Load reads a manifest: it puts in variables, checks every document against
// the schema of its kind, sets defaults, converts to the newest version,
// applies the rules of the webhooks, and resolves the references. Input that
// is wrong gives an *InvalidError with everything that is wrong about it.
func Load(sources []Source, o Options) (*Cluster, error) {
	if err := openGates(); err != nil {
		return nil, err
	}
	l := &loader{
		options: o,
		kinds:   withClasses(kinds()),
		byKey:   map[key]*object{},
		applied: map[string]*Document{},
		cluster: &Cluster{
			ConfigMaps: map[string]*corev1.ConfigMap{},
			Secrets:    map[string]*corev1.Secret{},
			where:      map[string]Position{},
		},
	}
	l.read(sources)
	for _, f := range o.CNI {
		l.readFile(f, true)
	}
	for _, f := range o.Addons {
		l.readFile(f, false)
	}
	l.expandTopology(valueContext())
	l.admitAll(valueContext())
	l.assemble()
	if o.Strict {
		l.problems = append(l.problems, l.warnings...)
		l.warnings = nil
	}
	sources = append(append(append([]Source(nil), sources...), o.CNI...), o.Addons...)
	if len(l.problems) > 0 {
		return nil, &InvalidError{Problems: order(l.problems, sources)}
	}
	l.cluster.Warnings = order(l.warnings, sources)
	return l.cluster, nil
}

// loader collects what one Load finds.
type loader struct {
	options    Options
	begin      Position // of the input
	kinds      map[string]kind
	objects    []*object
	files      []ResourceSet        // those that the user has named beside the manifest
	applied    map[string]*Document // what is kept as it is written, by identity
	byKey      map[key]*object
	incomplete bool // variables are missing, so values mean nothing
	unexpanded bool // a topology is wrong, so the objects of the cluster are missing
	mended     bool // objects lost refused values, so comparing objects means nothing
	problems   []Problem
	warnings   []Problem
	managed    bool    // by EKS
	infra      *object // what the infrastructure is described by
	cluster    *Cluster
}

func (l *loader) fail(p Problem) { l.problems = append(l.problems, p) }
func (l *loader) warn(p Problem) { l.warnings = append(l.warnings, p) }

// read turns the sources into objects.
func (l *loader) read(sources []Source) {
	if len(sources) > 0 {
		l.begin = Position{File: sources[0].Name, Line: 1}
	}
	v := &variables{lookup: l.options.Lookup, missing: map[string][]Position{}}
	var documents []document
	for _, s := range sources {
		found, problems := split(v.expand(s))
		documents = append(documents, found...)
		l.problems = append(l.problems, problems...)
	}
	l.problems = append(l.problems, v.problems...)
	l.problems = append(l.problems, v.unset()...)
	l.incomplete = len(v.order) > 0 || len(v.problems) > 0
	for _, d := range documents {
		l.identify(d)
	}
}

// gates guards the feature gates of upstream, which are global to the process.
//
//nolint:gochecknoglobals // upstream's gates are process-wide, and so is their guard
var gates = sync.OnceValue(func() error {
	ctrllog.SetLogger(logr.Discard()) // or webhooks complain after half a minute that there is none
	if err := capafeature.MutableGates.SetFromMap(map[string]bool{string(capafeature.BootstrapFormatIgnition): true}); err != nil {
		return err
	}
	return capifeature.MutableGates.SetFromMap(map[string]bool{string(capifeature.KubeadmBootstrapFormatIgnition): true})
})

// openGates switches on what a controller has to be told to do, and we can
// always do: Ignition.
func openGates() error { return gates() }

// valueContext is what the webhooks and CEL ask for. Nothing here waits or can
// be cancelled.
func valueContext() context.Context {
	return context.Background() //nolint:forbidigo // only a value: no call below waits
}
