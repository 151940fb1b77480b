package render

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Palette has the colours of an area: of its boxes, their borders and their text.
type Palette struct{ Fill, Line, Text string }

// PaletteOf returns the colours of an area on a light background.
func PaletteOf(a plan.Area) Palette {
	switch a {
	case plan.AreaPrerequisites:
		return Palette{"#f2f3f5", "#6e7781", "#32383f"}
	case plan.AreaNetwork:
		return Palette{"#e7f0fb", "#3b78c4", "#173a66"}
	case plan.AreaSecurity:
		return Palette{"#fbe9ea", "#c4474f", "#661a1f"}
	case plan.AreaLoadBalancer:
		return Palette{"#f1e9fb", "#7f4fc0", "#3c2066"}
	case plan.AreaControlPlane:
		return Palette{"#fdf1dd", "#c98516", "#5f3d04"}
	case plan.AreaWorkers:
		return Palette{"#e6f5ea", "#379154", "#174a28"}
	case plan.AreaKubernetes:
		return Palette{"#e5f4f6", "#2b8d9b", "#0f4850"}
	case plan.AreaOther:
	}
	return Palette{"#f0f0f0", "#777777", "#333333"}
}

// DarkPaletteOf returns the colours of an area on a dark background.
func DarkPaletteOf(a plan.Area) Palette {
	switch a {
	case plan.AreaPrerequisites:
		return Palette{"#23282f", "#8b949e", "#d6dbe1"}
	case plan.AreaNetwork:
		return Palette{"#13263f", "#5e9be6", "#cfe2fa"}
	case plan.AreaSecurity:
		return Palette{"#3a191d", "#e5737a", "#fad4d6"}
	case plan.AreaLoadBalancer:
		return Palette{"#281b40", "#a982e4", "#e4d6fa"}
	case plan.AreaControlPlane:
		return Palette{"#38280b", "#dda13c", "#f8e3bd"}
	case plan.AreaWorkers:
		return Palette{"#12301c", "#57b576", "#cdeed7"}
	case plan.AreaKubernetes:
		return Palette{"#0f2f34", "#4bb3c2", "#c8eaef"}
	case plan.AreaOther:
	}
	return Palette{"#262626", "#9a9a9a", "#dddddd"}
}

// AreaClass is the CSS class of an area, with which its boxes, arrows and texts are marked.
func AreaClass(a plan.Area) string { return strings.ReplaceAll(string(a), " ", "-") }
