// Package replica fills a simulated account with the resources of another account, which
// it only reads.
//
// Secrets stay behind: user data, the values of parameters and secrets, and the contents
// of buckets. Of parameters and secrets that the source has, the replica has the names.
package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/cloudformation"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/sqs"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
)

// State has the states of the services of a new simulated account, which Read fills.
type State struct {
	EC2         *ec2.State
	ELB         *elb.State
	IAM         *iam.State
	EKS         *eks.State
	AutoScaling *autoscaling.State
	S3          *s3.State
	Secrets     *secretsmanager.State
	SSM         *ssm.State
	KMS         *kms.State
	SQS         *sqs.State
	EventBridge *eventbridge.State

	CloudFormation *cloudformation.State
}

// Source is the account to read.
type Source struct {
	Config  aws.Config
	Account string // its ID
	Asked   *Asked // the calls of a plan
	Now     time.Time
}

// reader reads an account into a state.
type reader struct {
	Source
	to      State
	roled   bool // the roles are those of the source
	remarks []string
}

// Read fills the state of a new simulated account. A part of the source that cannot be read
// is as the simulated account assumes, and has a remark. The error is for a source that
// does not answer.
func Read(ctx context.Context, from Source, to State) (remarks []string, err error) {
	r := &reader{Source: from, to: to}
	for _, part := range []struct {
		what string
		read func(context.Context) error
	}{
		{"zones", r.zones},
		{"instance types", r.offerings},
		{"the network", r.network},
		{"security groups", r.securityGroups},
		{"elastic IPs", r.addresses},
		{"NAT gateways", r.natGateways},
		{"network interfaces", r.interfaces},
		{"instances", r.instances},
		{"volumes", r.volumes},
		{"launch templates", r.templates},
		{"key pairs", r.keyPairs},
		{"placement groups", r.placementGroups},
		{"capacity reservations", r.reservations},
		{"Dedicated Hosts", r.hosts},
		{"KMS keys", r.keys},
		{"load balancers", r.balancers},
		{"target groups", r.targetGroups},
		{"Classic Load Balancers", r.classics},
		{"Auto Scaling groups", r.scaling},
		{"EKS clusters", r.clusters},
		{"instance profiles and roles", r.roles},
		{"CloudFormation stacks", r.stacks},
		{"OpenID Connect providers", r.oidcProviders},
		{"quotas", r.quotas},
		{"parameters", r.parameters},
		{"secrets", r.secrets},
		{"buckets", r.buckets},
		{"queues", r.queues},
		{"rules of EventBridge", r.rules},
	} {
		if err := r.part(ctx, part.what, part.read); err != nil {
			return r.remarks, err
		}
	}
	r.images()
	return r.remarks, nil
}

// part reads one part of the account. AWS's refusal is a remark.
func (r *reader) part(ctx context.Context, what string, read func(context.Context) error) error {
	err := read(ctx)
	if code, refused := refusal(err); refused {
		r.remark("%s cannot be read (%s): the copy has what the simulated account assumes", what, code)
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy of the account: %s: %w", what, err)
	}
	return nil
}

func (r *reader) remark(format string, args ...any) {
	r.remarks = append(r.remarks, fmt.Sprintf(format, args...))
}

// refusal returns the code of an answer that is an error. Emulators answer what they do not
// know with the status 404, 405 or 501, and no code.
func refusal(err error) (code string, ok bool) {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode(), true
	}
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() >= http.StatusBadRequest {
		return fmt.Sprintf("status %d", answer.HTTPStatusCode()), true
	}
	return "", false
}

// missing reports whether the source answers that something does not exist.
func missing(err error) bool {
	code, _ := refusal(err)
	return strings.Contains(code, "NotFound") || strings.HasPrefix(code, "NoSuch") || code == "ResourceNotFoundException" ||
		code == "QueueDoesNotExist" || strings.HasSuffix(code, "NonExistentQueue")
}

// thing returns the common fields of a copied resource. AWS does not say how old most are:
// they are old enough to be settled.
func (r *reader) thing(id *string, tags map[string]string) ec2.Thing {
	return ec2.Thing{ID: aws.ToString(id), Tags: tags, Born: r.old()}
}

func (r *reader) old() time.Time { return r.Now.AddDate(0, -1, 0) }

// since returns when a resource was created: the time that the source says, or the default for
// none. The clock of an emulator may be ahead.
func (r *reader) since(t *time.Time) time.Time {
	switch {
	case t == nil:
		return r.old()
	case t.After(r.Now):
		return r.Now.Add(-time.Minute)
	}
	return *t
}

// paginator is a paginator of the SDK.
type paginator[P, O any] interface {
	HasMorePages() bool
	NextPage(ctx context.Context, optFns ...func(*O)) (*P, error)
}

// pages calls a function with every page of a listing.
func pages[P, O any](ctx context.Context, p paginator[P, O], each func(*P)) error {
	for p.HasMorePages() {
		page, err := p.NextPage(ctx)
		if err != nil {
			return err
		}
		each(page)
	}
	return nil
}
