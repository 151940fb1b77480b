package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// how says what to edit for the target, and what a run with the edited manifest does.
func (u *upgrade) how(ctx, looking context.Context) error {
	text := newText(u.from.Sources)
	for _, f := range u.Cluster.Manifest.VersionFields() {
		if v, err := semver.ParseTolerant(f.Version); err == nil && (u.out.EKS && v.Minor == u.target.Minor || v.EQ(u.target)) {
			continue
		}
		u.edit(text, f, func(old string) string { return inFormOf(old, u.target) })
	}
	if err := u.editAddons(looking, text); err != nil {
		return err
	}
	u.editControllers(text)
	if err := u.remark(); err != nil {
		return err
	}
	if old := u.oldest; old != nil && old.Minor+rules.MinorsBehind < u.target.Minor {
		u.out.Refusals = append(
			u.out.Refusals,
			fmt.Sprintf(
				"there are workers with v%s, and kubelets may be at most %d minor versions older than the control plane: replace them first",
				old,
				rules.MinorsBehind,
			),
		)
	}
	if !u.out.Exists {
		return nil
	}
	return u.try(ctx, text)
}

// edit adds the change of a field, and makes it in the text. replace returns the new value for
// the old one.
func (u *upgrade) edit(text *manifestText, f manifest.VersionField, replace func(old string) string) {
	at := u.Cluster.Manifest.At(f.Object, f.Path)
	e := cluster.VersionEdit{At: at.String(), Object: f.Object, Path: f.Path, Old: f.Version}
	written := text.version(at)
	if strings.Contains(written, "${") || strings.HasPrefix(written, "*") {
		e.Written = written
	} else {
		e.Old = cmp.Or(written, f.Version)
	}
	e.New = replace(e.Old)
	text.replace(at, e.New)
	u.out.Edits = append(u.out.Edits, e)
}

// inFormOf writes a version in the form of another one: with or without v and patch.
func inFormOf(old string, v semver.Version) string {
	version := v.String()
	if strings.Count(old, ".") == 1 {
		version = fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	if strings.HasPrefix(old, "v") {
		version = "v" + version
	}
	return version
}

// editAddons replaces the versions of EKS add-ons that EKS does not offer for the target.
func (u *upgrade) editAddons(ctx context.Context, text *manifestText) error {
	m := u.Cluster.Manifest
	if m.EKS == nil || m.EKS.ControlPlane.Spec.Addons == nil {
		return nil
	}
	for i, a := range *m.EKS.ControlPlane.Spec.Addons {
		offered, err := eks.AddonVersions(ctx, u.Cloud, a.Name, fmt.Sprintf("%d.%d", u.target.Major, u.target.Minor))
		if err != nil {
			return err
		}
		f := manifest.VersionField{Object: m.InfraObject(), Path: fmt.Sprintf("spec.addons[%d].version", i), Version: a.Version}
		switch {
		case len(offered) == 0:
			u.out.Refusals = append(u.out.Refusals, fmt.Sprintf("%s: EKS has no add-on %s for Kubernetes %s", m.Origin(f.Object, f.Path), a.Name, u.out.Target))
		case a.Version != "" && !slices.ContainsFunc(offered, func(v eks.AddonVersion) bool { return v.Name == a.Version }):
			u.edit(text, f, func(string) string { return offered[0].Name })
		}
	}
	return nil
}

// remark names the machines that do not follow the fields with the version.
func (u *upgrade) remark() error {
	m := u.Cluster.Manifest
	images, err := topology.ImagesOf(m, map[string]ec2.InstanceType{})
	if err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	for _, origin := range images.Given {
		u.out.Remarks = append(u.out.Remarks, fmt.Sprintf("%s: the image decides which version the machines run: set an image of %s", origin, u.out.Target))
	}
	for _, p := range m.Pools {
		switch {
		case p.Managed == nil:
		case p.Managed.Spec.AMIVersion != nil:
			at := m.Origin("AWSManagedMachinePool/"+p.Managed.Name, "spec.amiVersion")
			u.out.Remarks = append(
				u.out.Remarks,
				fmt.Sprintf("%s: %s is a release of one version of Kubernetes: set one of %s, or remove the field", at, *p.Managed.Spec.AMIVersion, u.out.Target),
			)
		case rules.ForeignImage(p.Managed):
			at := m.Origin("AWSManagedMachinePool/"+p.Managed.Name, "spec.amiType")
			u.out.Remarks = append(
				u.out.Remarks,
				fmt.Sprintf("%s: the AMI is in a launch template of another tool, which decides which version the nodes run: upgrade them there", at),
			)
		case p.Object.Spec.Template.Spec.Version == "" && !rules.OwnImage(p.Managed):
			at := m.Origin("MachinePool/"+p.Object.Name, "spec.template.spec")
			u.out.Remarks = append(u.out.Remarks, fmt.Sprintf("%s: version is not set, so the nodes keep the version that they have: set it to upgrade them", at))
		}
	}
	return nil
}

// try plans with the edited manifest.
func (u *upgrade) try(ctx context.Context, text *manifestText) error {
	if len(text.failed) > 0 {
		u.out.Remarks = append(
			u.out.Remarks,
			fmt.Sprintf("what would be replaced is not known: the version at %s is not the only one on its line", strings.Join(text.failed, ", ")),
		)
		return nil
	}
	edited, err := loader.Load(text.sources, u.from.Options) //nolint:contextcheck // it reads what is in memory
	if invalid, ok := errors.AsType[*input.InvalidError](err); ok {
		for _, p := range invalid.Problems {
			u.out.Refusals = append(u.out.Refusals, p.String())
		}
		return nil
	}
	if err != nil {
		return err
	}
	edited.SetRegion(u.Cluster.Region)
	p, err := run.Open(edited, u.Cluster.Target).Plan(ctx)
	if refused, ok := errors.AsType[*plan.RefusedError](err); ok {
		for _, reason := range refused.Reasons {
			u.out.Refusals = append(u.out.Refusals, reason.Error())
		}
		err = nil
	}
	u.out.Replaces, u.out.Updates = replacedBy(p), updatedBy(p)
	return err
}

// replacedBy counts the machines that a plan replaces, by group, in the order of the plan.
func replacedBy(p plan.Plan) (all []cluster.ReplacedMachines) {
	for _, s := range p.Steps {
		if s.Action != plan.Remove || s.ReplacedBy.Kind() != ec2.MachineKind {
			continue
		}
		group := strings.TrimPrefix(string(s.ReplacedBy), ec2.MachineKind+"/")
		if at := strings.LastIndexByte(group, '/'); at >= 0 {
			group = group[:at]
		}
		at := slices.IndexFunc(all, func(r cluster.ReplacedMachines) bool { return r.Group == group })
		if at < 0 {
			at = len(all)
			all = append(all, cluster.ReplacedMachines{Group: group})
		}
		all[at].Machines++
	}
	return all
}

// updatedBy lists what a plan upgrades, except for machines.
func updatedBy(p plan.Plan) (ids []plan.ID) {
	kinds := []string{
		eks.ClusterKind,
		eks.AddonKind,
		eks.NodeGroupKind,
		autoscaling.GroupKind,
		incluster.KubeProxyKind,
		incluster.CoreDNSKind,
		incluster.ResourceSetKind,
		incluster.HelmReleaseKind,
	}
	for _, s := range p.Steps {
		if s.Action == plan.Update && slices.Contains(kinds, s.Resource.Kind()) {
			ids = append(ids, s.Resource)
		}
	}
	return ids
}
