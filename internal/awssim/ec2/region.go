package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Place is what is kept of a region other than the account's own.
type Place struct {
	Images    map[string]*Image
	Snapshots map[string]*Snapshot

	stocked bool // with the images that everybody finds there
}

// MarshalJSON leaves out what everybody finds in the region.
func (p *Place) MarshalJSON() ([]byte, error) {
	own := maps.Clone(p.Images)
	maps.DeleteFunc(own, func(_ string, i *Image) bool { return i.Given })
	return json.Marshal(struct {
		Images    map[string]*Image
		Snapshots map[string]*Snapshot
	}{own, p.Snapshots})
}

// place is a region as a call sees it.
type place struct {
	region string
	*Place
}

// published are the regions that Cluster API's images are published in.
func published() []string {
	return []string{
		"ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-west-1",
		"eu-west-2", "eu-west-3", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
	}
}

// optIn says whether the account may use a region, which is "" for one that
// does not exist. One that needs opting in to is open, another is not.
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
		host := "ec2." + region + ".amazonaws.com"
		return place{}, &smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}}
	case "not-opted-in":
		return place{}, core.Fail("AuthFailure", "AWS was not able to validate the provided access credentials")
	}
	if region == svc.Region {
		if s.Snapshots == nil { // of an account that was saved before there were any
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

// places returns every region that has been looked at, the account's own
// first.
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
		"region-name":   one,
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
	slices.Reverse(all) // AWS promises no order
	out := &ec2.DescribeRegionsOutput{}
	for _, r := range all {
		open := aws.ToBool(in.AllRegions) || svc.optIn(r) != "not-opted-in"
		if open && keep(r) && (len(in.RegionNames) == 0 || slices.Contains(in.RegionNames, r)) {
			out.Regions = append(out.Regions, types.Region{RegionName: aws.String(r), Endpoint: aws.String(endpoint(r)), OptInStatus: aws.String(svc.optIn(r))})
		}
	}
	return out, nil
}

func endpoint(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return fmt.Sprintf("ec2.%s.amazonaws.com.cn", region)
	}
	return fmt.Sprintf("ec2.%s.amazonaws.com", region)
}

// everywhere registers the answer to an operation that is answered in every
// region, and not only in the account's own.
func everywhere[In, Out any](svc *Service, answer func(place, *In) (*Out, error), fields ...string) {
	core.OnEverywhere(svc.Account, func(ctx context.Context, in *In) (*Out, error) {
		where, err := svc.placeIn(awsmiddleware.GetRegion(ctx))
		if err != nil {
			return nil, err
		}
		return answer(where, in)
	}, fields...)
}
