package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// encodedDetails begins the details of EC2's UnauthorizedOperation, which only STS can read.
const encodedDetails = "Encoded authorization failure message:"

// readDetails replaces the encoded details in an error by the action and the resource that are
// denied, or, if the caller may not decode them, by how to do so.
func (c *Clients) readDetails(ctx context.Context, err error) {
	var api *smithy.GenericAPIError
	if !errors.As(err, &api) {
		return
	}
	text, encoded, found := strings.Cut(api.Message, encodedDetails)
	if !found {
		return
	}
	api.Message = strings.TrimSpace(text) + " " + c.decoded(ctx, strings.TrimSpace(encoded))
}

// decoded returns the encoded details of a denied call. A caller that may not decode them is
// asked once.
func (c *Clients) decoded(ctx context.Context, encoded string) string {
	const unknown = "(The details are encoded; sts:DecodeAuthorizationMessage is not allowed.)"
	if c.undecodable.Load() {
		return unknown
	}
	out, err := c.STS.DecodeAuthorizationMessage(unlocked(ReadOnly(ctx)), &sts.DecodeAuthorizationMessageInput{EncodedMessage: &encoded})
	if err != nil || out.DecodedMessage == nil {
		c.undecodable.Store(true)
		return unknown
	}
	var details struct {
		ExplicitDeny bool `json:"explicitDeny"`
		Context      struct {
			Action   string `json:"action"`
			Resource string `json:"resource"`
		} `json:"context"`
	}
	if err := json.Unmarshal([]byte(*out.DecodedMessage), &details); err != nil || details.Context.Action == "" {
		return unknown
	}
	why := "because no policy allows it"
	if details.ExplicitDeny {
		why = "because a policy denies it"
	}
	return "The caller is not authorized to perform: " + details.Context.Action + " on resource: " + details.Context.Resource + " " + why
}
