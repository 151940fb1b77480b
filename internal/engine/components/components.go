// Package components has a table of what the components of Kubernetes know in each minor version:
// flags, feature gates, plugins, cloud providers, kinds of configuration files and fields of the kubelet's configuration.
// hack/componenttable makes it from the code of the components.
package components

import (
	_ "embed"
	"strings"
)

//go:embed table.txt
var table string

// The components.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	Kubeadm           = "kubeadm"
	all               = "components" // feature gates and cloud providers are those of all of them
)

// The minor versions in the table.
const (
	Oldest = 27
	Newest = 37
)

// none marks a version that does not have something.
const none = '-'

// Row is what the versions from Oldest to Newest know of one thing: a mark for each.
type Row string

// Flag returns the row of a flag of a component. A mark is the form of its values: b for a Boolean, i
// for an integer, f for a number, d for a duration, s for others.
func Flag(component, name string) Row {
	return row(component, "flag", strings.ReplaceAll(name, "_", "-"))
}

// Gate returns the row of a feature gate. A mark is t or f if the gate is locked to true or false,
// and o if it is not.
func Gate(component, name string) Row {
	if component != Kubeadm {
		component = all
	}
	return row(component, "gate", name)
}

// Admission returns the row of an admission plugin.
func Admission(name string) Row { return row(APIServer, "admission", name) }

// KubeletField returns the row of a field of KubeletConfiguration.
func KubeletField(name string) Row { return row(Kubelet, "field", name) }

// SchedulerPlugin returns the row of a plugin of the scheduler.
func SchedulerPlugin(name string) Row { return row(Scheduler, "plugin", name) }

// Kind returns the row of a kind that the configuration files of a component can have. The name contains the API version, as in
// audit.k8s.io/v1/Policy.
func Kind(component, name string) Row { return row(component, "kind", name) }

// Kinds returns the names of all kinds that the configuration files of a component can have in some version of Kubernetes.
func Kinds(component string) (all []string) {
	for line := range strings.SplitSeq(table, "\n") {
		if rest, is := strings.CutPrefix(line, component+" kind "); is {
			name, _, _ := strings.Cut(rest, " ")
			all = append(all, name)
		}
	}
	return all
}

// CloudProvider returns the row of a cloud provider that the components contain.
func CloudProvider(name string) Row { return row(all, "cloud-provider", name) }

// row finds a line of the table; it is "" for what no version has.
func row(component, sort, name string) Row {
	if name == "" || strings.ContainsAny(name, " \n") {
		return ""
	}
	_, rest, found := strings.Cut(table, "\n"+component+" "+sort+" "+name+" ")
	if !found {
		return ""
	}
	marks, _, _ := strings.Cut(rest, "\n")
	return Row(marks)
}

// In returns the mark of a minor version, and whether that version has the thing. Of versions that
// are not in the table nothing is known.
func (r Row) In(minor uint64) (mark byte, has bool) {
	if minor < Oldest || minor >= Oldest+uint64(len(r)) {
		return 0, false
	}
	mark = r[minor-Oldest]
	return mark, mark != none
}

// Known reports whether the table has a minor version.
func Known(minor uint64) bool { return minor >= Oldest && minor <= Newest }

// Removed returns the first version that has the thing no more, and whether there is one before or
// at a minor version.
func (r Row) Removed(minor uint64) (at uint64, removed bool) {
	for m := minor; m > Oldest; m-- {
		if _, has := r.In(m - 1); has {
			return m, true
		}
	}
	return 0, false
}

// Added returns the first version after a minor version that has the thing, and whether there is one.
func (r Row) Added(minor uint64) (at uint64, added bool) {
	for m := minor + 1; m <= Newest; m++ {
		if _, has := r.In(m); has {
			return m, true
		}
	}
	return 0, false
}
