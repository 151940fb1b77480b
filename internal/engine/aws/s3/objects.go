package s3

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// bootDataFolders returns the key prefixes under which this program and CAPA store boot data.
func bootDataFolders() []string { return []string{"control-plane/", "node/", "machine-pool/"} }

func isBootData(key *string) bool {
	return slices.ContainsFunc(bootDataFolders(), func(folder string) bool { return strings.HasPrefix(aws.ToString(key), folder) })
}

// deleteBootData deletes all versions of the objects with boot data, and the delete markers of objects that have no other version.
func deleteBootData(ctx context.Context, c *cloud.Clients, bucket string) error {
	ctx = cloud.Listing(ctx)
	var gone []types.ObjectIdentifier
	var markers []types.DeleteMarkerEntry
	others := map[string]bool{}
	for p := s3.NewListObjectVersionsPaginator(c.S3, &s3.ListObjectVersionsInput{Bucket: &bucket}); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, v := range page.Versions {
			if isBootData(v.Key) {
				gone = append(gone, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
			} else {
				others[aws.ToString(v.Key)] = true
			}
		}
		markers = append(markers, page.DeleteMarkers...)
	}
	for _, m := range markers {
		if !others[aws.ToString(m.Key)] { // without its marker, an older version is an object again
			gone = append(gone, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
	}
	const most = 1000 // that one request deletes
	for part := range slices.Chunk(gone, most) {
		out, err := c.S3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: part, Quiet: aws.Bool(true)}})
		if err != nil {
			return err
		}
		if len(out.Errors) > 0 {
			return fmt.Errorf("%s: %s", aws.ToString(out.Errors[0].Key), aws.ToString(out.Errors[0].Message))
		}
	}
	return nil
}

// othersObjects names the objects in a bucket that no run has stored, such as backups. They are not deleted, and S3 does not delete a bucket that
// is not empty.
func othersObjects(ctx context.Context, c *cloud.Clients, s BucketState) (string, error) {
	const enough, shown = 1000, 3
	var keys []string
	latest := false
	for p := s3.NewListObjectVersionsPaginator(c.S3, &s3.ListObjectVersionsInput{Bucket: &s.Name}); p.HasMorePages() && len(keys) < enough; {
		page, err := p.NextPage(cloud.Listing(ctx))
		if err != nil {
			return "", cloud.IgnoreNotFound(err)
		}
		for _, v := range page.Versions {
			if key := aws.ToString(v.Key); !isBootData(v.Key) {
				latest = latest || aws.ToBool(v.IsLatest)
				if n := len(keys); n == 0 || keys[n-1] != key { // S3 lists by key
					keys = append(keys, key)
				}
			}
		}
	}
	if len(keys) == 0 {
		return "", nil
	}
	number := text.Count(len(keys), "object")
	if len(keys) >= enough {
		number = fmt.Sprintf("more than %d objects", enough)
	}
	list := strings.Join(keys[:min(len(keys), shown)], ", ")
	if len(keys) > shown {
		list += ", …"
	}
	what, remedy := "has %s that no run has stored (%s)", fmt.Sprintf("aws s3 mv --recursive%s s3://%s s3://ANOTHER-BUCKET", exceptBootData(), s.Name)
	if !latest {
		what = "has older versions of %s that no run has stored (%s)"
		remedy = fmt.Sprintf("aws s3api list-object-versions --bucket %s shows them, and aws s3api delete-object --version-id deletes one", s.Name)
	}
	return fmt.Sprintf("bucket %s "+what+", and is only deleted without them: %s", s.Name, number, list, remedy), nil
}

func exceptBootData() (options string) {
	for _, folder := range bootDataFolders() {
		options += fmt.Sprintf(" --exclude '%s*'", folder)
	}
	return options
}
