package cluster

import (
	"errors"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Imported is a manifest of a cluster that exists in AWS.
type Imported struct {
	Name     string // of the Cluster object
	Manifest []byte // YAML documents
	// LeftOut are parts that the manifest does not contain, because no manifest can describe
	// them. Runs leave them as they are.
	LeftOut []string
	// Plan is the plan of a run with the manifest. The tags by which runs find resources
	// are missing on those that another tool has made: Adopt sets them.
	Plan plan.Plan
	// Differences are the steps of the plan that do more than to set tags. With them, Adopt is
	// refused.
	Differences []plan.Step
	// Templates are groups of machines that were launched with other settings than those in
	// the manifest, which lacks what AWS does not tell. Without Adopt, a run replaces such
	// machines. Adopt records that they have the template of the manifest.
	Templates []TemplateDifference

	// Later are the pools of Cluster API for which the first run with the manifest writes what new
	// machines boot with into the launch template. It replaces no machine.
	Later []string

	// KeysFrom is the ID of the machine on which the keys of the cluster were read; "" if they were
	// not.
	KeysFrom string

	// Unknown lists what Adopt needs to know about the cluster and the import could not find out. If
	// it is not empty, Adopt is refused.
	Unknown []string
}

// ImportOptions are the options of Import.
type ImportOptions struct {
	input.LoadOptions
	// Keys are the certificates and keys of a self-managed cluster whose keys are not in the
	// account, by the paths of their files in /etc/kubernetes/pki: "ca.crt", "etcd/ca.key".
	// KeyFiles reads them from a folder. Adopt stores them where runs keep them.
	Keys map[string][]byte
	// KeysFromMachine reads them on a machine of the control plane, with SSM Run Command. If that is
	// not possible, Unknown says why.
	KeysFromMachine bool
	// BootDataFromMachines reads what machines of a self-managed cluster have booted with, with SSM
	// Run Command: files, commands, users. LeftOut says what cannot be read.
	BootDataFromMachines bool
}

// TemplateDifference is a group of machines and the fields in which its template differs from
// that of the manifest.
type TemplateDifference struct {
	Group    string   // name of the KubeadmControlPlane, the MachineDeployment, the Machine or the pool
	Pool     bool     // a launch template: Adopt cannot record that it is that of the manifest
	Machines int      // 0: those of a node group
	Fields   []string // "bootstrap.files"; empty if the machines do not say
}

// ErrNotFound says that there is no cluster of the name.
var ErrNotFound = errors.New("there is no such cluster")
