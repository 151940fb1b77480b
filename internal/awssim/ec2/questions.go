package ec2

import (
	"cmp"
	"slices"
	"strings"
)

// HasKeyPair reports whether a key pair exists.
func (svc *Service) HasKeyPair(name string) bool { return svc.state.KeyPairs[name] }

// Quotas returns the quotas of the account.
func (svc *Service) Quotas() Limits { return svc.state.Limits }

// Known reports whether services other than EC2 know a resource yet.
func (svc *Service) Known(t Thing) bool { return svc.Now().Sub(t.Born) >= svc.LagRefs }

// Label describes a resource without its ID.
func (svc *Service) Label(id string) string {
	e := svc.state
	if s, ok := e.Subnets[id]; ok {
		return s.Zone + "/" + s.CIDR
	}
	if g, ok := e.SecurityGroups[id]; ok {
		return g.Name
	}
	if v, ok := e.VPCs[id]; ok {
		return cmp.Or(v.Tags["Name"], v.CIDR)
	}
	if i, ok := e.Instances[id]; ok {
		return cmp.Or(i.Tags["Name"], i.Type)
	}
	return "unknown"
}

// Labels describes resources, sorted.
func (svc *Service) Labels(ids []string) string {
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, svc.Label(id))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}
