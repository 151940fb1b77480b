package loader

import (
	"fmt"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// goneField is a field of v1beta1 that the conversion to v1beta2 drops (the files conversion.go of the packages v1beta1 of
// Cluster API Provider AWS, and the functions of zz_generated.conversion.go that warn "does not exist in peer-type"). Its
// controllers read v1beta2, so that the field has had no effect since their release v2.0.
type goneField struct {
	kinds []string
	path  string // [] stands for any index
	fix   string
}

// goneFields lists all of them; TestGoneFields compares the list with the schemas.
func goneFields() (rows []goneField) {
	for kind, prefix := range map[string]string{manifest.KindAWSMachine: "spec.", manifest.KindAWSMachineTemplate: "spec.template.spec."} {
		zone := "set failureDomain in spec.template.spec of the MachineDeployment, or subnet here"
		if kind == manifest.KindAWSMachine {
			zone = "set failureDomain in spec of the Machine, or subnet here"
		}
		rows = append(
			rows,
			goneField{[]string{kind}, prefix + "failureDomain", zone},
			goneField{[]string{kind}, prefix + "subnet.arn", "use id"},
			goneField{[]string{kind}, prefix + "additionalSecurityGroups[].arn", "use id"},
		)
	}
	return rows
}

// goneFix returns what to do about a field that v1beta2 does not have any more; "" for any other field.
func (l *loader) goneFix(o *manifest.Entry, path string) string {
	pattern := regex.Of(`\[\d+\]`).ReplaceAllString(path, "[]")
	for _, row := range goneFields() {
		switch {
		case !slices.Contains(row.kinds, o.Kind) || row.path != pattern:
		case o.Kind == manifest.KindAWSMachineTemplate && l.isOfControlPlane(o) && row.fix != "use id":
			return "remove it: a control plane is spread over the zones by itself; only subnet puts its machines into one"
		default:
			return row.fix
		}
	}
	return ""
}

// isOfControlPlane reports whether a control plane, or that of a ClusterClass, refers to a template of machines.
func (l *loader) isOfControlPlane(template *manifest.Entry) bool {
	return slices.ContainsFunc(l.objects, func(o *manifest.Entry) bool {
		for _, path := range []string{
			"spec.machineTemplate.infrastructureRef", "spec.machineTemplate.spec.infrastructureRef",
			"spec.controlPlane.machineInfrastructure.ref", "spec.controlPlane.machineInfrastructure.templateRef",
		} {
			if name, _ := manifest.ValueAt(o.Value, path+".name").(string); name == template.Name && o.Namespace == template.Namespace {
				return true
			}
		}
		return false
	})
}

// warnGone warns about fields of an object that v1beta2 does not have any more. In v1beta2, they are reported as unknown.
func (l *loader) warnGone(o *manifest.Entry) {
	if o.Version != manifest.VersionOld {
		return
	}
	index := regex.Of(`\[\d+\]`)
	for _, row := range goneFields() {
		if !slices.Contains(row.kinds, o.Kind) {
			continue
		}
		for _, path := range sortedPaths(o, row.path, index) {
			if manifest.IsZero(o.ValueAt(path)) {
				continue
			}
			what := fmt.Sprintf("has no effect: Cluster API Provider AWS drops it, because %s has no such field any more", manifest.VersionNew)
			p := o.Problem("", what, l.goneFix(o, path))
			p.Path, p.Position = path, o.Position(path)
			l.warn(p)
		}
	}
}
