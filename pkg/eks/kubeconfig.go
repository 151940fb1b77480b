package eks

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
)

// The programs from which kubectl can get tokens. The last two are the values of
// AWSManagedControlPlane.spec.tokenMethod.
const (
	Clusterawsadm    ekscontrolplanev1.EKSTokenMethod = "clusterawsadm"
	AWSCLI           ekscontrolplanev1.EKSTokenMethod = "aws-cli"
	IAMAuthenticator ekscontrolplanev1.EKSTokenMethod = "iam-authenticator"
)

// Kubeconfig is the input for a kubeconfig of an EKS cluster. The kubeconfig contains no
// secret: kubectl gets a token from a program.
type Kubeconfig struct {
	Cluster  string // name in EKS
	Endpoint string // URL of the API server
	CA       []byte // PEM certificates
	Region   string

	Profile string // of the AWS configuration; "" means that of the environment
	Role    string // ARN of the role to assume for the token; "" means none

	Method  ekscontrolplanev1.EKSTokenMethod
	Command string // the command of this program; "" means clusterawsadm
}

// Encode returns the kubeconfig, with the names of CAPA: user <cluster>-user, context
// <cluster>-user@<cluster>. Unlike CAPA it sets the region, without which the AWS CLI
// creates no token if the environment does not set it.
func (k Kubeconfig) Encode() ([]byte, error) {
	if k.Cluster == "" || k.Region == "" {
		return nil, errors.New("a kubeconfig needs the name and the region of the cluster")
	}
	if !strings.HasPrefix(k.Endpoint, "https://") {
		return nil, fmt.Errorf("the endpoint %q of the cluster is not an https URL", k.Endpoint)
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

// exec returns the exec configuration of kubectl. As in CAPA, it has the API version that
// most kubectl versions support.
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
		out.InstallHint = "clusterawsadm creates the tokens for this cluster and must be in the PATH"
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
		return nil, fmt.Errorf("spec.tokenMethod: %q is not one of %s, %s, %s", k.Method, Clusterawsadm, AWSCLI, IAMAuthenticator)
	}
	return out, nil
}
