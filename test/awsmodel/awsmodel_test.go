package awsmodel

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func number(n float64) *float64 { return &n }

// model is a small model of EKS.
func model() Models {
	s := &service{Shapes: map[string]shape{
		"Request": {Type: "structure", Required: []string{"name", "roleArn"}, Members: map[string]member{
			"name": {"Name"}, "roleArn": {"Text"}, "tags": {"Tags"}, "resourcesVpcConfig": {"Network"}, "kubernetesNetworkConfig": {"Kubernetes"},
		}},
		"Name":       {Type: "string", Pattern: `[0-9A-Za-z][\u002DA-Za-z0-9_]*`, Min: number(1), Max: number(8)},
		"Text":       {Type: "string"},
		"Tags":       {Type: "map", Key: member{"Name"}, Value: member{"Text"}, Max: number(1)},
		"Network":    {Type: "structure", Members: map[string]member{"subnetIds": {"List"}}},
		"List":       {Type: "list", Member: member{"Name"}, Min: number(1)},
		"Kubernetes": {Type: "structure", Members: map[string]member{"ipFamily": {"Family"}}},
		"Family":     {Type: "string", Enum: []string{"ipv4", "ipv6"}},
	}}
	s.Metadata.ServiceID = "EKS"
	s.Operations = map[string]struct {
		Input *member `json:"input"`
	}{"CreateCluster": {&member{"Request"}}}
	return Models{"EKS": s}
}

func TestCheck(t *testing.T) {
	of := func(change func(*eks.CreateClusterInput)) []string {
		in := &eks.CreateClusterInput{Name: aws.String("my-eks"), RoleArn: aws.String("role")}
		change(in)
		return model().Check("EKS", "CreateCluster", in)
	}
	assert.Empty(t, of(func(*eks.CreateClusterInput) {}))
	for want, change := range map[string]func(*eks.CreateClusterInput){
		"CreateCluster: the required member roleArn is missing":                                             func(in *eks.CreateClusterInput) { in.RoleArn = nil },
		"CreateCluster: the model does not have the member Version":                                         func(in *eks.CreateClusterInput) { in.Version = aws.String("1.34") },
		"CreateCluster.name: length 9 is more than 8":                                                       func(in *eks.CreateClusterInput) { in.Name = aws.String("my-eks-99") },
		"CreateCluster.name: \"my eks\" does not match the pattern [0-9A-Za-z][\\u002DA-Za-z0-9_]* of Name": func(in *eks.CreateClusterInput) { in.Name = aws.String("my eks") },
		"CreateCluster.tags: length 2 is more than 1":                                                       func(in *eks.CreateClusterInput) { in.Tags = map[string]string{"a": "", "b": ""} },
		"CreateCluster.tags key: \"-\" does not match the pattern [0-9A-Za-z][\\u002DA-Za-z0-9_]* of Name":  func(in *eks.CreateClusterInput) { in.Tags = map[string]string{"-": ""} },
		"CreateCluster.resourcesVpcConfig.subnetIds: length 0 is less than 1": func(in *eks.CreateClusterInput) {
			in.ResourcesVpcConfig = &types.VpcConfigRequest{SubnetIds: []string{}}
		},
		"CreateCluster.resourcesVpcConfig.subnetIds[0]: length 0 is less than 1": func(in *eks.CreateClusterInput) {
			in.ResourcesVpcConfig = &types.VpcConfigRequest{SubnetIds: []string{""}}
		},
		"CreateCluster.kubernetesNetworkConfig.ipFamily: \"ipv5\" is not one of ipv4, ipv6": func(in *eks.CreateClusterInput) {
			in.KubernetesNetworkConfig = &types.KubernetesNetworkConfigRequest{IpFamily: "ipv5"}
		},
	} {
		assert.Contains(t, of(change), want)
	}
	assert.Equal(t, []string{"DeleteCluster: the model does not have this operation"}, model().Check("EKS", "DeleteCluster", &eks.DeleteClusterInput{}))
	assert.Equal(t, []string{"EC2: there is no model of this service"}, model().Check("EC2", "RunInstances", nil))
}

func TestPatterns(t *testing.T) {
	for pattern, words := range map[string][2]string{
		`[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*`: {"a 🙂", "a\x01"},
		`[\p{L}\p{Z}\p{N}_.:/=+\-@]*`:                                  {"kubernetes.io/cluster/ä", "a;b"},
		`a|b`:                                                          {"a", "ab"},
	} {
		for i, word := range words {
			ok, err := matches(pattern, word)
			require.NoError(t, err, pattern)
			assert.Equal(t, i == 0, ok, "%s %s", pattern, word)
		}
	}
	_, err := matches(`^(?!\s*$).+`, "a")
	require.Error(t, err, "Go cannot look ahead")
}
