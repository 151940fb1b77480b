package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

func TestPartition(t *testing.T) {
	for region, want := range map[string]string{
		"eu-central-1": "aws", "us-east-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "us-iso-east-1": "aws-iso",
		"us-isob-east-1": "aws-iso-b", "eu-isoe-west-1": "aws-iso-e", "us-isof-south-1": "aws-iso-f", "eusc-de-east-1": "aws-eusc",
	} {
		c := Cluster{Region: region, Infra: &infrav1.AWSCluster{}}
		assert.Equal(t, want, c.Partition(), region)
		c.Infra.Spec.Partition = "aws-us-gov"
		assert.Equal(t, "aws-us-gov", c.Partition(), "the manifest wins")
	}
}
