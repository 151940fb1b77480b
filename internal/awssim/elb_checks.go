package awssim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// partition is the partition of the region.
func (a *AWS) partition() string {
	switch {
	case strings.HasPrefix(a.o.Region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(a.o.Region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// regionalARN is the ARN of something in the account and the region.
func (a *AWS) regionalARN(service, resource string) string {
	return "arn:" + a.partition() + ":" + service + ":" + a.o.Region + ":" + Account + ":" + resource
}

// hash makes 16 hexadecimal digits.
func (a *AWS) hash() string { return strings.TrimPrefix(a.id("hash"), "hash-0") }

// notSimulated is the error of something that is not simulated.
func notSimulated(format string, args ...any) error {
	return fmt.Errorf("awssim: "+format+" is not simulated", args...)
}

// byKey returns the values of a map in the order of its keys.
func byKey[T any](m map[string]T) (list []T) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

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

// known reports whether the services beside EC2 know a thing of EC2 by now.
func (a *AWS) known(t Thing) bool { return a.now().Sub(t.Born) >= a.o.LagRefs }

// balancerSubnets returns the subnets of a load balancer in the order of their
// zones: at least one, all in one VPC, no two in one zone.
func (a *AWS) balancerSubnets(ids []string) ([]*Subnet, error) {
	zones := map[string]*Subnet{}
	var vpc string
	for _, id := range ids {
		s, ok := a.state.EC2.Subnets[id]
		if !ok || !a.known(s.Thing) {
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
	for _, g := range a.state.EC2.InternetGateways {
		if g.VPC == vpc {
			return "internet-facing", nil
		}
	}
	return "", fail("InvalidSubnet", "VPC %s has no internet gateway", vpc)
}

// balancerGroups checks the security groups of a load balancer.
func (a *AWS) balancerGroups(ids []string, vpc string) error {
	if len(ids) > 5 {
		return fail("InvalidConfigurationRequest", "a load balancer has at most 5 security groups")
	}
	for i, id := range ids {
		g, ok := a.state.EC2.SecurityGroups[id]
		if !ok || g.VPC != vpc || !a.known(g.Thing) {
			return fail("InvalidSecurityGroup", "one or more security groups are invalid: '%s' is not in VPC '%s'", id, vpc)
		}
		if slices.Contains(ids[:i], id) {
			return fail("InvalidSecurityGroup", "security group '%s' was given twice", id)
		}
	}
	return nil
}

// defaultGroup returns the default security group of a VPC, if it has one.
func (a *AWS) defaultGroup(vpc string) []string {
	for _, g := range byKey(a.state.EC2.SecurityGroups) {
		if g.VPC == vpc && g.Name == "default" {
			return []string{g.ID}
		}
	}
	return nil
}

// regroup puts the interfaces of an owner into security groups.
func (a *AWS) regroup(owner string, groups []string) {
	for _, i := range a.state.EC2.Interfaces {
		if i.Owner == owner && i.Dies.IsZero() {
			i.Groups = slices.Clone(groups)
		}
	}
}

// instanceRuns reports whether an instance is running.
func (a *AWS) instanceRuns(i *Instance) bool {
	return i != nil && !i.Running.IsZero() && !a.now().Before(i.Running) && i.Terminating.IsZero() && i.Terminated.IsZero()
}

// tagRules say what a service answers to tags it does not take.
type tagRules struct {
	tooMany, duplicate, invalid string // error codes
}

func elbTagRules() tagRules {
	return tagRules{tooMany: "TooManyTags", duplicate: "DuplicateTagKeys", invalid: "ValidationError"}
}

// readTags checks the tags of a call and adds them to those of a thing, of
// which there may be 50.
func readTags[T any](r tagRules, old map[string]string, tags []T, read func(T) (key, value *string)) (map[string]string, error) {
	all, seen := map[string]string{}, map[string]bool{}
	maps.Copy(all, old)
	for _, t := range tags {
		k, v := read(t)
		key, value := aws.ToString(k), aws.ToString(v)
		switch {
		case key == "" || len(key) > 128 || len(value) > 256:
			return nil, fail(r.invalid, "the tag '%s' is not valid", key)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return nil, fail(r.invalid, "tag keys may not begin with 'aws:': '%s'", key)
		case seen[key]:
			return nil, fail(r.duplicate, "the tag key '%s' was specified more than once", key)
		}
		all[key], seen[key] = value, true
	}
	if len(all) > 50 {
		return nil, fail(r.tooMany, "there may be at most 50 tags")
	}
	return all, nil
}

// writeTags returns tags as a service shows them, in order of key.
func writeTags[T any](tags map[string]string, write func(key, value *string) T) []T {
	out := make([]T, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, write(aws.String(k), aws.String(tags[k])))
	}
	return out
}
