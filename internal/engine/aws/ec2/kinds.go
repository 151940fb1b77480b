package ec2

import "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"

// Kinds lists the kinds of this package: one line each.
func Kinds() []*kind.Kind {
	return []*kind.Kind{
		vpcKind(),
		vpcBlockKind(),
		subnetKind(),
		subnetTagsKind(),
		internetGatewayKind(),
		egressOnlyGatewayKind(),
		carrierGatewayKind(),
		securityGroupKind(),
		securityGroupRulesKind(),
		defaultGroupKind(),
		routeTableKind(),
		elasticIPKind(),
		natGatewayKind(),
		gatewayEndpointKind(),
		flowLogKind(),
		NetworkInterfacesKind(),
		imageKind(),
		keyPairKind(),
		placementGroupKind(),
		instanceProfileKind(),
		launchTemplateKind(),
		instanceKind(),
		bastionKind(),
		volumeKind(),
	}
}
