package eks

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// VersionInfo is a Kubernetes version that EKS offers. A date that AWS does not tell is nil.
type VersionInfo struct {
	Version                                            string // "1.34"
	Status                                             string // STANDARD_SUPPORT or EXTENDED_SUPPORT
	Released, StandardSupportEnds, ExtendedSupportEnds *time.Time
}

// Versions lists the Kubernetes versions that clusters may have, or those of them that are
// named. A run goes on without the permission.
func Versions(ctx context.Context, c *cloud.Clients, named ...string) ([]VersionInfo, error) {
	return cloud.Remember(ctx, c, "EKS versions "+strings.Join(named, " "), func(ctx context.Context) (out []VersionInfo, err error) {
		p := eks.NewDescribeClusterVersionsPaginator(c.EKS, &eks.DescribeClusterVersionsInput{ClusterVersions: named})
		all, err := cloud.Pages(ctx, p, func(o *eks.DescribeClusterVersionsOutput) []types.ClusterVersionInformation { return o.ClusterVersions })
		for _, v := range all {
			if v.VersionStatus != types.VersionStatusUnsupported {
				out = append(out, VersionInfo{
					aws.ToString(v.ClusterVersion), string(v.VersionStatus), v.ReleaseDate, v.EndOfStandardSupportDate, v.EndOfExtendedSupportDate,
				})
			}
		}
		return out, err
	})
}
