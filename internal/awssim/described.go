package awssim

import (
	"regexp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Described is Detailed without values that differ from run to run of the same program:
// addresses, parts of names that AWS chooses, digests of keys, and how often a secret was
// written.
func (a *AWS) Described() (out []string) {
	chosen := regexp.MustCompile(
		`\d+\.\d+\.\d+\.\d+/32|versions=\d+|eks-cluster-sg-\S+-\d{10}|eks-remoteAccess-[0-9a-f]{8}|[0-9a-f]{8}-[0-9a-f]{4}-4000-8000-0{12}|bootstrap-data-hash(=|","Value":")[\w-]+`,
	)
	groups := regex.Of(`"SecurityGroupIds":\[[^]]*\]`)
	byName := func(list string) string { // they are sorted by ID
		names := strings.Split(strings.Trim(strings.TrimPrefix(list, `"SecurityGroupIds":`), "[]"), ",")
		slices.Sort(names)
		return strings.Join(names, ",")
	}
	for _, line := range a.Detailed() {
		out = append(out, groups.ReplaceAllStringFunc(chosen.ReplaceAllString(line, "…"), byName))
	}
	slices.Sort(out)
	return out
}
