package eks

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
)

// The programs that kubectl can get tokens from. The last two are those of
// AWSManagedControlPlane.spec.tokenMethod.
const (
	Clusterawsadm    ekscontrolplanev1.EKSTokenMethod = "clusterawsadm"
	AWSCLI           ekscontrolplanev1.EKSTokenMethod = "aws-cli"
	IAMAuthenticator ekscontrolplanev1.EKSTokenMethod = "iam-authenticator"
)

// Kubeconfig is what a kubeconfig for an EKS cluster is made from. There is no
// secret in it: kubectl asks a program for a token.
type Kubeconfig struct {
	Cluster  string // name in EKS
	Endpoint string // URL of the API server
	CA       []byte // certificates, PEM
	Region   string

	Profile string // of the AWS configuration; "" for that of the environment
	Role    string // ARN of the role to assume for the token; "" for none

	Method  ekscontrolplanev1.EKSTokenMethod
	Command string // what our own program is run by; "" for clusterawsadm
}

// Encode makes the kubeconfig, with the names of CAPA's: user <cluster>-user,
// context <cluster>-user@<cluster>. Unlike CAPA's it names the region, without
// which the AWS CLI makes no token where the environment does not name one.
func (k Kubeconfig) Encode() ([]byte, error) {
	if k.Cluster == "" || k.Region == "" {
		return nil, errors.New("a kubeconfig needs the name and the region of the cluster")
	}
	if !strings.HasPrefix(k.Endpoint, "https://") {
		return nil, fmt.Errorf("the endpoint %q of the cluster is no https URL", k.Endpoint)
	}
	if len(k.CA) == 0 {
		return nil, errors.New("a kubeconfig needs the certificate of the cluster's CA")
	}
	exec, err := k.exec()
	if err != nil {
		return nil, err
	}
	user := k.Cluster + "-user"
	context := user + "@" + k.Cluster
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{k.Cluster: {Server: k.Endpoint, CertificateAuthorityData: k.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Exec: exec}},
		Contexts:       map[string]*clientcmdapi.Context{context: {Cluster: k.Cluster, AuthInfo: user}},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return out, nil
}

// exec is how kubectl gets a token. The version is the one that most kubectls
// know, as in CAPA's.
func (k Kubeconfig) exec() (*clientcmdapi.ExecConfig, error) {
	out := &clientcmdapi.ExecConfig{APIVersion: ExecV1Beta1, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode}
	option := func(name, value string) {
		if value != "" {
			out.Args = append(out.Args, name, value)
		}
	}
	env := func(name, value string) {
		if value != "" {
			out.Env = append(out.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
		}
	}
	switch k.Method {
	case Clusterawsadm:
		out.Command = k.Command
		if out.Command == "" {
			out.Command = "clusterawsadm"
		}
		out.InstallHint = "clusterawsadm, which makes the tokens for this cluster, has to be in the PATH"
		out.Args = []string{"eks", "token", "--cluster-name", k.Cluster, "--region", k.Region}
		option("--profile", k.Profile)
		option("--role-arn", k.Role)
	case AWSCLI:
		out.Command = "aws"
		out.Args = []string{"eks", "get-token", "--cluster-name", k.Cluster, "--region", k.Region, "--output", "json"}
		option("--role-arn", k.Role)
		env("AWS_PROFILE", k.Profile)
	case IAMAuthenticator:
		out.Command = "aws-iam-authenticator"
		out.Args = []string{"token", "-i", k.Cluster}
		option("-r", k.Role)
		env("AWS_STS_REGIONAL_ENDPOINTS", "regional")
		env("AWS_DEFAULT_REGION", k.Region)
		env("AWS_PROFILE", k.Profile)
	default:
		return nil, fmt.Errorf("spec.tokenMethod: %q is none of %s, %s, %s", k.Method, Clusterawsadm, AWSCLI, IAMAuthenticator)
	}
	return out, nil
}
