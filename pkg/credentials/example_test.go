package credentials_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/pkg/credentials"
)

// The value of AWS_B64ENCODED_CREDENTIALS for "clusterctl init".
func Example() {
	profile := credentials.Profile(aws.Credentials{AccessKeyID: "AKIAEXAMPLE", SecretAccessKey: "secret"}, "us-east-1")
	fmt.Print(profile)
	fmt.Println(credentials.Encode(profile))
	// Output:
	// [default]
	// aws_access_key_id = AKIAEXAMPLE
	// aws_secret_access_key = secret
	// region = us-east-1
	//
	// W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkID0gQUtJQUVYQU1QTEUKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5ID0gc2VjcmV0CnJlZ2lvbiA9IHVzLWVhc3QtMQoK
}
