package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// answer is the answer of an account to one query.
type answer struct{ question, said string }

// suite sends queries to an account, one after the other.
type suite struct {
	t       *testing.T
	ctx     context.Context
	settle  func() // waits until asynchronous operations have ended
	answers []answer

	ec2     *ec2.Client
	classic *elasticloadbalancing.Client
	elb     *elasticloadbalancingv2.Client
	iam     *iam.Client
	s3      *s3.Client
	ssm     *ssm.Client
	secrets *secretsmanager.Client
	sts     *sts.Client
	quotas  *servicequotas.Client
	cfn     *cloudformation.Client
	eks     *eks.Client
	tagging *resourcegroupstaggingapi.Client
	scaling *autoscaling.Client
	sqs     *sqs.Client
	events  *eventbridge.Client

	vpc, subnet, group, image string // shared by several parts
}

// run sends all queries.
func run(t *testing.T, cfg aws.Config, settle func()) []answer {
	t.Helper()
	s := &suite{
		t: t, ctx: t.Context(), settle: settle,
		ec2: ec2.NewFromConfig(cfg), classic: elasticloadbalancing.NewFromConfig(cfg), elb: elasticloadbalancingv2.NewFromConfig(cfg),
		iam: iam.NewFromConfig(cfg), s3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }),
		ssm: ssm.NewFromConfig(cfg), secrets: secretsmanager.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg), quotas: servicequotas.NewFromConfig(cfg),
		cfn: cloudformation.NewFromConfig(cfg),
		eks: eks.NewFromConfig(cfg), tagging: resourcegroupstaggingapi.NewFromConfig(cfg),
		scaling: autoscaling.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg), events: eventbridge.NewFromConfig(cfg),
	}
	s.network()
	s.gateways()
	s.groups()
	s.tags()
	s.machines()
	s.images()
	s.pools()
	s.balancers()
	s.classicBalancers()
	s.parameters()
	s.secretsOf()
	s.buckets()
	s.account()
	s.roles()
	s.rules()
	s.stacks()
	s.eksClusters()
	s.teardown()
	return s.answers
}

// see records the result of a call: its error code, or a text that is the same for all
// accounts.
func (s *suite) see(question string, err error, said ...any) {
	s.t.Helper()
	a := answer{question, "ok"}
	switch {
	case err != nil:
		a.said = "error " + code(err)
	case len(said) > 0:
		words := make([]string, len(said))
		for i, w := range said {
			words[i] = fmt.Sprint(w)
		}
		a.said = strings.Join(words, " ")
	}
	s.answers = append(s.answers, a)
}

// need stops the suite if the following queries make no sense.
func (s *suite) need(err error) {
	s.t.Helper()
	require.NoError(s.t, err)
}

// code returns the error code of AWS or, if there is none, the error.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if errors.As(err, new(*smithy.DeserializationError)) {
		return "(no answer of this service)"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func str(p *string) string { return aws.ToString(p) }

func filter(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: &name, Values: values}}
}

func tagged(kind types.ResourceType, name string) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: kind, Tags: []types.Tag{{Key: aws.String("Name"), Value: &name}}}}
}

func names(tags []types.Tag) string {
	for _, t := range tags {
		if str(t.Key) == "Name" {
			return str(t.Value)
		}
	}
	return "(no name)"
}
