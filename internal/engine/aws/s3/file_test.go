package s3_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// A URL names a bucket and an object, and no folder.
func TestURLs(t *testing.T) {
	f, err := s3.ParseFile("s3://near/a/b.backup")
	require.NoError(t, err)
	require.Equal(t, s3.File{Bucket: "near", Key: "a/b.backup"}, f)
	require.Equal(t, "s3://near/a/b.backup", f.String())
	for _, url := range []string{"s3://near", "s3://near/", "s3:///a", "s3://near/a/"} {
		_, err := s3.ParseFile(url)
		require.EqualError(t, err, url+": use s3://BUCKET/KEY")
	}
	require.True(t, s3.IsURL("s3://near/a"))
	require.False(t, s3.IsURL("near/a"))
}

// A file is stored once and read again, in buckets of each region; what is there is not overwritten, and an attempt
// whose answer is lost does not take its own object for somebody else's.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		for bucket, region := range map[string]string{"near": "us-east-1", "far": "eu-central-1"} {
			in := &awss3.CreateBucketInput{Bucket: &bucket}
			if region != "us-east-1" {
				in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
			}
			_, err := awss3.NewFromConfig(a.Config()).CreateBucket(t.Context(), in)
			require.NoError(t, err)
		}
		clients := func(p *awssim.Process) *cloud.Clients { return cloud.New(p.Config(), "demo", cloud.Options{}) }
		read := func(f s3.File) (string, error) {
			to, err := files.NewTemporary()
			require.NoError(t, err)
			defer func() { require.NoError(t, to.Close()) }()
			if err := f.Load(t.Context(), clients(a.Process()), to, 1<<20); err != nil {
				return "", err
			}
			text, err := io.ReadAll(to)
			return string(text), err
		}
		for _, bucket := range []string{"near", "far"} {
			f := s3.File{Bucket: bucket, Key: "one"}
			_, err := read(f)
			require.EqualError(t, err, "s3://"+bucket+"/one does not exist")
			require.NoError(t, f.CheckNew(t.Context(), clients(a.Process())))
			lost := a.Process()
			lost.Fault = func(_ int, _, op string) awssim.Fault {
				if op == "PutObject" {
					lost.Fault = nil
					return awssim.LostAfter
				}
				return awssim.None
			}
			require.NoError(t, f.Create(t.Context(), clients(lost), strings.NewReader("content")))
			text, err := read(f)
			require.NoError(t, err)
			require.Equal(t, "content", text)
			require.ErrorAs(t, f.CheckNew(t.Context(), clients(a.Process())), new(*s3.ExistsError))
			err = f.Create(t.Context(), clients(a.Process()), strings.NewReader("other"))
			require.EqualError(t, err, "s3://"+bucket+"/one exists: a backup is never overwritten, so name another key")
			text, err = read(f)
			require.NoError(t, err)
			require.Equal(t, "content", text)
		}
		nowhere := s3.File{Bucket: "nowhere", Key: "one"}
		require.EqualError(t, nowhere.CheckNew(t.Context(), clients(a.Process())), "bucket nowhere does not exist")
		require.EqualError(t, nowhere.Create(t.Context(), clients(a.Process()), strings.NewReader("x")), "bucket nowhere does not exist")
	})
}
