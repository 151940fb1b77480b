package ec2

import (
	"regexp"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// keepsMachines is the description of a version that differs from the earlier ones only in how
// machines join: machines of those are up to date.
const keepsMachines = "clusterawsadm: machines of earlier versions are up to date"

// bootDataField is the difference between the hashes of bootstrap data.
const bootDataField = "bootstrapData"

// storedDataField is the difference if stored bootstrap data does not exist.
const storedDataField = "storedBootstrapData"

// KeepsMachines reports whether the machines of a launch template are up to date, of whatever
// version they are, also after the version that a plan would create.
func KeepsMachines(template *graph.Ref[LaunchTemplateState], content *LaunchTemplate) bool {
	t, ok := template.Found()
	return ok && content != nil && content.keepsMachines(&t)
}

// keepsMachines reports whether machines of earlier versions are up to date. The version of
// this program says so. Cluster API makes a version for each bootstrap token, and replaces no
// machine for that (ReconcileLaunchTemplate in CAPA v2.13.0). If it changes more, it replaces
// the machines itself.
func (t *LaunchTemplate) keepsMachines(have *LaunchTemplateState) bool {
	var d plan.Diff
	t.diffContent(have, &d)
	if isHashOfCAPA(have.InstanceTags[BootHashTag]) {
		return OnlyBootData(d)
	}
	return len(d) == 0 && have.Description == keepsMachines
}

// OnlyBootData reports whether a launch template differs in nothing but the bootstrap data, or
// not at all.
func OnlyBootData(d plan.Diff) bool {
	for _, c := range d {
		if c.Field != bootDataField {
			return false
		}
	}
	return true
}

// isHashOfCAPA reports whether CAPA has computed a hash of bootstrap data: userdata.ComputeHash.
func isHashOfCAPA(hash string) bool { return regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(hash) }
