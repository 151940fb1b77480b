package eks_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// EKS adds no user data if the launch template sets an AMI. Without user data, the AMIs of EKS never join the cluster; a custom AMI may.
func TestImagesWithoutUserData(t *testing.T) {
	const (
		file  = "eks-templates.yaml"
		batch = "        configRef:\n          apiGroup: bootstrap.cluster.x-k8s.io\n          kind: NodeadmConfig\n          name: eks-templates-batch\n"
		none  = "        dataSecretName: ''\n"
		own   = "ami-0123456789abcdef1"
	)
	golden := func(s *awssim.State) {
		for _, i := range s.EC2.Images {
			if i.Architecture == "arm64" && i.RootDevice != "" {
				x := *i
				x.ID, x.Name = own, "golden-nodes-7"
				s.EC2.Images[own] = &x
				return
			}
		}
	}
	for name, c := range map[string]edited{
		"of EKS": {
			file,
			[]string{batch, none},
			nil,
			`ami: the image amazon-eks-\S+ is one of EKS, which does not join EKS without user data, and the node group has none: set bootstrap.configRef`,
		},
		"of one's own": {file, []string{batch, none, "eksLookupType: AmazonLinux2023\n    instanceType: m6g", "id: " + own + "\n    instanceType: m6g"}, golden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.try(t)
		})
	}
}
