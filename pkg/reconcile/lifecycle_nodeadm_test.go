package reconcile_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// requireNodeadm checks that user data is a MIME message with a NodeConfig for the EKS
// cluster.
func requireNodeadm(t *testing.T, s *awssim.State, data []byte, m *manifest.Cluster) {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(data))
	require.NoError(t, err)
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	var config struct {
		APIVersion, Kind string
		Spec             struct {
			Cluster struct{ Name, APIServerEndpoint, CertificateAuthority, CIDR string }
		}
	}
	found := 0
	for parts := multipart.NewReader(message.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		if part.Header.Get("Content-Type") == "application/node.eks.aws" {
			require.NoError(t, yaml.Unmarshal(text, &config))
			found++
		}
	}
	require.Equal(t, 1, found)
	require.Equal(t, "node.eks.aws/v1alpha1 NodeConfig", config.APIVersion+" "+config.Kind)
	c := config.Spec.Cluster
	require.Equal(t, m.EKS.ControlPlane.Spec.EKSClusterName, c.Name)
	require.Regexp(t, `^https://[0-9A-F]+\..*\.eks\.amazonaws\.com$`, c.APIServerEndpoint)
	require.Equal(t, plane(s).ServiceCIDR, c.CIDR)
	ca, err := base64.StdEncoding.DecodeString(c.CertificateAuthority)
	require.NoError(t, err)
	require.NotEmpty(t, ca)
}
