package awssim

import (
	"regexp"
	"slices"
	"strings"
)

// checkELBName checks the name of a load balancer or of a target group.
func checkELBName(what, name string) error {
	switch {
	case name == "":
		return fail("ValidationError", "1 validation error detected: the %s name must not be empty", what)
	case len(name) > 32:
		return fail("ValidationError", "%s name '%s' cannot be longer than '32' characters", what, name)
	case !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(name):
		return fail("ValidationError", "%s name '%s' can only contain characters that are alphanumeric characters and hyphens(-)", what, name)
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"):
		return fail("ValidationError", "%s name '%s' cannot begin or end with a hyphen(-)", what, name)
	case strings.HasPrefix(name, "internal-"):
		return fail("ValidationError", "%s name '%s' cannot begin with 'internal-'", what, name)
	}
	return nil
}

// balancerSubnets returns the subnets of a load balancer in the order of their
// zones: at least one, all in one VPC, no two in one zone.
func (a *AWS) balancerSubnets(ids []string) ([]*Subnet, error) {
	zones := map[string]*Subnet{}
	var vpc string
	for _, id := range ids {
		s := a.Subnet(id)
		if s == nil || !a.known(s.Thing) {
			return nil, fail("SubnetNotFound", "the subnet ID '%s' does not exist", id)
		}
		if vpc != "" && s.VPC != vpc {
			return nil, fail("InvalidConfigurationRequest", "all subnets must belong to the same VPC: '%s'", vpc)
		}
		if _, taken := zones[s.Zone]; taken {
			return nil, fail("InvalidConfigurationRequest", "a load balancer cannot be attached to multiple subnets in the same Availability Zone")
		}
		vpc, zones[s.Zone] = s.VPC, s
	}
	if len(zones) == 0 {
		return nil, fail("ValidationError", "at least one subnet must be specified")
	}
	return byKey(zones), nil
}

// balancerScheme checks the scheme of a load balancer in a VPC, and returns it
// with its default.
func (a *AWS) balancerScheme(scheme, vpc string) (string, error) {
	switch scheme {
	case "internal":
		return scheme, nil
	case "", "internet-facing":
	default:
		return "", fail("InvalidScheme", "scheme '%s' must be either 'internet-facing' or 'internal'", scheme)
	}
	if a.gatewayOf(vpc) != nil {
		return "internet-facing", nil
	}
	return "", fail("InvalidSubnet", "VPC %s has no internet gateway", vpc)
}

// balancerGroups checks the security groups of a load balancer.
func (a *AWS) balancerGroups(ids []string, vpc string) error {
	if len(ids) > 5 {
		return fail("InvalidConfigurationRequest", "a load balancer has at most 5 security groups")
	}
	for i, id := range ids {
		g := a.SecurityGroup(id)
		if g == nil || g.VPC != vpc || !a.known(g.Thing) {
			return fail("InvalidSecurityGroup", "one or more security groups are invalid: '%s' is not in VPC '%s'", id, vpc)
		}
		if slices.Contains(ids[:i], id) {
			return fail("InvalidSecurityGroup", "security group '%s' was given twice", id)
		}
	}
	return nil
}

func elbTagRules() tagRules {
	return tagRules{tooMany: "TooManyTags", duplicate: "DuplicateTagKeys", invalid: "ValidationError"}
}
