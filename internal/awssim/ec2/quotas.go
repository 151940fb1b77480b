package ec2

// NATGatewaysPerZone is how many NAT gateways the account may have in one
// zone.
const NATGatewaysPerZone = 5
