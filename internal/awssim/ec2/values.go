package ec2

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// recoded changes the code of a "not found" error: AWS has several codes for the same
// resource.
func recoded(err error, code string) error {
	var api *smithy.GenericAPIError
	if errors.As(err, &api) && strings.HasSuffix(api.Code, "NotFound") {
		api.Code = code
	}
	return err
}

// cidr parses a CIDR block and returns it in canonical form, as AWS does.
func cidr(s *string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(aws.ToString(s))
	if err != nil {
		return p, core.Fail("InvalidParameterValue", "value (%s) for parameter cidrBlock is invalid: this is not a valid CIDR block", aws.ToString(s))
	}
	return p.Masked(), nil
}

// within reports whether the inner block is inside the outer one.
func within(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// prefix parses a CIDR block from the state, which is valid or empty.
func prefix(s string) netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return p
}

// flag returns a boolean as a filter value.
func flag(b bool) []string { return []string{fmt.Sprint(b)} }

// oneValue returns a single filter value; none for "".
func oneValue(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// stamp formats a time as in some answers.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
