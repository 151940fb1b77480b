package cli

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

const (
	secretPath     = "/api/v1/namespaces/capa-system/secrets/capa-manager-bootstrap-credentials"
	deploymentPath = "/apis/apps/v1/namespaces/capa-system/deployments/capa-controller-manager"
	oldProfile     = "[default]\naws_access_key_id = OLDKEY\naws_secret_access_key = OLDSECRET\n\n"
	newProfile     = "[default]\naws_access_key_id = NEWKEY\naws_secret_access_key = NEWSECRET\nregion = us-east-1\n\n"
)

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// provider is CAPA in a management cluster. Its Deployment is rolled out immediately, and
// its pods have no annotations.
func provider() map[string]string {
	return map[string]string{
		"/api/v1/namespaces/capa-system": `{"apiVersion": "v1", "kind": "Namespace"}`,
		"/api/v1/namespaces/default":     `{"apiVersion": "v1", "kind": "Namespace"}`,
		secretPath: fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "capa-manager-bootstrap-credentials"},
			"data": {"credentials": %q}}`, encode(oldProfile)),
		deploymentPath: `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "capa-controller-manager", "namespace": "capa-system", "generation": 2},
			"spec": {"replicas": 1, "template": {"metadata": {"labels": {"a": "b"}}}},
			"status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}`,
	}
}

func TestController(t *testing.T) {
	server := newAPIServer(t, provider())
	s := newSession(t)
	kubeconfig := filepath.Join(s.HomeDir, ".kube", "config")
	server.kubeconfig(t, kubeconfig)

	s.types(0, "controller", "print-credentials")
	s.types(1, "controller", "update-credentials")
	s.variables["AWS_B64ENCODED_CREDENTIALS"] = encode(newProfile)
	s.types(0, "controller", "update-credentials", "--kubeconfig", kubeconfig, "--kubeconfig-context", "management")
	assert.NotContains(t, s.out.String()+s.err.String(), "NEW", "the secret is not told")
	assert.Equal(t, encode(newProfile), server.at(secretPath, "data", "credentials"))
	s.types(0, "controller", "update-credentials", "--show")
	s.types(0, "controller", "rollout-controller")
	assert.NotNil(t, server.at(deploymentPath, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"))
	s.types(0, "controller", "rollout-controller", "--wait")
	s.types(0, "controller", "zero-credentials")
	assert.Equal(t, "Cg==", server.at(secretPath, "data", "credentials"))
	s.types(0, "controller", "print-credentials")

	s.In = strings.NewReader(encode(newProfile) + "\n")
	s.types(0, "controller", "update-credentials", "--from-file", "-")
	assert.Equal(t, encode(newProfile), server.at(secretPath, "data", "credentials"))
	s.variables["AWS_B64ENCODED_CREDENTIALS"] = ""
	s.types(0, "controller", "update-credentials")
	assert.Equal(t, "Cg==", server.at(secretPath, "data", "credentials"), "an empty value zeroes, as it does upstream")
	s.types(1, "controller", "update-credentials", "--from-file", "-")
	s.types(1, "controller", "update-credentials", "--from-file", "/nope")

	server.mu.Lock()
	delete(server.objects[secretPath]["data"].(map[string]any), "credentials")
	server.mu.Unlock()
	s.types(0, "controller", "print-credentials")
	s.types(1, "controller", "print-credentials", "--namespace", "default")
	s.types(1, "controller", "zero-credentials", "--namespace", "nowhere")
	s.types(1, "controller", "rollout-controller", "--namespace", "default")
	s.types(1, "controller", "print-credentials", "--kubeconfig-context", "nope")
	server.denied = secretPath
	s.types(1, "controller", "print-credentials")
	s.types(1, "controller", "zero-credentials")
	server.denied = ""
	s.terminal("")
	s.types(0, "controller", "zero-credentials")
	s.types(1, "controller", "zero-credentials", "--namespace", "default")
	golden.Assert(t, "controller.txt", s.transcript(server.URL, "http://SERVER"))
}

func TestControllerRefusesWhatIsNoProfile(t *testing.T) {
	server := newAPIServer(t, provider())
	s := newShell(t)
	server.kubeconfig(t, filepath.Join(s.HomeDir, ".kube", "config"))
	file := filepath.Join(t.TempDir(), "value")
	for value, want := range map[string]string{
		"SECRET-not-base64":            "the value is not base64",
		newProfile:                     "the profile is plain text",
		encode("SECRET"):               "has no [profile]",
		encode("[default]\nSECRET=1"):  "has no aws_access_key_id, role_arn",
		encode(encode(newProfile)):     "has no [profile]",
		encode(newProfile)[:30] + "=!": "the value is not base64",
	} {
		s.variables["AWS_B64ENCODED_CREDENTIALS"] = value
		assert.Equal(t, 1, s.run("controller", "update-credentials"))
		assert.Contains(t, s.err.String(), "error: AWS_B64ENCODED_CREDENTIALS: ")
		assert.Contains(t, s.err.String(), want)
		assert.NotContains(t, s.err.String(), "SECRET-not")
		assert.NotContains(t, s.err.String(), "NEWSECRET")
		require.NoError(t, os.WriteFile(file, []byte(value), 0o600))
		assert.Equal(t, 1, s.run("controller", "update-credentials", "--from-file", file))
		assert.Contains(t, s.err.String(), file+": ")
		assert.Contains(t, s.err.String(), want)
	}
	assert.Empty(t, server.patched, "nothing was sent")
	for _, good := range []string{"[p]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = y\n", "[default]\ncredential_process = /bin/x\n"} {
		s.variables["AWS_B64ENCODED_CREDENTIALS"] = encode(good)
		assert.Equal(t, 0, s.run("controller", "update-credentials"), s.err.String())
	}
}

// podIdentities creates the cluster "demo", roles that trust pods, and more associations
// than a page contains.
func podIdentities(t *testing.T, a *awssim.AWS) {
	eksClusters(t, a)
	a.Edit(func(s *awssim.State) {
		for _, name := range []string{"pods", "other", "controllers.cluster-api-provider-aws.sigs.k8s.io"} {
			s.IAM.Roles[name] = &awssim.Role{Name: name, Service: "pods.eks.amazonaws.com"}
		}
		s.IAM.Roles["deep"] = &awssim.Role{Name: "deep", Path: "/a/b/", Service: "pods.eks.amazonaws.com"}
	})
	a.Edit(func(s *awssim.State) { // calls would exceed EKS's rate
		for i := range 130 {
			id := fmt.Sprintf("a-%017d", i)
			s.EKS.Clusters["demo"].PodIdentities[id] = &ekssim.PodIdentity{
				ID: id, Namespace: "capa-system", ServiceAccount: fmt.Sprint("other-", i), RoleARN: "arn:aws:iam::123456789012:role/other",
			}
		}
	})
}

func TestUsePodIdentity(t *testing.T) {
	s := newSession(t)
	s.simulates(podIdentities)
	use := func(code int, args ...string) {
		t.Helper()
		s.types(code, append([]string{"controller", "use-pod-identity"}, args...)...)
	}
	use(0, "-n", "demo")
	use(0, "-n", "demo")
	use(0, "-n", "demo", "--role-name", "pods")
	use(0, "-n", "demo", "--role-name", "arn:aws:iam::123456789012:role/pods")
	use(0, "-n", "demo", "--role-name", "a/b/deep")
	use(0, "-n", "demo", "--service-account", "other-129", "--role-name", "other")
	use(1, "-n", "demo", "--role-name", "nobody")
	use(1, "-n", "demo", "--role-name", "arn:aws:iam::999999999999:role/pods")
	use(1, "-n", "demo", "--role-name", "nodes.cluster-api-provider-aws.sigs.k8s.io")
	use(1, "-n", "nope")
	use(1)
	s.terminal("")
	use(0, "-n", "demo", "--namespace", "elsewhere", "--role-name", "pods")
	use(1, "-n", "nope")
	golden.Assert(t, "use-pod-identity.txt", s.transcript())
}
