package bootstrap_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
)

// The IAM resources in the CloudFormation template of a configuration.
func Example() {
	c, err := bootstrap.Load("iam.yaml", []byte(`
apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSIAMConfiguration
spec:
  eks:
    disable: true
  region: eu-west-1
  stackNmae: mine
`), bootstrap.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range c.Warnings {
		fmt.Println("warning:", w)
	}
	resources := c.Template().Resources
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		fmt.Println(resources[id].AWSCloudFormationType(), id)
	}
	// Output:
	// warning: iam.yaml:8: spec.stackNmae: the field does not exist and has no effect — did you mean "stackName"?
	// AWS::IAM::InstanceProfile AWSIAMInstanceProfileControlPlane
	// AWS::IAM::InstanceProfile AWSIAMInstanceProfileControllers
	// AWS::IAM::InstanceProfile AWSIAMInstanceProfileNodes
	// AWS::IAM::ManagedPolicy AWSIAMManagedPolicyCloudProviderControlPlane
	// AWS::IAM::ManagedPolicy AWSIAMManagedPolicyCloudProviderNodes
	// AWS::IAM::ManagedPolicy AWSIAMManagedPolicyControllers
	// AWS::IAM::Role AWSIAMRoleControlPlane
	// AWS::IAM::Role AWSIAMRoleControllers
	// AWS::IAM::Role AWSIAMRoleNodes
}
