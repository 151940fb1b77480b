package awssim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"

	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

func (a *AWS) simulateTagging() {
	on(a, a.getResources, "TagFilters", "ResourceTypeFilters", "ResourcesPerPage", "PaginationToken")
}

// arnTags are the tags of one thing.
type arnTags struct {
	arn  string
	tags map[string]string
	born time.Time
}

// everythingTagged lists the things of all services that have tags, as the
// Resource Groups Tagging API finds them, in order of ARN; AWS promises none.
// Three things it does not imitate: AWS also lists what had tags once, AWS goes
// on for a while listing what has been deleted, and new tags show up late
// (here: with the account's lag, counted from when the thing was made). Roles
// and instance profiles are of no region, and AWS does not list them either.
func (a *AWS) everythingTagged() (all []arnTags) {
	add := func(arn string, tags map[string]string, born time.Time) {
		if len(tags) > 0 && a.visible(born) {
			all = append(all, arnTags{arn, tags, born})
		}
	}
	for id, t := range a.taggable() {
		add(a.regionalARN("ec2", string(kindOf(id).tags)+"/"+id), t.thing().Tags, t.thing().Born)
	}
	// Of what is public AWS's ARNs leave out the account; that this API does so
	// too is not verified.
	public := "arn:" + a.partition() + ":ec2:" + a.o.Region + "::"
	for id, i := range a.state.EC2.Images {
		if i.Owner == Account {
			add(public+"image/"+id, i.Tags, i.Born)
		}
	}
	for id, s := range a.state.EC2.Snapshots {
		add(public+"snapshot/"+id, s.Tags, s.Born)
	}
	for arn, b := range a.state.ELB.LoadBalancers {
		add(arn, b.Tags, b.Born)
	}
	for arn, g := range a.state.ELB.TargetGroups {
		add(arn, g.Tags, g.Born)
	}
	for arn, l := range a.state.ELB.Listeners {
		add(arn, l.Tags, l.Born)
	}
	for name, b := range a.state.ELB.Classic {
		add(a.regionalARN("elasticloadbalancing", "loadbalancer/"+name), b.Tags, b.Born)
	}
	for name, b := range a.state.S3.Buckets {
		add("arn:"+a.partition()+":s3:::"+name, b.Tags, b.Born)
	}
	for _, s := range a.allSecrets() {
		add(s.ARN, s.Tags, s.Born)
	}
	for name, p := range a.state.SSM.Parameters {
		add(a.regionalARN("ssm", "parameter/"+strings.TrimPrefix(name, "/")), p.Tags, p.Modified)
	}
	for _, c := range a.state.EKS.Clusters {
		add(c.ARN, c.Tags, c.Born)
		for _, d := range c.Addons {
			add(d.ARN, d.Tags, d.Born)
		}
		for _, p := range c.PodIdentities {
			add(a.podIdentityARN(c, p), p.Tags, p.Born)
		}
	}
	ordered.By(all, func(x, y arnTags) int { return strings.Compare(x.arn, y.arn) })
	return all
}

func invalidTagging(format string, args ...any) error {
	return &types.InvalidParameterException{Message: aws.String(fmt.Sprintf(format, args...))}
}

// getResources lists what has tags: all filters have to match, each by one of
// its values, or, without values, by its key alone.
func (a *AWS) getResources(in *tagging.GetResourcesInput) (*tagging.GetResourcesOutput, error) {
	if n := in.ResourcesPerPage; n != nil && (*n < 1 || *n > 100) {
		return nil, invalidTagging("ResourcesPerPage must be between 1 and 100")
	}
	if len(in.TagFilters) > 50 || len(in.ResourceTypeFilters) > 100 {
		return nil, invalidTagging("there may be 50 tag filters and 100 resource types")
	}
	for _, f := range in.TagFilters {
		if aws.ToString(f.Key) == "" || len(f.Values) > 20 {
			return nil, invalidTagging("a tag filter has a key, and 20 values at most")
		}
	}
	list := []types.ResourceTagMapping{}
	for _, r := range a.everythingTagged() {
		if ofTypes(r.arn, in.ResourceTypeFilters) && passesTagFilters(r.tags, in.TagFilters) {
			list = append(list, types.ResourceTagMapping{
				ResourceARN: aws.String(r.arn), Tags: writeTags(maps.Clone(r.tags), func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} }),
			})
		}
	}
	size := int32(50)
	set(&size, in.ResourcesPerPage)
	part, next, err := page(a, list, in.PaginationToken, &size, 100)
	if err != nil {
		return nil, &types.PaginationTokenExpiredException{Message: aws.String("The pagination token is not valid.")}
	}
	// The last page has an empty token, and not none.
	return &tagging.GetResourcesOutput{ResourceTagMappingList: part, PaginationToken: aws.String(aws.ToString(next))}, nil
}

// ofTypes reports whether an ARN is of one of several types: "ec2", or
// "ec2:instance".
func ofTypes(arn string, kinds []string) bool {
	parts := strings.SplitN(arn, ":", 6)
	resource, _, _ := strings.Cut(parts[5], "/")
	resource, _, _ = strings.Cut(resource, ":")
	if parts[2] == "s3" {
		resource = "bucket"
	}
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k string) bool { return k == parts[2] || k == parts[2]+":"+resource })
}

// passesTagFilters reports whether tags pass all filters.
func passesTagFilters(tags map[string]string, filters []types.TagFilter) bool {
	return !slices.ContainsFunc(filters, func(f types.TagFilter) bool {
		v, ok := tags[*f.Key]
		return !ok || len(f.Values) > 0 && !slices.Contains(f.Values, v)
	})
}
