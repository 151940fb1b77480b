package topology_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// A plan refuses machines in another zone than their failure domain, machines with a public address in a private subnet, and machines of the control
// plane that filters put into a zone of which the load balancer has no subnet.
func TestMisplacedMachines(t *testing.T) {
	const (
		privateA, privateB = "subnet-0000000000000002a", "subnet-0000000000000002b"
		publicB            = "subnet-0000000000000001b"
		none               = ""
	)
	for name, c := range map[string]struct {
		subnet *infrav1.AWSResourceReference
		zone   string
		public bool
		want   string
	}{
		"the zone of the subnet": {byID(privateB), "us-east-1b", false, none},
		"another zone": {
			byID(privateA), "us-east-1b", false,
			`spec.template.spec.subnet: the subnet ` + privateA + ` is in us-east-1a, and the failureDomain is us-east-1b: choose a subnet in us-east-1b, or remove`,
		},
		"public":                     {byID(publicB), "", true, none},
		"public, in a private one":   {byID(privateB), "", true, `spec.template.spec.publicIP: the subnet ` + privateB + ` is private, and a public address is of no use there`},
		"filters, in a private one":  {byFilter("subnet-id", privateB), "", true, `the subnet ` + privateB + ` is private`},
		"filters and a zone":         {byFilter("subnet-id", "*2b"), "us-east-1b", false, none},
		"filters, without the zone":  {byFilter("subnet-id", privateA), "us-east-1b", false, `no subnet matches subnet-id=` + privateA + ` in us-east-1b`},
		"private, in a private one":  {byID(privateB), "", false, none},
		"filters that match nothing": {byFilter("tag:Name", "nothing"), "", false, `no subnet matches tag:Name=nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.ByoVPC)
			spec := &m.Deployments[0].Template.Spec.Template.Spec
			spec.Subnet, spec.PublicIP = c.subnet, &c.public
			m.Deployments[0].Object.Spec.Template.Spec.FailureDomain = c.zone
			requireRefusal(t, m, c.want)
		})
	}
	t.Run("control plane", func(t *testing.T) {
		m := enginetest.Rewritten(t, enginetest.ByoVPC, "    loadBalancerType: nlb\n", "    loadBalancerType: nlb\n    subnets: ["+publicB+"]\n")
		m.ControlPlane.Template.Spec.Template.Spec.Subnet = byFilter("subnet-id", privateA)
		requireRefusal(t, m, `machines of the control plane are in us-east-1a, and the load balancer has subnets in us-east-1b only`)
		require.NotNil(t, m.ControlPlane)
	})
}

func byID(id string) *infrav1.AWSResourceReference { return &infrav1.AWSResourceReference{ID: &id} }

func byFilter(name, value string) *infrav1.AWSResourceReference {
	return &infrav1.AWSResourceReference{Filters: []infrav1.Filter{{Name: name, Values: []string{value}}}}
}

// EKS starts pods on Fargate in private subnets only.
func TestFargateInPublicSubnets(t *testing.T) {
	for id, want := range map[string]string{
		"subnet-0000000000000002a": "",
		"subnet-0000000000000001a": `AWSFargateProfile/batch spec.subnetIDs: the subnet subnet-0000000000000001a is public, and EKS starts pods on Fargate in private subnets only`,
	} {
		m := enginetest.LoadQuick(t, "eks-byo-vpc.yaml")
		m.EKS.Fargate = append(m.EKS.Fargate, &expinfrav1.AWSFargateProfile{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: expinfrav1.FargateProfileSpec{
			ClusterName: m.Name, ProfileName: "batch", RoleName: "eks-fargate.cluster-api-provider-aws.sigs.k8s.io", SubnetIDs: []string{id},
			Selectors: []expinfrav1.FargateSelector{{Namespace: "batch"}},
		}})
		requireRefusal(t, m, want)
	}
}

// Boot data are for Linux: with an image of Windows, a machine never joins.
func TestImageOfWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own = "ami-0123456789abcdef1"
		m := enginetest.LoadQuick(t, "quickstart.yaml")
		m.Deployments[0].Template.Spec.Template.Spec.AMI.ID = new(own)
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Images {
				if i.Architecture == "x86_64" {
					x := *i
					x.ID, x.Name, x.Windows = own, "Windows_Server-2022-English-Full-Base", true
					s.EC2.Images[own] = &x
					return
				}
			}
		})
		require.Contains(t, enginetest.Refused(t, m, a), "the image "+own+" has Windows, and the machine boots with scripts for Linux")
	})
}
