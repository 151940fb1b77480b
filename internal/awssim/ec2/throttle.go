package ec2

import (
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// limits are the rate limits of "Request throttling for the Amazon EC2 API" in the EC2 developer guide. AWS has a bucket
// for each operation; here those that change something share one, which is stricter.
func limits() core.Limits {
	return core.Limits{Code: "RequestLimitExceeded", Of: func(op string, in any) []core.TokenBucket {
		request := requests(op, in)
		if instances := instances(op, in); instances.Size > 0 {
			return []core.TokenBucket{request, instances}
		}
		return []core.TokenBucket{request}
	}}
}

// requests returns the bucket from which each request of an operation takes a token.
func requests(op string, in any) core.TokenBucket {
	switch {
	case op == "RunInstances", op == "StartInstances":
		return core.TokenBucket{Class: "RunInstances, StartInstances", Each: true, Size: 5, Refill: 2}
	case op == "CreateTags":
		return core.TokenBucket{Class: "CreateTags", Size: 100, Refill: 10}
	case core.Reads(op) && in != nil && reflect.ValueOf(in).Elem().IsZero():
		return core.TokenBucket{Class: "reads without filters and pages", Each: true, Size: 50, Refill: 10}
	case core.Reads(op):
		return core.TokenBucket{Class: "reads", Each: true, Size: 100, Refill: 20}
	}
	return core.TokenBucket{Class: "other writes", Size: 200, Refill: 5}
}

// instances returns the bucket from which a request takes a token for each of its instances ("Resource token limits"); one
// without a size if the request names no instances.
func instances(op string, in any) core.TokenBucket {
	n, refill := 0, 20.0
	switch in := in.(type) {
	case *ec2.RunInstancesInput:
		n, refill = int(aws.ToInt32(in.MaxCount)), 2
	case *ec2.StartInstancesInput:
		n, refill = len(in.InstanceIds), 2
	case *ec2.StopInstancesInput:
		n = len(in.InstanceIds)
	case *ec2.TerminateInstancesInput:
		n = len(in.InstanceIds)
	}
	if n == 0 {
		return core.TokenBucket{}
	}
	return core.TokenBucket{Class: "instances of " + op, Size: 1000, Refill: refill, Takes: float64(n)}
}
