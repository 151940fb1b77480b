package awssim

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
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
		a.inventoryImages(),
		a.inventoryS3(),
		a.inventorySSM(),
		a.inventorySecrets(),
	)
	slices.Sort(all)
	return all
}

func (a *AWS) inventorySSM() []string {
	return each(sortedKeys(a.state.SSM.Parameters), func(name string) string { return "Parameter " + name })
}

func (a *AWS) inventoryEC2() (all []string) {
	for _, t := range a.own() {
		line := kindName(t) + " " + name(t)
		switch t := t.(type) {
		case *Interface:
			if t.Owner != "" && t.Dies.IsZero() {
				continue
			}
		case *Volume:
			if t.Instance != "" {
				continue
			}
		case *Instance:
			if !t.Terminating.IsZero() {
				line += " " + string(t.state(a.now()))
			}
		case *NATGateway:
			if !t.Deleted.IsZero() {
				line += " " + string(t.state(a.now()))
			}
		}
		all = append(all, line)
	}
	return all
}

// own returns the things of EC2 that not every account has and that are not
// over, but for main route tables and default security groups.
func (a *AWS) own() (all []thing) {
	things := a.taggable()
	for _, id := range sortedKeys(things) {
		t, over := things[id], things[id].thing().Given
		switch t := t.(type) {
		case *RouteTable:
			over = over || t.Main != ""
		case *SecurityGroup:
			over = over || t.Name == "default"
		case *Instance:
			over = t.state(a.now()) == types.InstanceStateNameTerminated
		case *NATGateway:
			over = t.dead(a.now())
		}
		if !over {
			all = append(all, t)
		}
	}
	return all
}

func kindName(t thing) string { return strings.TrimPrefix(fmt.Sprintf("%T", t), "*awssim.") }

// name is what tells a thing from others of its kind.
func name(t thing) string {
	other := ""
	switch t := t.(type) {
	case *VPC:
		other = t.CIDR
	case *Subnet:
		other = cmp.Or(t.CIDR, "IPv6-only")
	case *SecurityGroup:
		other = t.Name
	case *Endpoint:
		other = t.Service
	case *Interface:
		other = anonymous(t.Description)
	case *LaunchTemplate:
		return t.Name
	}
	return cmp.Or(t.thing().Tags["Name"], other, "without a name")
}

// anonymous takes the IDs out of a text.
func anonymous(s string) string {
	return regexp.MustCompile(`\b[a-z]+-0[0-9a-f]{16}\b|\b[0-9a-f]{16}\b`).ReplaceAllString(s, "(ID)")
}
