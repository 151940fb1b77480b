package conformance

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	taggingtypes "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
)

func (s *suite) eksClusters() {
	demo := aws.String("demo")
	role, err := s.iam.GetRole(s.ctx, &iam.GetRoleInput{RoleName: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")})
	s.need(err)
	for _, name := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"} { // nodes do not join without
		_, _ = s.iam.AttachRolePolicy(s.ctx, &iam.AttachRolePolicyInput{ // moto does not have AWS's own policies, and looks at none
			RoleName: role.Role.RoleName, PolicyArn: aws.String("arn:aws:iam::aws:policy/" + name),
		})
	}
	plane, err := s.iam.CreateRole(s.ctx, &iam.CreateRoleInput{
		RoleName: aws.String("eks-plane"),
		AssumeRolePolicyDocument: aws.String(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"eks.amazonaws.com"},"Action":"sts:AssumeRole"}]}`,
		),
	})
	s.need(err)
	s.settle()
	subnets, err := s.ec2.DescribeSubnets(s.ctx, &ec2.DescribeSubnetsInput{Filters: filter("default-for-az", "true")})
	s.need(err)
	zones := map[string]string{}
	for _, n := range subnets.Subnets {
		zones[*n.AvailabilityZone] = *n.SubnetId
	}
	create := func(role string, zone ...string) (*eks.CreateClusterOutput, error) {
		in := &eks.CreateClusterInput{Name: demo, RoleArn: &role, ResourcesVpcConfig: &types.VpcConfigRequest{}, Tags: map[string]string{"team": "eks"}}
		for _, z := range zone {
			in.ResourcesVpcConfig.SubnetIds = append(in.ResourcesVpcConfig.SubnetIds, zones[z])
		}
		return s.eks.CreateCluster(s.ctx, in)
	}
	_, err = s.eks.DescribeCluster(s.ctx, &eks.DescribeClusterInput{Name: demo})
	s.see("EKS cluster: describe one that is not there", err)
	made, err := create(*plane.Role.Arn, "us-east-1a", "us-east-1b")
	s.need(err)
	s.see("EKS cluster: create", err, made.Cluster.Status, *made.Cluster.Arn)
	_, err = create(*plane.Role.Arn, "us-east-1a", "us-east-1b")
	s.see("EKS cluster: create again", err)
	s.settle()
	found, err := s.eks.DescribeCluster(s.ctx, &eks.DescribeClusterInput{Name: demo})
	s.need(err)
	s.see("EKS cluster: describe", err, found.Cluster.Status, strings.HasPrefix(str(found.Cluster.Endpoint), "https://"), found.Cluster.Tags["team"])
	list, err := s.eks.ListClusters(s.ctx, &eks.ListClustersInput{})
	s.need(err)
	s.see("EKS cluster: list", err, list.Clusters)
	byTag, err := s.tagging.GetResources(
		s.ctx,
		&tagging.GetResourcesInput{TagFilters: []taggingtypes.TagFilter{{Key: aws.String("team"), Values: []string{"eks"}}}},
	)
	s.need(err)
	s.see("tagging: find the EKS cluster", err, len(byTag.ResourceTagMappingList), str(byTag.PaginationToken) == "")
	s.eksParts(*role.Role.Arn)
	s.nodeGroups(*role.Role.Arn, *made.Cluster.Arn, zones["us-east-1a"], zones["us-east-1b"])
	_, err = s.eks.DeleteCluster(s.ctx, &eks.DeleteClusterInput{Name: demo})
	s.need(err)
	s.see("EKS cluster: delete", err)
	s.settle()
	_, err = s.eks.DeleteCluster(s.ctx, &eks.DeleteClusterInput{Name: demo})
	s.see("EKS cluster: delete again", err)
	_, err = create("arn:aws:iam::123456789012:role/nobody", "us-east-1a", "us-east-1b")
	s.see("EKS cluster: create with a role that is not there", err)
	s.forget(err, demo)
	_, err = create(*plane.Role.Arn, "us-east-1a")
	s.see("EKS cluster: create in one zone", err)
	s.forget(err, demo)
	_, err = s.iam.DeleteRole(s.ctx, &iam.DeleteRoleInput{RoleName: plane.Role.RoleName})
	s.need(err)
}

// forget deletes a cluster that was created although an error was expected.
func (s *suite) forget(err error, cluster *string) {
	if err == nil {
		_, err := s.eks.DeleteCluster(s.ctx, &eks.DeleteClusterInput{Name: cluster})
		s.need(err)
	}
}

// eksParts sends queries about the parts of a cluster.
func (s *suite) eksParts(role string) {
	demo, coredns := aws.String("demo"), aws.String("coredns")
	versions, err := s.eks.DescribeAddonVersions(s.ctx, &eks.DescribeAddonVersionsInput{AddonName: coredns})
	s.see("add-on: describe versions", err, versions != nil && len(versions.Addons) == 1)
	_, err = s.eks.DescribeAddon(s.ctx, &eks.DescribeAddonInput{ClusterName: demo, AddonName: coredns})
	s.see("add-on: describe one that is not there", err)
	_, err = s.eks.CreateAddon(s.ctx, &eks.CreateAddonInput{ClusterName: demo, AddonName: coredns, AddonVersion: aws.String("v0.0.1")})
	s.see("add-on: create a version that is not there", err)
	_, err = s.eks.CreateAddon(s.ctx, &eks.CreateAddonInput{ClusterName: demo, AddonName: coredns, ResolveConflicts: types.ResolveConflictsOverwrite})
	s.see("add-on: create", err)
	_, err = s.eks.CreateAddon(s.ctx, &eks.CreateAddonInput{ClusterName: demo, AddonName: coredns})
	s.see("add-on: create again", err)
	s.settle()
	out, err := s.eks.DescribeAddon(s.ctx, &eks.DescribeAddonInput{ClusterName: demo, AddonName: coredns})
	said := []any{}
	if err == nil {
		said = append(said, out.Addon.Status)
	}
	s.see("add-on: describe without nodes", err, said...)
	_, err = s.eks.CreatePodIdentityAssociation(
		s.ctx,
		&eks.CreatePodIdentityAssociationInput{ClusterName: demo, Namespace: aws.String("n"), ServiceAccount: aws.String("s"), RoleArn: &role},
	)
	s.see("pod identity: create with a role that does not trust pods", err)
	identities, err := s.eks.ListPodIdentityAssociations(s.ctx, &eks.ListPodIdentityAssociationsInput{ClusterName: demo})
	s.see("pod identity: list", err, identities != nil && len(identities.Associations) == 0)
}
