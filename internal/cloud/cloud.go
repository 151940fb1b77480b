// Package cloud is the only package that calls AWS. It has the SDK clients, the guard
// that every call passes, the cache of read results, tags, error codes and the lock.
package cloud

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Clients has one client for each AWS service in use, and the cache of what they have
// read. It belongs to one cluster and one run.
type Clients struct {
	EC2     *ec2.Client
	EKS     *eks.Client
	ELB     *elasticloadbalancing.Client   // classic load balancers
	ELBV2   *elasticloadbalancingv2.Client // network load balancers
	IAM     *iam.Client
	KMS     *kms.Client
	S3      *s3.Client
	Secrets *secretsmanager.Client
	SQS     *sqs.Client
	SSM     *ssm.Client
	STS     *sts.Client
	Quotas  *servicequotas.Client

	AutoScaling *autoscaling.Client
	EventBridge *eventbridge.Client
	Pricing     *pricing.Client // in the region of its endpoint

	Config  aws.Config // as given to New; used to presign requests
	Region  string
	Cluster string       // name of the Cluster object; part of every tag
	Clock   *clock.Clock // nil means the system clock
	KMSKey  string       // see Options
	Lock    *Lock        // checked before every write; nil means no check (tests, single calls)

	sends       aws.Config // with the middlewares of the clients
	tokens      string     // seed of the client tokens of this run
	inherited   string     // that of an earlier run whose requests may still arrive; "" if there is none
	budget      *Budget
	memos       sync.Map // question -> *memo
	reading     atomic.Int64
	batches     batches
	stats       Stats
	undecodable atomic.Bool // the caller may not decode the details of denied calls

	reached atomic.Bool  // AWS has answered a call
	ahead   atomic.Int64 // by how much the clock of this machine is ahead of AWS's, in nanoseconds
	log     func(plan.Call)
	repeats func(Retry)
	retries aws.RetryerV2
	via     kube.Transport
	Helm    kube.Helm // nil: there is none
	apis    sync.Map  // server -> *kube.Client
}

// Options configure how a run calls AWS.
type Options struct {
	Clock    *clock.Clock
	Parallel int             // maximum number of calls at the same time; 0 means DefaultParallel
	Log      func(plan.Call) // called after every call; may be nil
	// Repeating is called before an attempt that repeats a call, unless the context has a
	// function for that (WithRepeats); may be nil.
	Repeating func(Retry)
	// KMSKey encrypts the parameters with secrets of the cluster: an ID, ARN or alias; ""
	// means the AWS managed key of Systems Manager.
	KMSKey string
	// Budget is shared by several clients; nil: one with Parallel slots.
	Budget *Budget
	// Kubernetes replaces the network for requests to the API servers of clusters. nil
	// means the network.
	Kubernetes kube.Transport
	// Helm runs the program helm; nil: there is none.
	Helm kube.Helm
}

// DefaultParallel is the default maximum number of calls at the same time.
const DefaultParallel = 32

// New returns the clients of one cluster, in the region of the configuration. AWS, an
// emulator and the simulation differ in the configuration only.
func New(cfg aws.Config, cluster string, o Options) *Clients {
	if o.Budget == nil {
		o.Budget = NewBudget(o.Clock, o.Parallel)
	}
	c := &Clients{
		KMSKey: o.KMSKey, Config: cfg, Region: cfg.Region, Cluster: cluster, Clock: o.Clock, log: o.Log, repeats: o.Repeating, via: o.Kubernetes, Helm: o.Helm,
		tokens: randomToken(), budget: o.Budget,
	}
	cfg = awshttp.Checked(cfg)
	c.retries = c.retryer()
	cfg.Retryer = func() aws.Retryer { return unpaused{c.retries} }
	if cfg.Credentials != nil {
		cfg.Credentials = source{cfg.Credentials}
	}
	cfg.APIOptions = append(cfg.APIOptions, c.guard)
	c.sends = cfg
	c.EKS = eks.NewFromConfig(cfg)
	c.EC2, c.ELB, c.ELBV2 = ec2.NewFromConfig(cfg), elasticloadbalancing.NewFromConfig(cfg), elasticloadbalancingv2.NewFromConfig(cfg)
	c.IAM, c.Secrets, c.SSM = iam.NewFromConfig(cfg), secretsmanager.NewFromConfig(cfg), ssm.NewFromConfig(cfg)
	c.STS, c.Quotas = sts.NewFromConfig(cfg), servicequotas.NewFromConfig(cfg)
	c.AutoScaling, c.EventBridge, c.SQS = autoscaling.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	c.Pricing = pricing.NewFromConfig(cfg, priceList)
	own := c.In(cfg.Region)
	c.S3, c.KMS = own.S3, own.KMS
	return c
}

// Elsewhere has the clients for resources that are used from another region, or from this one.
type Elsewhere struct {
	KMS *kms.Client
	S3  *s3.Client
}

// In returns the clients for a region.
func (c *Clients) In(region string) Elsewhere {
	cfg := c.sends.Copy()
	cfg.Region = region
	return Elsewhere{KMS: kms.NewFromConfig(cfg), S3: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil
		o.DisableLogOutputChecksumValidationSkipped = true // which does not mean that anything is wrong
	})}
}

// wrongClock is the difference from which the clock of this machine is considered wrong.
const wrongClock = time.Minute

// Now returns the time by AWS's clock, as of its last answer. Certificates and tokens are
// checked by machines of AWS, and the clock of this machine may be wrong.
func (c *Clients) Now() time.Time { return c.Clock.Now().Add(-time.Duration(c.ahead.Load())) }

// compareClocks notes the time that an answer of AWS shows. Simulations have their own clock.
func (c *Clients) compareClocks(md middleware.Metadata) {
	shown, ok := awsmiddleware.GetServerTime(md)
	if !ok || c.Clock != nil {
		return
	}
	ahead := c.Clock.Now().Sub(shown)
	if ahead.Abs() < wrongClock {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}
