package awssim

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

// Roles for machines, and for EKS and Fargate; furnished adds these.
const (
	stockRole   = "arn:aws:iam::123456789012:role/" + stockNodes
	planeRole   = "arn:aws:iam::123456789012:role/plane"
	fargateRole = "arn:aws:iam::123456789012:role/fargate"
)

func eksCluster(name string) *eks.CreateClusterInput {
	return &eks.CreateClusterInput{
		Name: &name, Version: aws.String("1.33"), RoleArn: aws.String(planeRole), BootstrapSelfManagedAddons: aws.Bool(false),
		ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: []string{testSubnetA, testSubnetB}}, Tags: map[string]string{"team": "red"},
	}
}

// eksReady creates a cluster and waits until it is active.
func eksReady(t *testing.T, a *AWS, name string) *eks.Client {
	t.Helper()
	c := eks.NewFromConfig(a.Config())
	_, err := c.CreateCluster(t.Context(), eksCluster(name))
	require.NoError(t, err)
	time.Sleep(EKSClusterTakes)
	return c
}

// throughNAT is the route of the test's VPC to the internet, by a NAT gateway with testAddress.
const throughNAT = "nat-0test"

// eksWithNetwork creates a cluster with the add-ons of EKS, in a VPC with a way to the internet, so
// that its nodes become ready, and waits until it is active.
func eksWithNetwork(t *testing.T, a *AWS, name string) *eks.Client {
	t.Helper()
	a.Edit(func(s *State) {
		born := a.account.Now().Add(-time.Hour)
		s.EC2.NATGateways[throughNAT] = &NATGateway{Thing: Thing{ID: throughNAT, Born: born}, VPC: testVPC, Subnet: testSubnetC, Address: testAddress, Ready: born}
		s.EC2.RouteTables["rtb-0test"] = &RouteTable{
			Thing:  Thing{ID: "rtb-0test", Born: born},
			VPC:    testVPC,
			Main:   "rtbassoc-0test",
			Routes: []Route{{Destination: "0.0.0.0/0", Target: throughNAT}},
		}
	})
	c, in := eks.NewFromConfig(patient(a.Config())), eksCluster(name)
	in.BootstrapSelfManagedAddons = aws.Bool(true)
	_, err := c.CreateCluster(t.Context(), in)
	require.NoError(t, err)
	time.Sleep(EKSClusterTakes)
	return c
}

func TestEKSClusterLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eks.NewFromConfig(a.Config())
		in := eksCluster("demo")
		in.ClientRequestToken = aws.String("once")
		_, err := c.CreateCluster(t.Context(), in)
		require.NoError(t, err)
		_, err = c.CreateCluster(t.Context(), in)
		require.NoError(t, err, "the same token is the same request")
		_, err = c.CreateCluster(t.Context(), eksCluster("demo"))
		hasCode(t, err, "ResourceInUseException")

		get := func() *types.Cluster {
			out, err := c.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
			require.NoError(t, err)
			return out.Cluster
		}
		assert.Equal(t, types.ClusterStatusCreating, get().Status)
		assert.Nil(t, get().Endpoint, "AWS does not tell before")
		_, err = c.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String("demo")})
		hasCode(t, err, "ResourceInUseException")
		_, err = c.CreateAddon(t.Context(), &eks.CreateAddonInput{ClusterName: aws.String("demo"), AddonName: aws.String("vpc-cni")})
		hasCode(t, err, "InvalidRequestException")

		time.Sleep(EKSClusterTakes)
		is := get()
		assert.Equal(t, types.ClusterStatusActive, is.Status)
		assert.Regexp(t, `^https://[0-9A-F]{32}\.gr7\.us-east-1\.eks\.amazonaws\.com$`, *is.Endpoint)
		_, err = ec2.NewFromConfig(a.Config()).DeleteSecurityGroup(t.Context(), &ec2.DeleteSecurityGroupInput{GroupId: is.ResourcesVpcConfig.ClusterSecurityGroupId})
		hasCode(t, err, "DependencyViolation")
		_, err = ec2.NewFromConfig(a.Config()).DeleteSubnet(t.Context(), &ec2.DeleteSubnetInput{SubnetId: aws.String(testSubnetA)})
		hasCode(t, err, "DependencyViolation")

		_, err = c.DeleteCluster(t.Context(), &eks.DeleteClusterInput{Name: aws.String("demo")})
		require.NoError(t, err)
		assert.Equal(t, types.ClusterStatusDeleting, get().Status)
		assert.Contains(t, a.Inventory(), "EKSCluster demo DELETING")
		time.Sleep(ekssim.ClusterDeletes)
		_, err = c.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
		hasCode(t, err, "ResourceNotFoundException")
		assert.Equal(t, furnished(Options{}).Inventory(), a.Inventory(), "nothing stays behind")
	})
}

func TestEKSRefusesClusters(t *testing.T) {
	a := furnished(Options{})
	c := eks.NewFromConfig(a.Config())
	for name, spoil := range map[string]func(*eks.CreateClusterInput){
		"name":    func(in *eks.CreateClusterInput) { in.Name = aws.String("-demo") },
		"version": func(in *eks.CreateClusterInput) { in.Version = aws.String("1.12") },
		"role":    func(in *eks.CreateClusterInput) { in.RoleArn = aws.String("arn:aws:iam::123456789012:role/nobody") },
		"trust":   func(in *eks.CreateClusterInput) { in.RoleArn = aws.String(stockRole) },
		"one zone": func(in *eks.CreateClusterInput) {
			in.ResourcesVpcConfig.SubnetIds = []string{testSubnetA, testSubnetA2}
		},
		"no subnet":   func(in *eks.CreateClusterInput) { in.ResourcesVpcConfig.SubnetIds = []string{"subnet-1", "subnet-2"} },
		"unreachable": func(in *eks.CreateClusterInput) { in.ResourcesVpcConfig.EndpointPublicAccess = aws.Bool(false) },
		"group":       func(in *eks.CreateClusterInput) { in.ResourcesVpcConfig.SecurityGroupIds = []string{"sg-1"} },
		"authentication": func(in *eks.CreateClusterInput) {
			in.AccessConfig = &types.CreateAccessConfigRequest{AuthenticationMode: "NONE"}
		},
		"tag": func(in *eks.CreateClusterInput) { in.Tags = map[string]string{"aws:x": "y"} },
	} {
		in := eksCluster("demo")
		spoil(in)
		_, err := c.CreateCluster(t.Context(), in)
		require.Error(t, err, name)
		hasCode(t, err, "InvalidParameterException")
	}
	in := eksCluster("demo")
	in.EncryptionConfig = []types.EncryptionConfig{{}}
	_, err := c.CreateCluster(t.Context(), in)
	require.Error(t, err)
	assert.Equal(t, furnished(Options{}).Inventory(), a.Inventory())
}

func TestEKSAddons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksReady(t, a, "demo")
		demo := aws.String("demo")
		create := func(name string) error {
			_, err := c.CreateAddon(t.Context(), &eks.CreateAddonInput{ClusterName: demo, AddonName: &name})
			return err
		}
		get := func(name string) *types.Addon {
			out, err := c.DescribeAddon(t.Context(), &eks.DescribeAddonInput{ClusterName: demo, AddonName: &name})
			require.NoError(t, err)
			return out.Addon
		}
		require.NoError(t, create("kube-proxy"))
		require.NoError(t, create("coredns"))
		hasCode(t, create("coredns"), "ResourceInUseException")
		hasCode(t, create("nonsense"), "InvalidParameterException")
		assert.Equal(t, "v1.33.0-eksbuild.2", *get("kube-proxy").AddonVersion, "the default of the cluster's version")
		assert.Equal(t, types.AddonStatusCreating, get("coredns").Status)
		_, err := c.DeleteAddon(t.Context(), &eks.DeleteAddonInput{ClusterName: demo, AddonName: aws.String("coredns")})
		hasCode(t, err, "ResourceInUseException")

		time.Sleep(EKSAddonTakes)
		assert.Equal(t, types.AddonStatusActive, get("kube-proxy").Status)
		assert.Equal(t, types.AddonStatusDegraded, get("coredns").Status, "there are no nodes")
		assert.Equal(t, types.AddonIssueCodeInsufficientNumberOfReplicas, get("coredns").Health.Issues[0].Code)
		a.Edit(func(s *State) { s.EC2.Instances[testInstance].Tags["kubernetes.io/cluster/demo"] = "owned" })
		assert.Equal(t, types.AddonStatusDegraded, get("coredns").Status, "it has not joined")
		require.NoError(t, create("vpc-cni"))
		a.Edit(func(s *State) { s.EC2.Instances[testInstance].Boot = &ec2sim.Boot{Joined: time.Now()} })
		assert.Equal(t, types.AddonStatusActive, get("coredns").Status)
		_, err = c.DeleteAddon(t.Context(), &eks.DeleteAddonInput{ClusterName: demo, AddonName: aws.String("kube-proxy")})
		require.NoError(t, err)
		assert.Equal(t, types.AddonStatusDeleting, get("kube-proxy").Status)
		time.Sleep(EKSAddonTakes)
		assert.Equal(t, types.AddonStatusDegraded, get("coredns").Status, "it does not reach the API server without kube-proxy")
		require.NoError(t, create("kube-proxy"))
		assert.Equal(t, types.AddonStatusActive, get("coredns").Status)

		update := func(version string) error {
			_, err := c.UpdateAddon(t.Context(), &eks.UpdateAddonInput{ClusterName: demo, AddonName: aws.String("coredns"), AddonVersion: &version})
			return err
		}
		hasCode(t, update("v1.0.0"), "InvalidParameterException")
		require.NoError(t, update("v1.11.4-eksbuild.24"))
		assert.Equal(t, types.AddonStatusUpdating, get("coredns").Status)
		hasCode(t, update("v1.12.4-eksbuild.1"), "ResourceInUseException")
		time.Sleep(EKSAddonTakes)
		assert.Equal(t, "v1.11.4-eksbuild.24", *get("coredns").AddonVersion)

		_, err = c.DeleteAddon(t.Context(), &eks.DeleteAddonInput{ClusterName: demo, AddonName: aws.String("coredns")})
		require.NoError(t, err)
		assert.Equal(t, types.AddonStatusDeleting, get("coredns").Status)
		time.Sleep(EKSAddonTakes)
		_, err = c.DescribeAddon(t.Context(), &eks.DescribeAddonInput{ClusterName: demo, AddonName: aws.String("coredns")})
		hasCode(t, err, "ResourceNotFoundException")
		list, err := c.ListAddons(t.Context(), &eks.ListAddonsInput{ClusterName: demo})
		require.NoError(t, err)
		assert.Equal(t, []string{"kube-proxy", "vpc-cni"}, list.Addons)
	})
}

func TestAddonMeetsItsSelfManagedKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eks.NewFromConfig(a.Config())
		in := eksCluster("demo")
		in.BootstrapSelfManagedAddons = nil
		_, err := c.CreateCluster(t.Context(), in)
		require.NoError(t, err)
		time.Sleep(EKSClusterTakes)
		_, err = c.CreateAddon(t.Context(), &eks.CreateAddonInput{ClusterName: in.Name, AddonName: aws.String("vpc-cni")})
		require.NoError(t, err)
		time.Sleep(EKSAddonTakes)
		out, err := c.DescribeAddon(t.Context(), &eks.DescribeAddonInput{ClusterName: in.Name, AddonName: aws.String("vpc-cni")})
		require.NoError(t, err)
		assert.Equal(t, types.AddonStatusCreateFailed, out.Addon.Status)
		_, err = c.UpdateAddon(
			t.Context(),
			&eks.UpdateAddonInput{ClusterName: in.Name, AddonName: aws.String("vpc-cni"), ResolveConflicts: types.ResolveConflictsOverwrite},
		)
		require.NoError(t, err)
		time.Sleep(EKSAddonTakes)
		out, err = c.DescribeAddon(t.Context(), &eks.DescribeAddonInput{ClusterName: in.Name, AddonName: aws.String("vpc-cni")})
		require.NoError(t, err)
		assert.Equal(t, types.AddonStatusActive, out.Addon.Status)
	})
}

func TestAddonVersions(t *testing.T) {
	c := eks.NewFromConfig(New(Options{Page: 3}).Config())
	list := func(in *eks.DescribeAddonVersionsInput) (all []types.AddonInfo) {
		for p := eks.NewDescribeAddonVersionsPaginator(c, in); p.HasMorePages(); {
			out, err := p.NextPage(t.Context())
			require.NoError(t, err)
			all = append(all, out.Addons...)
		}
		return all
	}
	for _, kubernetes := range ekssim.SupportedVersions() {
		names := map[string]int{}
		for _, d := range list(&eks.DescribeAddonVersionsInput{KubernetesVersion: &kubernetes}) {
			for _, v := range d.AddonVersions {
				require.Len(t, v.Compatibilities, 1)
				assert.Equal(t, kubernetes, *v.Compatibilities[0].ClusterVersion)
				if v.Compatibilities[0].DefaultVersion {
					names[*d.AddonName]++
				}
			}
		}
		for _, name := range ekssim.AddonNames() {
			assert.Equal(t, 1, names[name], "%s has one default version for %s", name, kubernetes)
		}
	}
	assert.Len(t, list(&eks.DescribeAddonVersionsInput{}), len(ekssim.AddonNames()))
	assert.Len(t, list(&eks.DescribeAddonVersionsInput{Owners: []string{"community"}}), 1)
	assert.Len(t, list(&eks.DescribeAddonVersionsInput{Types: []string{"security", "storage"}}), 5)
	for _, in := range []*eks.DescribeAddonVersionsInput{
		{KubernetesVersion: aws.String("2.0")}, {AddonName: aws.String("nonsense")}, {MaxResults: aws.Int32(101)}, {NextToken: aws.String("x")},
	} {
		_, err := c.DescribeAddonVersions(t.Context(), in)
		hasCode(t, err, "InvalidParameterException")
	}
	for _, in := range []*eks.DescribeClusterVersionsInput{{MaxResults: aws.Int32(101)}, {NextToken: aws.String("x")}} {
		_, err := c.DescribeClusterVersions(t.Context(), in)
		hasCode(t, err, "InvalidParameterException")
	}
}

// A version that is not in the catalogue exists if its name follows the rules.
func TestPlausibleAddonVersions(t *testing.T) {
	c := eks.NewFromConfig(New(Options{}).Config())
	for version, want := range map[string]bool{
		"kube-proxy v1.33.13-eksbuild.3": true, "kube-proxy v1.33.14-eksbuild.1": false, "kube-proxy v1.34.0-eksbuild.3": false,
		"coredns v1.11.3-eksbuild.2": true, "coredns v9.0.0-eksbuild.1": false, "vpc-cni v1.19.2-eksbuild.1": true, "vpc-cni v1.19.2": false,
	} {
		name, number, _ := strings.Cut(version, " ")
		out, err := c.DescribeAddonVersions(t.Context(), &eks.DescribeAddonVersionsInput{AddonName: &name, KubernetesVersion: aws.String("1.33")})
		require.NoError(t, err)
		listed := slices.ContainsFunc(out.Addons[0].AddonVersions, func(v types.AddonVersionInfo) bool { return *v.AddonVersion == number })
		assert.Equal(t, want, listed, version)
	}
}

func TestPodIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksReady(t, a, "demo")
		for _, name := range []string{"one", "two"} {
			a.Edit(func(s *State) { s.IAM.Roles[name] = &Role{Name: name, Service: "pods.eks.amazonaws.com"} })
		}
		create := func(role string) (*eks.CreatePodIdentityAssociationOutput, error) {
			return c.CreatePodIdentityAssociation(t.Context(), &eks.CreatePodIdentityAssociationInput{
				ClusterName: aws.String("demo"), Namespace: aws.String("capa-system"), ServiceAccount: aws.String("capa"), RoleArn: &role,
			})
		}
		for _, role := range []string{"one", "arn:aws:iam::123456789012:role/nobody", stockRole} {
			_, err := create(role)
			hasCode(t, err, "InvalidParameterException")
		}
		made, err := create("arn:aws:iam::123456789012:role/one")
		require.NoError(t, err)
		assert.Regexp(t, `^a-[0-9a-z]{17}$`, *made.Association.AssociationId)
		_, err = create("arn:aws:iam::123456789012:role/two")
		hasCode(t, err, "ResourceInUseException")

		update := func(role string) error {
			_, err := c.UpdatePodIdentityAssociation(t.Context(), &eks.UpdatePodIdentityAssociationInput{
				ClusterName: aws.String("demo"), AssociationId: made.Association.AssociationId, RoleArn: &role,
			})
			return err
		}
		hasCode(t, update("two"), "InvalidParameterException")
		require.NoError(t, update("arn:aws:iam::123456789012:role/two"))
		list, err := c.ListPodIdentityAssociations(
			t.Context(),
			&eks.ListPodIdentityAssociationsInput{ClusterName: aws.String("demo"), Namespace: aws.String("capa-system")},
		)
		require.NoError(t, err)
		require.Len(t, list.Associations, 1)
		which := &eks.DescribePodIdentityAssociationInput{ClusterName: aws.String("demo"), AssociationId: list.Associations[0].AssociationId}
		got, err := c.DescribePodIdentityAssociation(t.Context(), which)
		require.NoError(t, err)
		assert.Equal(t, "arn:aws:iam::123456789012:role/two", *got.Association.RoleArn)

		var file bytes.Buffer
		require.NoError(t, a.Save(&file))
		b, err := Load(&file, Options{})
		require.NoError(t, err)
		assert.Equal(t, of[*ekssim.Service](a).Detailed(), of[*ekssim.Service](b).Detailed(), "it survives a file")
		c = eks.NewFromConfig(b.Config())
		_, err = c.DeletePodIdentityAssociation(
			t.Context(),
			&eks.DeletePodIdentityAssociationInput{ClusterName: aws.String("demo"), AssociationId: which.AssociationId},
		)
		require.NoError(t, err)
		_, err = c.DescribePodIdentityAssociation(t.Context(), which)
		hasCode(t, err, "ResourceNotFoundException")
	})
}
