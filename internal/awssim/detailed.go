package awssim

import (
	"slices"
)

// Detailed lists what Inventory lists, and the interfaces and volumes of what
// is there, each with all that was asked for: attributes, rules, routes, tags.
// Neither IDs nor addresses nor times are in it, so that two accounts compare
// equal when the same was built in them, in whatever order. Of secrets and
// user data it tells only that they exist.
func (a *AWS) Detailed() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	all := slices.Concat(
		a.detailedEC2(),
		a.detailedSSM(),
		a.detailedAutoScaling(),
		a.detailedCloudFormation(),
		a.detailedEKS(),
		a.detailedELB(),
		a.detailedIAM(),
		a.detailedS3(),
		a.detailedSecrets(),
	)
	slices.Sort(all)
	return all
}
