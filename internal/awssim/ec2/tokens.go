package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Answer is the result of a call with a client token.
type Answer struct {
	Parameters string   // digest of the parameters
	IDs        []string // of the created resources
}

// remembered returns the resources with those IDs. A deleted one has only its ID.
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

// idempotent calls do, unless an earlier call has used the same client token. For a used
// token, AWS returns the resource of that call, even if it is deleted, in its current
// state. AWS may expire a token a day after its resource is deleted; here tokens never
// expire.
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
