package permission_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// late lists the operations that change something and do no harm if they arrive after another run
// has taken the lock over (docs/adr/0037-requests-that-arrive-late.md), with the reason.
func late() map[string]string {
	all := map[string]string{}
	for reason, operations := range map[string]string{
		"they have client tokens, with which the next run continues": `
			AssociateIdentityProviderConfig CreateAccessEntry CreateAddon CreateCarrierGateway CreateCluster
			CreateEgressOnlyInternetGateway CreateFargateProfile CreateFlowLogs CreateLaunchTemplate CreateLaunchTemplateVersion CreateNatGateway
			CreateNodegroup CreatePodIdentityAssociation CreateRouteTable CreateVpcEndpoint RunInstances`,
		"their name, or the pair that they connect, exists once": `
			AddClientIDToOpenIDConnectProvider AssociateAccessPolicy AssociateEncryptionConfig AssociateRouteTable
			AssociateVpcCidrBlock AttachInternetGateway AttachLoadBalancerToSubnets AttachRolePolicy AuthorizeSecurityGroupIngress
			CreateAutoScalingGroup CreateBucket CreateListener CreateLoadBalancer CreateOpenIDConnectProvider CreateQueue CreateRole CreateRoute
			CreateSecurityGroup CreateSubnet CreateTargetGroup RegisterInstancesWithLoadBalancer RegisterTargets`,
		"a run finds the second resource with the same identity, and deletes it": `
			AllocateAddress CreateInternetGateway CreateVpc`,
		"the next run makes other boot data, and deletes what no machine uses": `
			CreateSecret PutObject PutSecretValue`,
		"they set values, which the next plan compares with the manifest": `
			AddTags ApplySecurityGroupsToLoadBalancer ConfigureHealthCheck CreateOrUpdateTags CreateTags
			ModifyInstanceMetadataOptions ModifyListener ModifyLoadBalancerAttributes ModifyNetworkInterfaceAttribute
			ModifySubnetAttribute ModifyTargetGroup ModifyTargetGroupAttributes ModifyVpcAttribute ModifyVpcEndpoint PutBucketPolicy
			PutBucketTagging PutLifecycleHook PutRolePermissionsBoundary PutRolePolicy PutRule PutTargets ReplaceRoute ReplaceRouteTableAssociation ResumeProcesses SetQueueAttributes SetSecurityGroups SetSubnets
			SuspendProcesses TagOpenIDConnectProvider TagQueue TagResource TagRole UpdateAccessEntry UpdateAddon UpdateClusterConfig
			UntagOpenIDConnectProvider UntagQueue UntagResource UntagRole UpdateClusterVersion UpdatePodIdentityAssociation`,
		"a machine that runs, although the cluster is stopped, loses nothing, and the next stop finds it": `
			StartInstances`,
		"a session that nobody opens ends by itself": `
			StartSession`,
		"the next run restores the rule; a deletion waits for them": `
			RevokeSecurityGroupEgress RevokeSecurityGroupIngress`,
		"without Overwrite, the first one counts; those with it that matter have cloud.NeverLate, the others are lists of names and the join token, which the next run writes again": `
			PutParameter`,
	} {
		for _, o := range strings.Fields(operations) {
			all[o] = reason
		}
	}
	return all
}

// TestEveryRequestMayBeLate requires a decision for every operation that the program sends to
// AWS: is it harmful when it arrives late? The requests that are are waited for.
func TestEveryRequestMayBeLate(t *testing.T) {
	decided := late()
	seen := map[string]bool{}
	for c, at := range calls(t, "..", "../../cloud") {
		if cloud.Reads(c.operation) || c.service == "sts" {
			continue
		}
		seen[c.operation] = true
		reason, harmless := decided[c.operation]
		assert.NotEqual(t, cloud.HarmsLate(c.operation), harmless, "%s: %s %s: does it harm when it arrives late? %s", at, c.service, c.operation, reason)
	}
	require.Greater(t, len(seen), 80, "the calls are not found any more")
	for operation := range decided {
		assert.True(t, seen[operation], "nothing calls %s", operation)
	}
}
