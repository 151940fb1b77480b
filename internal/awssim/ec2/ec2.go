package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

func (svc *Service) simulate() {
	svc.simulateCatalog()
	svc.simulateTags()
	svc.simulateVPCs()
	svc.simulateSubnets()
	svc.simulateGateways()
	svc.simulateAddresses()
	svc.simulateNATGateways()
	svc.simulateRouteTables()
	svc.simulateEndpoints()
	svc.simulateSecurityGroups()
	svc.simulateInterfaces()
	svc.simulateInstances()
	svc.simulateLaunchTemplates()
	svc.simulateVolumes()
	svc.simulateImages()
}

// Settle buries what is dead.
func (svc *Service) Settle() {
	s, now := svc.state, svc.Now()
	for id, n := range s.Interfaces {
		if !n.Dies.IsZero() && !n.Dies.After(now) {
			svc.RemoveInterface(id)
		}
	}
	for id, i := range s.Instances {
		if i.Terminated.IsZero() || i.Terminated.After(now) {
			continue
		}
		svc.letGo(i)
		if now.Sub(i.Terminated) >= InstanceShown {
			delete(s.Instances, id)
		}
	}
	for id, n := range s.NATGateways {
		over := n.Gone
		if over.IsZero() && n.Failed {
			over = n.Ready
		}
		if !over.IsZero() && now.Sub(over) >= NATGatewayShown {
			delete(s.NATGateways, id)
		}
	}
	for id, e := range s.Endpoints {
		if !e.Deleted.IsZero() && now.Sub(e.Deleted) >= EndpointDeletes {
			delete(s.Endpoints, id)
		}
	}
}

// thing is anything that has an ID and tags.
type thing interface{ thing() *Thing }

func (t *Thing) thing() *Thing { return t }

// made returns what a new thing begins with.
func (svc *Service) made(prefix string, tags map[string]string) Thing {
	if tags == nil {
		tags = map[string]string{}
	}
	return Thing{ID: svc.ID(prefix), Tags: tags, Born: svc.Now()}
}

// kind is how the API speaks of one kind of thing.
type kind struct {
	prefix  string             // of its IDs
	name    string             // in messages
	missing string             // error code when nothing has the ID
	tags    types.ResourceType // in tag specifications
}

// kindOf returns the kind that IDs with a prefix are of. An ID does as well.
func kindOf(id string) kind {
	prefix, _, _ := strings.Cut(id, "-")
	switch prefix {
	case "vpc":
		return kind{prefix, "vpc", "InvalidVpcID.NotFound", types.ResourceTypeVpc}
	case "subnet":
		return kind{prefix, "subnet", "InvalidSubnetID.NotFound", types.ResourceTypeSubnet}
	case "igw":
		return kind{prefix, "internetGateway", "InvalidInternetGatewayID.NotFound", types.ResourceTypeInternetGateway}
	case "eigw":
		return kind{prefix, "egressOnlyInternetGateway", "InvalidEgressOnlyInternetGatewayID.NotFound", types.ResourceTypeEgressOnlyInternetGateway}
	case "nat":
		return kind{prefix, "natGateway", "NatGatewayNotFound", types.ResourceTypeNatgateway}
	case "eipalloc":
		return kind{prefix, "allocation", "InvalidAllocationID.NotFound", types.ResourceTypeElasticIp}
	case "rtb":
		return kind{prefix, "routeTable", "InvalidRouteTableID.NotFound", types.ResourceTypeRouteTable}
	case "sg":
		return kind{prefix, "group", "InvalidGroup.NotFound", types.ResourceTypeSecurityGroup}
	case "vpce":
		return kind{prefix, "vpcEndpoint", "InvalidVpcEndpointId.NotFound", types.ResourceTypeVpcEndpoint}
	case "eni":
		return kind{prefix, "networkInterface", "InvalidNetworkInterfaceID.NotFound", types.ResourceTypeNetworkInterface}
	case "i":
		return kind{prefix, "instance", "InvalidInstanceID.NotFound", types.ResourceTypeInstance}
	case "vol":
		return kind{prefix, "volume", "InvalidVolume.NotFound", types.ResourceTypeVolume}
	case "lt":
		return kind{prefix, "launchTemplate", "InvalidLaunchTemplateId.NotFound", types.ResourceTypeLaunchTemplate}
	case "ami":
		return kind{prefix, "image", "InvalidAMIID.NotFound", types.ResourceTypeImage}
	case "snap":
		return kind{prefix, "snapshot", "InvalidSnapshot.NotFound", types.ResourceTypeSnapshot}
	case "sgr":
		return kind{prefix, "securityGroupRule", "InvalidSecurityGroupRuleId.NotFound", types.ResourceTypeSecurityGroupRule}
	}
	return kind{prefix, "resource", "InvalidID", ""}
}

// notFound is what AWS says about an ID that it does not know.
func (k kind) notFound(id string) error {
	if !strings.HasPrefix(id, k.prefix+"-") {
		code := strings.Replace(strings.Replace(k.missing, "NotFound", "Malformed", 1), "Group.", "GroupId.", 1)
		return core.Fail(code, "invalid id: %q", id)
	}
	return core.Fail(k.missing, "the %s ID '%s' does not exist", k.name, id)
}

// lookup returns the thing that a writing call names.
func lookup[T thing](svc *Service, among map[string]T, prefix string, id *string) (none T, err error) {
	k := kindOf(prefix)
	if aws.ToString(id) == "" {
		return none, core.Fail("MissingParameter", "the request must contain the parameter %sId", k.name)
	}
	t, ok := among[*id]
	if !ok || !t.thing().Given && svc.Now().Sub(t.thing().Born) < svc.LagRefs {
		return none, k.notFound(*id)
	}
	return t, nil
}

// recoded gives an error that says "not found" another code: AWS has several
// for the same thing.
func recoded(err error, code string) error {
	var api *smithy.GenericAPIError
	if errors.As(err, &api) && strings.HasSuffix(api.Code, "NotFound") {
		api.Code = code
	}
	return err
}

// remembered returns the things of those IDs, or what is left of them.
func remembered[T thing](among map[string]T, ids []string, dead func(Thing) T) (all []T) {
	for _, id := range ids {
		t, ok := among[id]
		if !ok {
			t = dead(Thing{ID: id})
		}
		all = append(all, t)
	}
	return all
}

// once does what is asked for, unless a call with the same client token has
// done so. AWS answers a used token with what was made then, also when it is
// long gone; the states it tells are those of now. AWS may forget a token a
// day after its thing is gone; here none is ever forgotten.
func once[O any](svc *Service, op string, token *string, in any, do func() ([]string, error), answer func(ids []string) *O) (*O, error) {
	key := op + " " + aws.ToString(token)
	params, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("awssim: %s: %w", op, err)
	}
	sum := sha256.Sum256(params)
	digest := hex.EncodeToString(sum[:])
	if len(aws.ToString(token)) > 64 {
		return nil, core.Fail("InvalidParameterValue", "the client token is longer than 64 characters")
	}
	if said, used := svc.state.Tokens[key]; used && aws.ToString(token) != "" {
		if said.Parameters != digest {
			return nil, core.Fail("IdempotentParameterMismatch", "the client token has been used with other parameters")
		}
		return answer(said.IDs), nil
	}
	ids, err := do()
	if err != nil {
		return nil, err
	}
	if aws.ToString(token) != "" {
		svc.state.Tokens[key] = Answer{Parameters: digest, IDs: ids}
	}
	return answer(ids), nil
}

// cidr parses a CIDR block, which AWS brings into its canonical form.
func cidr(s *string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(aws.ToString(s))
	if err != nil {
		return p, core.Fail("InvalidParameterValue", "value (%s) for parameter cidrBlock is invalid: this is not a valid CIDR block", aws.ToString(s))
	}
	return p.Masked(), nil
}

// within reports whether all of the inner block lies in the outer one.
func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// prefix parses a CIDR block of the account itself, which is valid, or empty.
func prefix(s string) netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return p
}

// flag is a boolean as filters see it.
func flag(b bool) []string { return []string{fmt.Sprint(b)} }

// one is a single value as filters see it; "" is none.
func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// stamp is a time as some answers spell it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
