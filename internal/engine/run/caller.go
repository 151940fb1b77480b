package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Caller asks AWS who calls it for the cluster: the identity that the manifest names, or else
// that of the target's Config.
func (c *Cluster) Caller(ctx context.Context) (cluster.Caller, error) {
	return Begin(c, nil).Caller(ctx)
}

// Caller asks AWS who calls it.
func (s *Session) Caller(ctx context.Context) (cluster.Caller, error) {
	return iam.Caller(cloud.ReadOnly(ctx), s.Cloud)
}

// CallerRefusalOf returns why AWS has refused the caller, from an error and those that it
// wraps.
func CallerRefusalOf(err error) (c cluster.CallerRefusal) {
	for _, call := range calls(err) {
		switch {
		case cloud.Expired(call):
			c.Expired = true
		case cloud.InvalidCredentials(call):
			c.Invalid = true
		case cloud.Denied(call):
			c.Denied = append(c.Denied, deniedAction(call))
		}
	}
	slices.Sort(c.Denied)
	c.Denied = slices.Compact(c.Denied)
	return c
}

// calls returns the failed calls to AWS that an error wraps.
func calls(err error) (all []*smithy.OperationError) {
	if call, ok := err.(*smithy.OperationError); ok { //nolint:errorlint // it looks at each error of the tree
		return []*smithy.OperationError{call}
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return calls(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, below := range e.Unwrap() {
			all = append(all, calls(below)...)
		}
	}
	return all
}

// DeniedActions lists the actions that an error says are denied.
func DeniedActions(err error) string { return text.Several(CallerRefusalOf(err).Denied) }

// namedAction matches the action in the message of most services. It may be that of another
// service, which the called one needs.
const namedAction = `not authorized to perform: ([a-z0-9-]+:[A-Za-z0-9]+)`

// deniedAction returns the IAM action that a caller lacks: the one that AWS names, or else
// that of the call.
func deniedAction(call *smithy.OperationError) string {
	if named := regex.Of(namedAction).FindStringSubmatch(call.Error()); named != nil {
		return named[1]
	}
	prefix := strings.ToLower(strings.ReplaceAll(call.Service(), " ", "")) // of most services
	switch {
	case strings.HasPrefix(call.Service(), "Elastic Load Balancing"):
		prefix = "elasticloadbalancing"
	case call.Service() == "Resource Groups Tagging API":
		prefix = "tag"
	case call.Service() == "EventBridge":
		prefix = "events"
	}
	action := call.Operation()
	if prefix == "s3" {
		// Names of other actions: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
		switch action {
		case "HeadBucket", "ListObjectsV2":
			action = "ListBucket"
		case "ListObjectVersions":
			action = "ListBucketVersions"
		case "DeleteObjects":
			action = "DeleteObject"
		}
	}
	return prefix + ":" + action
}

// refusesCaller reports whether AWS refuses the caller.
func refusesCaller(err error) bool {
	return err != nil && (cloud.Denied(err) || cloud.InvalidCredentials(err) || cloud.Expired(err) && !errors.As(err, new(*cloud.LoginError)))
}
