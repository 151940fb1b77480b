package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Place is the state of a region other than the account's own.
type Place struct {
	Images    map[string]*Image
	Snapshots map[string]*Snapshot

	stocked bool // with the public images
}

// MarshalJSON omits the public images.
func (p *Place) MarshalJSON() ([]byte, error) {
	own := maps.Clone(p.Images)
	maps.DeleteFunc(own, func(_ string, i *Image) bool { return i.Given })
	return json.Marshal(struct {
		Images    map[string]*Image
		Snapshots map[string]*Snapshot
	}{own, p.Snapshots})
}

// place is a region in a call.
type place struct {
	region string
	*Place
}

// published lists the regions in which Cluster API's images are published.
func published() []string {
	return []string{
		"ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-west-1",
		"eu-west-2", "eu-west-3", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
	}
}

// optIn returns the opt-in status of a region; "" if the region does not exist. Of two
// regions with opt-in, the account has opted in to one.
func (svc *Service) optIn(region string) string {
	switch {
	case slices.Contains(append(published(), "ap-northeast-3", "eu-north-1"), region):
		return "opt-in-not-required"
	case region == "af-south-1" || region == svc.Region:
		return "opted-in"
	case region == "me-south-1":
		return "not-opted-in"
	}
	return ""
}

// placeIn returns a region of the account.
func (svc *Service) placeIn(region string) (place, error) {
	s := svc.state
	region = cmp.Or(region, svc.Region)
	switch svc.optIn(region) {
	case "":
		host := endpoint(region)
		return place{}, &smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}}
	case "not-opted-in":
		return place{}, core.Fail("AuthFailure", "AWS was not able to validate the provided access credentials")
	}
	if region == svc.Region {
		if s.Snapshots == nil { // from an account saved by an older version
			s.Snapshots = map[string]*Snapshot{}
		}
		return place{region, &Place{Images: s.Images, Snapshots: s.Snapshots}}, nil
	}
	if s.Elsewhere == nil {
		s.Elsewhere = map[string]*Place{}
	}
	p := s.Elsewhere[region]
	if p == nil {
		p = &Place{Images: map[string]*Image{}, Snapshots: map[string]*Snapshot{}}
		s.Elsewhere[region] = p
	}
	if !p.stocked {
		p.stocked = true
		for _, i := range ImagesIn(region) {
			if i.Owner != communityImages || slices.Contains(published(), region) {
				p.Images[i.ID] = i
			}
		}
	}
	return place{region, p}, nil
}

// places returns all regions with state, the account's own first.
func (svc *Service) places() []place {
	s := svc.state
	all := []place{{svc.Region, &Place{Images: s.Images, Snapshots: s.Snapshots}}}
	for _, region := range core.SortedKeys(s.Elsewhere) {
		all = append(all, place{region, s.Elsewhere[region]})
	}
	return all
}

func (svc *Service) describeRegions(_ place, in *ec2.DescribeRegionsInput) (*ec2.DescribeRegionsOutput, error) {
	keep, err := matching(in.Filters, fields[string]{
		"region-name":   oneValue,
		"opt-in-status": func(r string) []string { return []string{svc.optIn(r)} },
		"endpoint":      func(r string) []string { return []string{endpoint(r)} },
	}, nil)
	if err != nil {
		return nil, err
	}
	all := append(published(), "af-south-1", "ap-northeast-3", "eu-north-1", "me-south-1", svc.Region)
	slices.Sort(all)
	all = slices.Compact(all)
	for _, name := range in.RegionNames {
		if !slices.Contains(all, name) {
			return nil, core.Fail("InvalidParameterValue", "invalid region: [%s]", name)
		}
	}
	slices.Reverse(all) // AWS does not guarantee an order
	out := &ec2.DescribeRegionsOutput{}
	for _, r := range all {
		open := aws.ToBool(in.AllRegions) || svc.optIn(r) != "not-opted-in"
		if open && keep(r) && (len(in.RegionNames) == 0 || slices.Contains(in.RegionNames, r)) {
			out.Regions = append(out.Regions, types.Region{RegionName: aws.String(r), Endpoint: aws.String(endpoint(r)), OptInStatus: aws.String(svc.optIn(r))})
		}
	}
	return out, nil
}

func endpoint(region string) string { return "ec2." + region + "." + core.DNSSuffix(region) }

// everywhere registers the handler of an operation that works in every region.
func everywhere[In, Out any](svc *Service, answer func(place, *In) (*Out, error), fields ...string) {
	core.OnEverywhere(svc.Account, func(ctx context.Context, in *In) (*Out, error) {
		where, err := svc.placeIn(awsmiddleware.GetRegion(ctx))
		if err != nil {
			return nil, err
		}
		return answer(where, in)
	}, fields...)
}
