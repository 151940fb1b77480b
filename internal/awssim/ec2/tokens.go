package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// remembered returns the resources of those IDs, or what is left of them.
func remembered[T resource](among map[string]T, ids []string, dead func(Thing) T) (all []T) {
	for _, id := range ids {
		t, ok := among[id]
		if !ok {
			t = dead(Thing{ID: id})
		}
		all = append(all, t)
	}
	return all
}

// idempotent does what is asked for, unless a call with the same client token has
// done so. AWS answers a used token with what was created then, also when it is
// long gone; the states it tells are those of now. AWS may forget a token a
// day after its resource is deleted; here none is ever forgotten.
func idempotent[O any](svc *Service, op string, token *string, in any, do func() ([]string, error), answer func(ids []string) *O) (*O, error) {
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

// Answer is what a client token has been answered with.
type Answer struct {
	Parameters string   // digest of the call's parameters
	IDs        []string // of what was created
}
