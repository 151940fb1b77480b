package eks

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// SupportedVersions returns the Kubernetes versions of clusters. The newest is the
// default.
func SupportedVersions() []string { return []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35"} }

// released returns when EKS released a version, by its release calendar. Standard support
// lasts for 14 months, and extended support for 12 months after it.
func released(version string) time.Time {
	date, err := time.Parse(time.DateOnly, map[string]string{
		"1.30": "2024-05-23", "1.31": "2024-09-26", "1.32": "2025-01-23", "1.33": "2025-05-29", "1.34": "2025-10-02", "1.35": "2026-01-27",
	}[version])
	if err != nil {
		panic(err) // a version is missing above
	}
	return date
}

// extendedVersions lists those of SupportedVersions that have extended support: those that
// have it in October 2026, and older ones. The list is fixed, so that a run does not depend on
// the date.
func extendedVersions() []string { return []string{"1.30", "1.31", "1.32", "1.33"} }

// describeClusterVersions returns the versions that a cluster may have.
func (svc *Service) describeClusterVersions(in *eks.DescribeClusterVersionsInput) (*eks.DescribeClusterVersionsOutput, error) {
	var found []types.ClusterVersionInformation
	all := SupportedVersions()
	for _, v := range slices.Backward(all) {
		if len(in.ClusterVersions) > 0 && !slices.Contains(in.ClusterVersions, v) {
			continue
		}
		began := released(v)
		x := types.ClusterVersionInformation{
			ClusterVersion: &v, ClusterType: aws.String("eks"), DefaultVersion: v == all[len(all)-1], VersionStatus: types.VersionStatusStandardSupport,
			ReleaseDate: &began, EndOfStandardSupportDate: aws.Time(began.AddDate(0, 14, 0)), EndOfExtendedSupportDate: aws.Time(began.AddDate(0, 26, 0)),
		}
		if slices.Contains(extendedVersions(), v) {
			x.VersionStatus = types.VersionStatusExtendedSupport
		}
		found = append(found, x)
	}
	part, next, err := page(svc, found, in.NextToken, in.MaxResults)
	return &eks.DescribeClusterVersionsOutput{ClusterVersions: part, NextToken: next}, err
}
