package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// dump writes things with names in place of IDs.
type dump struct {
	aws   *Service
	names map[string]string
}

// list is a set of things, by name.
func (d dump) list(ids []string) string {
	return "[" + strings.Join(slices.Sorted(slices.Values(core.Each(ids, func(id string) string { return cmp.Or(d.names[id], id) }))), ", ") + "]"
}

// routes are a table's routes, and whether they lead anywhere.
func (d dump) routes(t *RouteTable) string {
	all := core.Each(t.Routes, func(r Route) string {
		return fmt.Sprintf("%s to %s (%t)", r.Destination, cmp.Or(d.names[r.Target], r.Target), d.aws.leads(t, r.Target))
	})
	return "[" + strings.Join(slices.Sorted(slices.Values(all)), ", ") + "]"
}

func (d dump) rules(rules []Rule) string {
	all := core.Each(rules, func(r Rule) string {
		return fmt.Sprintf("%s %d-%d %s%s%s %q", r.Protocol, r.From, r.To, r.CIDR, r.IPv6, d.names[r.Group], r.Description)
	})
	return "[" + strings.Join(slices.Sorted(slices.Values(all)), ", ") + "]"
}

// given are the group and the route table that came with a VPC.
func (d dump) given(v *VPC) (text string) {
	for _, g := range d.aws.state.SecurityGroups {
		if g.VPC == v.ID && g.Name == "default" {
			text += "default group in " + d.rules(g.Ingress) + " out " + d.rules(g.Egress) + " tags " + core.Pairs(g.Tags)
		}
	}
	for _, t := range d.aws.state.RouteTables {
		if t.VPC == v.ID && t.Main != "" {
			text += " main routes " + d.routes(t) + " tags " + core.Pairs(t.Tags)
		}
	}
	return text
}

// details are the attributes of a thing. IPv6 blocks are Amazon's choice: of
// a subnet's only its place in that of the VPC counts.
func (d dump) details(t thing) []string {
	s, f := d.aws.state, fmt.Sprintf
	switch t := t.(type) {
	case *VPC:
		secondary := core.Each(t.Secondary, func(b Association) string { return b.CIDR })
		return []string{
			f("CIDR %s %v", t.CIDR, slices.Sorted(slices.Values(secondary))), f("IPv6 %t", t.IPv6 != nil), "tenancy " + t.Tenancy,
			f("DNS hostnames %t support %t", t.DNSHostnames, t.DNSSupport), d.given(t),
		}
	case *Subnet:
		place := "none"
		if t.IPv6CIDR != "" {
			place = f("%d", prefix(t.IPv6CIDR).Addr().As16()[7])
		}
		return []string{
			t.VPC, f("CIDR %s IPv6 %s only %t", t.CIDR, place, t.Native), t.Zone, f("public addresses %t", t.MapPublicIP), f("assigns IPv6 %t", t.AssignIPv6),
			f("DNS64 %t", t.DNS64), f("hostnames %s A %t AAAA %t", t.HostnameType, t.ResourceNameA, t.ResourceNameAAAA),
		}
	case *InternetGateway:
		return []string{"attached to " + t.VPC, f("egress-only %t", s.EgressOnlyGateways[t.ID] != nil)}
	case *NATGateway:
		return []string{t.Subnet, t.Address, f("deleting %t", !t.Deleted.IsZero())}
	case *Address:
		used := ""
		if n := s.Interfaces[t.Interface]; n != nil {
			used = cmp.Or(n.Owner, n.ID)
		}
		return []string{"used by " + used}
	case *RouteTable:
		return []string{t.VPC, "routes " + d.routes(t), "subnets " + d.list(slices.Collect(maps.Values(t.Associations)))}
	case *SecurityGroup:
		return []string{t.VPC, t.Name, t.Description, "in " + d.rules(t.Ingress), "out " + d.rules(t.Egress)}
	case *Endpoint:
		return []string{t.VPC, t.Service, "tables " + d.list(t.RouteTables), f("deleting %t", !t.Deleted.IsZero())}
	case *Interface:
		return []string{
			"of " + t.Owner, t.Subnet, t.Type, t.Description, "groups " + d.list(t.Groups), f("IPv6 %d public %t", len(t.IPv6), t.PublicIP != ""),
			f("device %d goes with its owner %t", t.Device, t.DeleteWithOwner), f("managed %t dying %t", t.Managed, !t.Dies.IsZero()),
			f("unchecked source %t", t.NoSourceCheck),
		}
	case *Volume:
		return []string{
			"of " + t.Instance + " as " + t.Device, t.Zone, f("%s %d GiB %d IOPS %d MiB/s", t.Type, t.Size, t.IOPS, t.Throughput),
			f("encrypted %t %s", t.Encrypted, t.Key), f("goes with its instance %t", t.DeleteWithInstance),
		}
	case *LaunchTemplate:
		return core.Each(core.ByKey(t.Versions), func(v *LaunchTemplateVersion) string {
			data := v.Data
			if data.UserData != nil {
				data.UserData = aws.String("there")
			}
			return f("version %d default %t %s", v.Number, v.Number == t.Default, core.Shown(data))
		})
	case *Instance:
		return []string{
			t.Image, t.Type, t.Subnet, t.Zone, f("key %q profile %q", t.Key, t.Profile), f("user data %t", t.UserData != ""),
			f("spot %t %s", t.Spot, t.MaxPrice), f("metadata %+v", t.Metadata), f("placement %+v", t.Placement), core.Pairs(t.Launch),
			f("hostnames %s A %t AAAA %t", t.HostnameType, t.ResourceNameA, t.ResourceNameAAAA), f("protected %t", t.Protected),
			f("ending %t", t.State(d.aws.Now()) == types.InstanceStateNameShuttingDown),
		}
	}
	return nil
}

func (svc *Service) Inventory() (all []string) {
	for _, t := range svc.own() {
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
				line += " " + string(t.State(svc.Now()))
			}
		case *NATGateway:
			if !t.Deleted.IsZero() {
				line += " " + string(t.state(svc.Now()))
			}
		}
		all = append(all, line)
	}
	return append(all, svc.inventoryImages()...)
}

// own returns the things of EC2 that not every account has and that are not
// over, but for main route tables and default security groups.
func (svc *Service) own() (all []thing) {
	things := svc.taggable()
	for _, id := range core.SortedKeys(things) {
		t, over := things[id], things[id].thing().Given
		switch t := t.(type) {
		case *RouteTable:
			over = over || t.Main != ""
		case *SecurityGroup:
			over = over || t.Name == "default"
		case *Instance:
			over = t.State(svc.Now()) == types.InstanceStateNameTerminated
		case *NATGateway:
			over = t.dead(svc.Now())
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

// Detailed lists what Inventory lists, and the interfaces and volumes of what
// is there, each with its attributes.
func (svc *Service) Detailed() (all []string) {
	d := dump{svc, map[string]string{}}
	for id, t := range svc.taggable() {
		d.names[id] = kindName(t) + "(" + name(t) + ")"
	}
	for id, i := range svc.state.Images {
		d.names[id] = i.Name
	}
	var ids []string
	for id, n := range d.names {
		ids = append(ids, id, n)
	}
	inText := strings.NewReplacer(ids...)
	for _, t := range svc.own() {
		line := kindName(t) + " " + name(t) + ": " + strings.Join(append(d.details(t), "tags "+core.Pairs(t.thing().Tags)), "; ")
		all = append(all, anonymous(inText.Replace(line)))
	}
	return append(all, svc.inventoryImages()...)
}
