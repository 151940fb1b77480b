package eks_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// A token for kubectl. Creating it makes no call.
func Example() {
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")}
	token, err := eks.NewToken(context.Background(), cfg, "demo")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.HasPrefix(token.Value, "k8s-aws-v1."), time.Until(token.Expires).Round(time.Minute))
	// Output:
	// true 14m0s
}

// A kubeconfig without a secret: kubectl gets its tokens from a program.
func ExampleKubeconfig_Encode() {
	k := eks.Kubeconfig{
		Cluster:  "demo",
		Endpoint: "https://0A1B.gr7.us-east-1.eks.amazonaws.com",
		CA:       []byte("-----BEGIN CERTIFICATE-----"),
		Region:   "us-east-1",
		Method:   eks.AWSCLI,
	}
	text, err := k.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(text))
	// Output:
	// apiVersion: v1
	// clusters:
	// - cluster:
	//     certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t
	//     server: https://0A1B.gr7.us-east-1.eks.amazonaws.com
	//   name: demo
	// contexts:
	// - context:
	//     cluster: demo
	//     user: demo-user
	//   name: demo-user@demo
	// current-context: demo-user@demo
	// kind: Config
	// users:
	// - name: demo-user
	//   user:
	//     exec:
	//       apiVersion: client.authentication.k8s.io/v1beta1
	//       args:
	//       - eks
	//       - get-token
	//       - --cluster-name
	//       - demo
	//       - --region
	//       - us-east-1
	//       - --output
	//       - json
	//       command: aws
	//       env: null
	//       interactiveMode: IfAvailable
	//       provideClusterInfo: false
}
