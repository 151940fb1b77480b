package elb

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkName validates the name of a load balancer or a target group.
func checkName(what, name string) error {
	switch {
	case name == "":
		return core.Fail("ValidationError", "1 validation error detected: the %s name must not be empty", what)
	case len(name) > 32:
		return core.Fail("ValidationError", "%s name '%s' cannot be longer than '32' characters", what, name)
	case !regex.Of(`^[A-Za-z0-9-]+$`).MatchString(name):
		return core.Fail("ValidationError", "%s name '%s' can only contain characters that are alphanumeric characters and hyphens(-)", what, name)
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"):
		return core.Fail("ValidationError", "%s name '%s' cannot begin or end with a hyphen(-)", what, name)
	case strings.HasPrefix(name, "internal-"):
		return core.Fail("ValidationError", "%s name '%s' cannot begin with 'internal-'", what, name)
	}
	return nil
}

// byARN returns the load balancer, the listener or the target group with an ARN; kind says which.
func byARN[T any](svc *Service, all map[string]*T, kind string, arn *string, missing func(string) error) (*T, error) {
	id := aws.ToString(arn)
	if !strings.HasPrefix(id, svc.RegionalARN("elasticloadbalancing", strings.ReplaceAll(kind, " ", "")+"/")) {
		return nil, core.Fail("ValidationError", "'%s' is not a valid %s ARN", id, kind)
	}
	if x, ok := all[id]; ok {
		return x, nil
	}
	return nil, missing(id)
}

// leastFree is how many free addresses a subnet of a new load balancer has ("Network Load Balancers",
// "Subnets for your load balancer", and the same for Classic Load Balancers, in the Elastic Load Balancing user guides).
const leastFree = 8

// balancerSubnets returns the subnets of a load balancer, sorted by zone: at least one,
// all in one VPC, one per zone.
func (svc *Service) balancerSubnets(ids []string) ([]*ec2.Subnet, error) {
	zones := map[string]*ec2.Subnet{}
	var vpc string
	for _, id := range ids {
		s := svc.ec2.Subnet(id)
		if s == nil || !svc.ec2.Known(s.Thing) {
			return nil, core.Fail("SubnetNotFound", "the subnet ID '%s' does not exist", id)
		}
		if vpc != "" && s.VPC != vpc {
			return nil, core.Fail("InvalidConfigurationRequest", "all subnets must belong to the same VPC: '%s'", vpc)
		}
		if _, taken := zones[s.Zone]; taken {
			return nil, core.Fail("InvalidConfigurationRequest", "a load balancer cannot be attached to multiple subnets in the same Availability Zone")
		}
		if s.CIDR != "" && svc.ec2.Free(s) < leastFree {
			return nil, core.Fail("InvalidSubnet", "Not enough IP space available in %s. ELB requires at least %d free IP addresses in each subnet.", id, leastFree)
		}
		vpc, zones[s.Zone] = s.VPC, s
	}
	if len(zones) == 0 {
		return nil, core.Fail("ValidationError", "at least one subnet must be specified")
	}
	return core.ByKey(zones), nil
}

// balancerScheme validates the scheme of a load balancer in a VPC, and returns it with
// its default.
func (svc *Service) balancerScheme(scheme, vpc string) (string, error) {
	switch scheme {
	case "internal":
		return scheme, nil
	case "", "internet-facing":
	default:
		return "", core.Fail("InvalidScheme", "scheme '%s' must be either 'internet-facing' or 'internal'", scheme)
	}
	if svc.ec2.GatewayOf(vpc) != nil {
		return "internet-facing", nil
	}
	return "", core.Fail("InvalidSubnet", "VPC %s has no internet gateway", vpc)
}

// balancerGroups validates the security groups of a load balancer.
func (svc *Service) balancerGroups(ids []string, vpc string) error {
	if len(ids) > 5 {
		return core.Fail("InvalidConfigurationRequest", "a load balancer has at most 5 security groups")
	}
	for i, id := range ids {
		g := svc.ec2.SecurityGroup(id)
		if g == nil || g.VPC != vpc || !svc.ec2.Known(g.Thing) {
			return core.Fail("InvalidSecurityGroup", "one or more security groups are invalid: '%s' is not in VPC '%s'", id, vpc)
		}
		if slices.Contains(ids[:i], id) {
			return core.Fail("InvalidSecurityGroup", "security group '%s' was given twice", id)
		}
	}
	return nil
}

func tagRules() core.TagRules {
	return core.TagRules{TooMany: "TooManyTags", Duplicate: "DuplicateTagKeys", Invalid: "ValidationError"}
}
