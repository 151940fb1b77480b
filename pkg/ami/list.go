package ami

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

// Image is a machine image in one region.
type Image struct {
	ID, Name, Region, OS, Architecture string
	Version                            string    // Kubernetes version, as in the query
	Created                            time.Time // zero if AWS does not return it
}

// Query selects the images to list.
type Query struct {
	Owner         string   // owner account, or "self"
	OS            []string // nil means all published operating systems
	Version       string   // "" means the supported versions
	Architectures []string // nil means both
	Regions       []string
	// Releases returns the supported versions. If it is nil or fails, List takes the
	// versions from the names of the images.
	Releases func(context.Context) ([]string, error)
	// Progress is called for each region that has answered or failed; may be nil.
	Progress func(done, total int, region string, err error)
}

// Listing is the result of List.
type Listing struct {
	Images   []Image // x86_64 first; sorted by region, version, operating system
	Versions []string
	Failed   map[string]error // regions that failed
	Releases error            // why the supported versions are unknown
}

// parallel is the number of regions to query at the same time.
const parallel = 8

// regionTimeout is the timeout for one region.
const regionTimeout = time.Minute

// pageSize is the maximum page size of DescribeImages.
const pageSize = 1000

// List returns the newest image of every version, operating system, architecture and
// region. It fails only if the context ends.
func List(ctx context.Context, cfg aws.Config, q Query) (Listing, error) {
	if q.OS == nil {
		q.OS = OperatingSystems()
	}
	if q.Architectures == nil {
		q.Architectures = []string{X8664, Arm64}
	}
	l := Listing{Failed: map[string]error{}}
	var asked errgroup.Group
	asked.Go(func() error {
		l.Versions, l.Releases = q.versions(ctx)
		return nil
	})
	seen, errs := q.ask(ctx, cfg)
	if err := asked.Wait(); err != nil || ctx.Err() != nil {
		return l, errors.Join(err, context.Cause(ctx))
	}
	for i, err := range errs {
		if err != nil {
			l.Failed[q.Regions[i]] = err
		}
	}
	if l.Versions == nil {
		l.Versions = q.versionsIn(seen)
	}
	for _, architecture := range q.Architectures {
		for i, region := range q.Regions {
			l.Images = append(l.Images, q.pick(seen[i], architecture, region, l.Versions)...)
		}
	}
	return l, nil
}

// ask queries all regions, several at a time, and reports progress. The results are in
// the order of the regions.
func (q Query) ask(ctx context.Context, cfg aws.Config) (seen [][]types.Image, errs []error) {
	seen, errs = make([][]types.Image, len(q.Regions)), make([]error, len(q.Regions))
	told := make(chan int, len(q.Regions))
	slots := make(chan struct{}, parallel)
	for i := range q.Regions {
		go func() {
			slots <- struct{}{}
			seen[i], errs[i] = q.in(ctx, cfg, q.Regions[i])
			<-slots
			told <- i
		}()
	}
	for n := range q.Regions { // one at a time, for Progress
		if i := <-told; q.Progress != nil {
			q.Progress(n+1, len(q.Regions), q.Regions[i], errs[i])
		}
	}
	return seen, errs
}

// versions returns the versions to list, or nil if they must be taken from the images.
func (q Query) versions(ctx context.Context) ([]string, error) {
	if q.Version != "" {
		return []string{q.Version}, nil
	}
	if q.Releases == nil {
		return nil, nil
	}
	return q.Releases(ctx)
}

// in returns the candidates in a region.
func (q Query) in(ctx context.Context, cfg aws.Config, region string) ([]types.Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, regionTimeout, fmt.Errorf("no answer within %s", regionTimeout))
	defer cancel()
	var names []string
	for _, os := range q.OS {
		names = append(names, patterns(os, q.Version)...)
	}
	return describe(ctx, client(cfg, region), q.Owner, filters(q.Architectures, names))
}

func client(cfg aws.Config, region string) *ec2.Client {
	return ec2.NewFromConfig(awshttp.Checked(cfg), func(o *ec2.Options) { o.Region = region })
}

// describe returns all images of an owner that match the filters.
func describe(ctx context.Context, c *ec2.Client, owner string, filters []types.Filter) (all []types.Image, err error) {
	p := ec2.NewDescribeImagesPaginator(c, &ec2.DescribeImagesInput{Owners: []string{owner}, Filters: filters, MaxResults: aws.Int32(pageSize)})
	ctx = awshttp.Listing(ctx)
	for p.HasMorePages() {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Images...)
	}
	return all, nil
}

// versionsIn derives the versions to list from the names of images.
func (q Query) versionsIn(seen [][]types.Image) []string {
	var all []release
	for _, images := range seen {
		for _, os := range q.OS {
			for _, i := range images {
				if v, ok := versionIn(aws.ToString(i.Name), os); ok {
					if r, ok := parseRelease(v); ok {
						all = append(all, r)
					}
				}
			}
		}
	}
	return upTo(newestMinors(all))
}

// pick returns the newest image of each version and operating system.
func (q Query) pick(images []types.Image, architecture, region string, versions []string) (picked []Image) {
	for _, version := range versions {
		for _, os := range q.OS {
			if i := newest(images, os, version, architecture); i != nil {
				picked = append(picked, seenAs(*i, region, os, version))
			}
		}
	}
	return picked
}

// newest returns the newest matching image, or nil.
func newest(images []types.Image, os, version, architecture string) (found *types.Image) {
	for n, i := range images {
		if string(i.Architecture) != architecture || !Matches(aws.ToString(i.Name), os, version) {
			continue
		}
		if found == nil || cmp.Or(created(i).Compare(created(*found)), cmp.Compare(*i.ImageId, *found.ImageId)) > 0 {
			found = &images[n]
		}
	}
	return found
}

func seenAs(i types.Image, region, os, version string) Image {
	return Image{
		ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Region: region, OS: os, Version: version,
		Architecture: string(i.Architecture), Created: created(i),
	}
}

// created returns the creation time of an image, or zero if it is missing or invalid.
func created(i types.Image) time.Time {
	t, err := time.Parse(time.RFC3339, aws.ToString(i.CreationDate))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Published lists the operating systems and versions that have images.
type Published struct{ OS, Versions []string }

// Known returns what images exist in one region, for hints when a query has no result.
// Versions are sorted, oldest first.
func Known(ctx context.Context, cfg aws.Config, region, owner string) (Published, error) {
	images, err := describe(ctx, client(cfg, region), owner, filters([]string{X8664, Arm64}, []string{prefix + "*"}))
	if err != nil {
		return Published{}, err
	}
	var p Published
	var versions []release
	for _, i := range images {
		for _, os := range OperatingSystems() {
			v, ok := versionIn(aws.ToString(i.Name), os)
			if r, released := parseRelease(v); ok && released {
				p.OS, versions = append(p.OS, os), append(versions, r)
			}
		}
	}
	slices.Sort(p.OS)
	p.OS = slices.Compact(p.OS)
	slices.SortStableFunc(versions, release.compare)
	for _, r := range slices.Compact(versions) {
		p.Versions = append(p.Versions, r.String())
	}
	return p, nil
}

// BuiltInRegions returns the regions in which images are published, in upstream's order.
func BuiltInRegions() []string {
	return []string{
		"ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-west-1",
		"eu-west-2", "eu-west-3", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
	}
}

// Regions returns the sorted regions that are enabled for the account. It calls the
// region of the configuration.
func Regions(ctx context.Context, cfg aws.Config) (names []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, regionTimeout, fmt.Errorf("no answer within %s", regionTimeout))
	defer cancel()
	out, err := ec2.NewFromConfig(awshttp.Checked(cfg)).DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Regions {
		names = append(names, aws.ToString(r.RegionName))
	}
	slices.Sort(names)
	return names, nil
}
