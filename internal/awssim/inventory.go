package awssim

import (
	"slices"
)

// Inventory lists what the account holds besides what every account has: one
// line for each thing, its kind and its name, in order. What goes with another
// thing is not listed: main route tables, default security groups, interfaces
// and volumes of what is there. What is over is not listed either; what is
// about to be over is, and so are interfaces that linger.
func (a *AWS) Inventory() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	all := slices.Concat(
		a.inventoryAutoScaling(),
		a.inventoryCloudFormation(),
		a.inventoryEC2(),
		a.inventoryEKS(),
		a.inventoryELB(),
		a.inventoryIAM(),
		a.inventoryS3(),
		a.inventorySSM(),
		a.inventorySecrets(),
	)
	slices.Sort(all)
	return all
}
