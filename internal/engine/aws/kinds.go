package aws

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/sqs"
)

// Kinds lists the kinds of all AWS services.
func Kinds() []*kind.Kind {
	return slices.Concat(
		eks.Kinds(),
		iam.Kinds(),
		ec2.Kinds(),
		autoscaling.Kinds(),
		elb.Kinds(),
		s3.Kinds(),
		secrets.Kinds(),
		sqs.Kinds(),
		eventbridge.Kinds(),
	)
}
