//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// images runs a command about images in that account.
func images(t *testing.T, server *moto.Server, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"ami"}, args...)...)
	cmd.Env = []string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "AWS_ENDPOINT_URL=" + server.URL, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "HTTPS_PROXY=http://127.0.0.1:1", // the release server is unreachable
	}
	var out, story bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &story
	require.NoError(t, cmd.Run(), "%s\n%s%s", args, &out, &story)
	return out.String(), story.String()
}

// TestImages lists the images, without internet access, and copies one.
func TestImages(t *testing.T) {
	server := moto.Start(t)
	stdout, stderr := images(t, server, "list", "--region", "eu-west-1")
	assert.Equal(t, `KUBERNETES VERSION   REGION      OS               NAME                                         AMI ID
v1.34.2              eu-west-1   ubuntu-24.04     capa-ami-ubuntu-24.04-v1.34.2-1760000000     ami-0c0ffee0000000001
v1.34.2              eu-west-1   flatcar-stable   capa-ami-flatcar-stable-v1.34.2-1760000000   ami-0c0ffee0000000002
v1.33.4              eu-west-1   ubuntu-24.04     capa-ami-ubuntu-24.04-v1.33.4-1755000000     ami-0c0ffee0000000005
`, stdout)
	assert.Contains(t, stderr, "the list of supported Kubernetes versions is not available")

	stdout, _ = images(
		t,
		server,
		"list",
		"--kubernetes-version",
		"1.34.2",
		"--os",
		"ubuntu-24.04",
		"--owner-id",
		"819546954734",
		"--architecture",
		"all",
		"-o",
		"json",
	)
	var list struct {
		Kind  string
		Items []struct {
			Spec struct{ Region, ImageID, Architecture string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &list))
	assert.Equal(t, "AWSAMIList", list.Kind)
	regions := map[string]bool{}
	for _, i := range list.Items {
		regions[i.Spec.Region] = true
	}
	assert.Greater(t, len(regions), 15, "all regions of the account")
	assert.Len(t, list.Items, 2*len(regions), "of both architectures")

	copyIt := []string{"copy", "--kubernetes-version", "v1.34.2", "--os", "ubuntu-24.04", "--source-region", "us-east-1", "--region", "us-west-2"}
	stdout, stderr = images(t, server, append(copyIt, "--dry-run")...)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "dry run: ami-0c0ffee0000000001 would be copied from us-east-1 to us-west-2")
	first, _ := images(t, server, append(copyIt, "--wait")...)
	assert.Contains(t, first, "name: capa-ami-ubuntu-24.04-v1.34.2-1760000000\n")
	_, stderr = images(t, server, copyIt...)
	assert.Contains(t, stderr, "is an existing copy")
	own, err := ec2.NewFromConfig(server.Config, func(o *ec2.Options) { o.Region = "us-west-2" }).
		DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"self"}})
	require.NoError(t, err)
	require.Len(t, own.Images, 1)
	assert.Contains(t, first, "imageID: "+*own.Images[0].ImageId+"\n")
}
