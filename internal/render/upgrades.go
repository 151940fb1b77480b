package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// UpgradesView says how to show the versions that a cluster can be upgraded to.
type UpgradesView struct {
	Named bool // the cluster was named, and there is no manifest
	Style Style
	Width int // of the terminal; 0: any
}

// Upgrades prints the versions that a cluster can be upgraded to, what to edit, and what is
// replaced.
func Upgrades(w io.Writer, u cluster.Upgrades, v UpgradesView) error {
	var b strings.Builder
	b.WriteString(now(u) + "\n")
	if len(u.Versions) > 0 {
		b.WriteString("\n")
		if err := versions(&b, u, v.Width); err != nil {
			return err
		}
	}
	if u.Target == "" {
		b.WriteString(noTarget(u))
	} else if !v.Named {
		b.WriteString("\n" + edits(u, v) + consequences(u))
	}
	for _, i := range u.Insights {
		b.WriteString("\n" + insight(i, v.Style))
	}
	for _, remark := range u.Remarks {
		b.WriteString("\n" + v.Style.paint(yellow, "Note: ") + remark + "\n")
	}
	if v.Named && u.Target != "" {
		b.WriteString("\nWith the manifest (-f FILE), this command shows what to edit, and what is replaced.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// now says which version the cluster has.
func now(u cluster.Upgrades) string {
	cluster := fmt.Sprintf("Cluster %s in %s ", u.Name, u.Region)
	switch {
	case u.Version == "":
		return cluster + "has a version of Kubernetes that is not known."
	case !u.Exists:
		return cluster + "does not exist. Its manifest has Kubernetes " + u.Version + "."
	}
	return cluster + "has Kubernetes " + u.Version + "."
}

func noTarget(u cluster.Upgrades) string {
	switch {
	case !u.Known || u.Version == "":
		return "\nWhich versions it can be upgraded to is not known.\n"
	case u.EKS:
		return "\nEKS offers no newer version to upgrade to.\n"
	}
	return "\nNo newer version to upgrade to has images for all machines.\n"
}

// versions prints a table with the newest version of each minor one.
func versions(w io.Writer, u cluster.Upgrades, to int) error {
	headers := []string{"VERSION", "UPGRADE"}
	if u.EKS {
		headers = append(headers, "STATUS", "STANDARD SUPPORT", "EXTENDED SUPPORT")
	} else {
		headers = append(headers, "OLDER PATCHES")
	}
	const patchesShown = 4
	for most := patchesShown; ; most-- {
		rows := versionRows(u, most)
		if to == 0 || most == 0 || tableWidth(headers, rows) <= to {
			headers, rows = Fit(to, headers, rows, "OLDER PATCHES", "EXTENDED SUPPORT", "STATUS")
			return Table(w, headers, rows)
		}
	}
}

// versionRows has a row for each minor version, with so many of its older patches.
func versionRows(u cluster.Upgrades, most int) (rows [][]string) {
	for i, x := range u.Versions {
		switch {
		case u.EKS:
			rows = append(rows, []string{x.Version, step(x), support(x.Status), until(x.EndOfStandardSupportDate), until(x.EndOfExtendedSupportDate)})
		case i == len(u.Versions)-1 || minor(u.Versions[i+1].Version) != minor(x.Version):
			rows = append(rows, []string{x.Version, step(x), patches(u, x.Version, most)})
		}
	}
	return rows
}

// minor is a version without its patch.
func minor(version string) string { return version[:strings.LastIndexByte(version, '.')] }

// patches lists the older patches of a minor version, the newest first.
func patches(u cluster.Upgrades, version string, most int) string {
	var all []string
	for i := len(u.Versions) - 1; i >= 0; i-- {
		if x := u.Versions[i].Version; x != version && minor(x) == minor(version) {
			all = append(all, x)
		}
	}
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return strings.Join(all, ", ")
}

// step says how a version can be reached.
func step(x cluster.UpgradeVersion) string {
	out := map[cluster.UpgradeStep]string{
		cluster.CurrentVersion: "current", cluster.NewerPatch: "patch", cluster.NextMinor: "next minor version",
		cluster.LaterMinor: "after the next minor version",
	}[x.Step]
	if x.Recommended {
		out += ", recommended"
	}
	return out
}

// support is a status of EKS in words.
func support(s string) string {
	return cmp.Or(map[string]string{"STANDARD_SUPPORT": "standard support", "EXTENDED_SUPPORT": "extended support"}[s], s)
}

// until is the last day of support.
func until(day *time.Time) string {
	if day == nil {
		return ""
	}
	return "until " + day.UTC().Format(time.DateOnly)
}

// edits lists what to edit in the manifest.
func edits(u cluster.Upgrades, v UpgradesView) string {
	s := v.Style
	if len(u.Edits) == 0 {
		return "The manifest has no version older than " + u.Target + " to edit.\n"
	}
	var b strings.Builder
	b.WriteString(s.paint(bold, "To upgrade to "+u.Target+", edit:") + "\n\n")
	at, field := 0, 0
	for _, e := range u.Edits {
		at, field = max(at, width(e.At)), max(field, width(e.Object+" "+e.Path))
	}
	for _, e := range u.Edits {
		line := "  " + pad(e.At, at) + "  "
		if what := e.Object + " " + e.Path; v.Width > 0 && at+field+len(e.Old)+len(e.New)+len("        → ") > v.Width {
			line += what + "\n      "
		} else {
			line += pad(what, field) + "  "
		}
		line += e.Old + " → " + s.paint(green, e.New)
		if e.Written != "" {
			line += s.paint(dim, "  # "+e.Written)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// consequences says what a run with the edited manifest does.
func consequences(u cluster.Upgrades) string {
	var does []string
	n := 0
	for _, r := range u.Replaces {
		does = append(does, fmt.Sprintf("%s × %d", r.Group, r.Machines))
		n += r.Machines
	}
	var parts []string
	if n > 0 {
		parts = append(parts, "replaces "+text.Count(n, "machine")+" ("+strings.Join(does, ", ")+")")
	}
	if len(u.Updates) > 0 {
		var ids []string
		for _, id := range u.Updates {
			ids = append(ids, string(id))
		}
		parts = append(parts, "updates "+strings.Join(ids, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "\nThen 'clusterawsadm cluster create' " + strings.Join(parts, ", and ") + ". 'clusterawsadm cluster plan' shows all of it.\n"
}

// insight shows an upgrade insight of EKS.
func insight(i cluster.UpgradeInsight, s Style) string {
	color := yellow
	if i.Status == "ERROR" {
		color = red
	}
	out := s.paint(color, "EKS reports "+strings.ToLower(i.Status)+": ") + i.Name + " (Kubernetes " + i.Version + ")\n"
	for _, line := range append([]string{i.Reason, i.Advice}, i.Uses...) {
		if line != "" {
			out += "  " + line + "\n"
		}
	}
	return out
}
