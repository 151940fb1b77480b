package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// filterList converts filters of the manifest, and returns them also as text.
func filterList(filters map[string][]string) (text string, out []types.Filter) {
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		out = append(out, cloud.Filter(name, filters[name]...))
		text += fmt.Sprintf(" %s=%s", name, strings.Join(filters[name], ","))
	}
	return strings.TrimSpace(text), out
}
