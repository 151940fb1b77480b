package kubernetes

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/wire"
)

// templateVersion is a version of a launch template.
type templateVersion struct {
	Template     string   `xml:"launchTemplateId"`
	Number       int      `xml:"versionNumber"`
	Description  string   `xml:"versionDescription"`
	InstanceType string   `xml:"launchTemplateData>instanceType"`
	Image        string   `xml:"launchTemplateData>imageId"`
	Profile      string   `xml:"launchTemplateData>iamInstanceProfile>name"`
	Groups       []string `xml:"launchTemplateData>securityGroupIdSet>item"`
	Volumes      []struct {
		Device    string `xml:"deviceName"`
		Size      string `xml:"ebs>volumeSize"`
		Type      string `xml:"ebs>volumeType"`
		Encrypted string `xml:"ebs>encrypted"`
	} `xml:"launchTemplateData>blockDeviceMappingSet>item"`
	Metadata struct {
		Endpoint string `xml:"httpEndpoint"`
		IPv6     string `xml:"httpProtocolIpv6"`
		HopLimit string `xml:"httpPutResponseHopLimit"`
		Tokens   string `xml:"httpTokens"`
		Tags     string `xml:"instanceMetadataTags"`
	} `xml:"launchTemplateData>metadataOptions"`
	Tags []struct {
		Type string     `xml:"resourceType"`
		Tags []wire.Tag `xml:"tagSet>item"`
	} `xml:"launchTemplateData>tagSpecificationSet>item"`
}

// account serves the simulated account of the shell while a function uses it.
func (s *shell) account(use func(c wire.Client)) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.path, "simulate", "--listen", "127.0.0.1:0")
	cmd.Env = s.env
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	endpoint, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s.t, err)
	use(wire.Client{Endpoint: strings.TrimSpace(endpoint), Region: "us-east-1", HTTP: http.DefaultClient})
	require.NoError(s.t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(s.t, cmd.Wait())
}

const ec2Version = "2016-11-15"

// latest returns the latest version of the launch template of a pool.
func (s *shell) latest(c wire.Client, pool string) templateVersion {
	s.t.Helper()
	var answer struct {
		Versions []templateVersion `xml:"launchTemplateVersionSet>item"`
	}
	require.NoError(
		s.t,
		c.Ask(s.t.Context(), "ec2", ec2Version, "DescribeLaunchTemplateVersions", &answer, "LaunchTemplateName", pool, "LaunchTemplateVersion.1", "$Latest"),
	)
	require.Len(s.t, answer.Versions, 1)
	return answer.Versions[0]
}

// rotates creates a version of the launch template of a pool, as CAPA does when Cluster API has
// created another bootstrap token. Only the user data and its hash in the tags are new.
func (s *shell) rotates(pool string) {
	s.t.Helper()
	s.account(func(c wire.Client) {
		v := s.latest(c, pool)
		data := []byte(fmt.Sprintf("#cloud-config of version %d, with another token", v.Number+1))
		parameters := []string{"LaunchTemplateId", v.Template}
		set := func(field, value string) {
			if value != "" {
				parameters = append(parameters, "LaunchTemplateData."+field, value)
			}
		}
		set("UserData", base64.StdEncoding.EncodeToString(data))
		set("InstanceType", v.InstanceType)
		set("ImageId", v.Image)
		set("IamInstanceProfile.Name", v.Profile)
		for n, id := range v.Groups {
			set(fmt.Sprintf("SecurityGroupId.%d", n+1), id)
		}
		for n, d := range v.Volumes {
			at := fmt.Sprintf("BlockDeviceMapping.%d.", n+1)
			set(at+"DeviceName", d.Device)
			set(at+"Ebs.DeleteOnTermination", "true")
			set(at+"Ebs.VolumeSize", d.Size)
			set(at+"Ebs.VolumeType", d.Type)
			set(at+"Ebs.Encrypted", d.Encrypted)
		}
		set("MetadataOptions.HttpEndpoint", v.Metadata.Endpoint)
		set("MetadataOptions.HttpProtocolIpv6", v.Metadata.IPv6)
		set("MetadataOptions.HttpPutResponseHopLimit", v.Metadata.HopLimit)
		set("MetadataOptions.HttpTokens", v.Metadata.Tokens)
		set("MetadataOptions.InstanceMetadataTags", v.Metadata.Tags)
		for n, of := range v.Tags {
			set(fmt.Sprintf("TagSpecification.%d.ResourceType", n+1), of.Type)
			for i, tag := range of.Tags {
				if strings.HasSuffix(tag.Key, "/bootstrap-data-hash") {
					tag.Value = fmt.Sprintf("%x", sha256.Sum256(data))
				}
				set(fmt.Sprintf("TagSpecification.%d.Tag.%d.Key", n+1, i+1), tag.Key)
				set(fmt.Sprintf("TagSpecification.%d.Tag.%d.Value", n+1, i+1), tag.Value)
			}
		}
		var answer struct{}
		require.NoError(s.t, c.Ask(s.t.Context(), "ec2", ec2Version, "CreateLaunchTemplateVersion", &answer, parameters...))
		require.Equal(s.t, v.Number+1, s.latest(c, pool).Number)
	})
}
