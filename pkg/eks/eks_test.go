package eks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// cluster returns an account with small pages and a cluster "demo".
func cluster(t *testing.T) *awssim.AWS {
	t.Helper()
	a := awssim.New(awssim.Options{Page: 2})
	a.Edit(func(s *awssim.State) {
		s.IAM.Roles["plane"] = &awssim.Role{Name: "plane", Service: "eks.amazonaws.com"}
		for _, name := range []string{"pods", "other"} {
			s.IAM.Roles[name] = &awssim.Role{Name: name, Service: "pods.eks.amazonaws.com"}
		}
	})
	zones := map[string]string{}
	pages := ec2.NewDescribeSubnetsPaginator(ec2.NewFromConfig(a.Config()), &ec2.DescribeSubnetsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, s := range page.Subnets {
			zones[*s.AvailabilityZone] = *s.SubnetId
		}
	}
	_, err := eks.NewFromConfig(a.Config()).CreateCluster(t.Context(), &eks.CreateClusterInput{
		Name: aws.String(
			"demo",
		),
		Version:                    aws.String("1.31"),
		RoleArn:                    aws.String("arn:aws:iam::123456789012:role/plane"),
		BootstrapSelfManagedAddons: aws.Bool(false),
		ResourcesVpcConfig:         &types.VpcConfigRequest{SubnetIds: []string{zones["us-east-1a"], zones["us-east-1b"]}},
	})
	require.NoError(t, err)
	time.Sleep(awssim.EKSClusterTakes)
	return a
}

func TestAvailableHasAllPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, kubernetes, err := Available(t.Context(), cluster(t).Config(), "demo")
		require.NoError(t, err)
		assert.Equal(t, "1.31", kubernetes)
		names := map[string]bool{}
		for _, a := range all {
			names[a.Name] = true
			assert.Equal(t, "1.31", a.Compatibilities[0].ClusterVersion)
		}
		assert.Len(t, names, 11, "in pages of two")
	})
}

func TestInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := cluster(t)
		names := []string{"coredns", "eks-pod-identity-agent", "kube-proxy", "metrics-server", "vpc-cni"}
		for _, name := range names {
			_, err := eks.NewFromConfig(a.Config()).CreateAddon(t.Context(), &eks.CreateAddonInput{ClusterName: aws.String("demo"), AddonName: &name})
			require.NoError(t, err)
		}
		list := func(p *awssim.Process) (got []string) {
			all, err := Installed(t.Context(), p.Config(), "demo")
			require.NoError(t, err)
			for _, d := range all {
				got = append(got, d.Name)
			}
			return got
		}
		assert.Equal(t, names, list(a.Process()), "all pages, in order")
		p, once := a.Process(), true
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribeAddon" && once {
				once = false
				a.Edit(func(s *awssim.State) { delete(s.EKS.Clusters["demo"].Addons, "metrics-server") })
			}
			return awssim.None
		}
		assert.NotContains(t, list(p), "metrics-server", "an add-on deleted in the meantime is omitted")

		p = a.Process()
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribeAddon" {
				return awssim.Denied
			}
			return awssim.None
		}
		_, err := Installed(t.Context(), p.Config(), "demo")
		require.ErrorContains(t, err, "of cluster demo")
	})
}

// TestAddonWithoutHealth: upstream panics in this case.
func TestAddonWithoutHealth(t *testing.T) {
	got := installed(&types.Addon{AddonName: aws.String("x"), Status: types.AddonStatusCreating})
	assert.Equal(t, InstalledAddon{Name: "x", Status: "CREATING", HealthIssues: []HealthIssue{}}, got)
}

func TestAssociate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := cluster(t)
		p := PodIdentity{Cluster: "demo", Namespace: "capa-system", ServiceAccount: "capa", RoleName: "pods"}
		announced := 0
		associate := func() Association {
			got, err := Associate(t.Context(), a.Config(), p, func() { announced++ })
			require.NoError(t, err)
			return got
		}
		made := associate()
		assert.Equal(t, Created, made.Outcome)
		assert.Equal(t, "arn:aws:iam::123456789012:role/pods", made.RoleARN)
		assert.Equal(t, Unchanged, associate().Outcome)
		p.RoleName = "other"
		changed := associate()
		assert.Equal(t, Association{made.ID, "arn:aws:iam::123456789012:role/other", Updated}, changed)
		assert.Equal(t, 1, announced)
		writes := 0
		for _, c := range a.Calls() {
			if c.Operation == "CreatePodIdentityAssociation" || c.Operation == "UpdatePodIdentityAssociation" {
				writes++
			}
		}
		assert.Equal(t, 2, writes)
	})
}
