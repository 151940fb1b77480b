package loader

import (
	"fmt"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// nameSubnets gives an id to the listed subnets of a managed VPC that have none. In v1beta1, the id is optional. In
// v1beta2, CAPA's webhook accepts subnets without id, but an API server accepts only one of them, because id is the key
// of the list. The id is the name that CAPA gives to a subnet (getSubnetTagParams in
// pkg/cloud/services/network/subnets.go). If several subnets have the same role and zone, their names also contain
// their blocks, so that names are unique and do not depend on the order of the list.
func (l *loader) nameSubnets() {
	if l.cluster.Infra == nil {
		return
	}
	spec := &l.cluster.Infra.Spec.NetworkSpec
	l.warnUnnamedSubnets(spec.Subnets)
	if _, owned := spec.VPC.Tags[infrav1.NameAWSProviderOwned+l.cluster.Name]; spec.VPC.ID != "" && !owned {
		return
	}
	name := func(s infrav1.SubnetSpec) string {
		role := "private"
		if s.IsPublic {
			role = "public"
		}
		return fmt.Sprintf("%s-subnet-%s-%s", l.cluster.Name, role, s.AvailabilityZone)
	}
	count := map[string]int{}
	for _, s := range spec.Subnets {
		count[name(s)]++
	}
	for i := range spec.Subnets {
		s := &spec.Subnets[i]
		if s.ID != "" {
			continue
		}
		if s.ID = name(*s); count[s.ID] > 1 {
			s.ID += "-" + strings.NewReplacer(".", "-", "/", "-", ":", "-").Replace(s.CidrBlock)
		}
	}
}

// warnUnnamedSubnets warns of a list that an API server refuses.
func (l *loader) warnUnnamedSubnets(subnets infrav1.Subnets) {
	if l.infra == nil || l.infra.Version != manifest.VersionNew {
		return
	}
	unnamed := 0
	for i, s := range subnets {
		if s.ID != "" {
			continue
		}
		if unnamed++; unnamed == 2 {
			l.warn(l.infra.Problem(
				fmt.Sprintf("spec.network.subnets[%d]", i), "the second subnet without an id, which a management cluster refuses",
				"write the ID of each subnet that exists, and a name, such as private-a, for each one that is to be created",
			))
		}
	}
}
