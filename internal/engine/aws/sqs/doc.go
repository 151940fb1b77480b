// Package sqs has the resources of Amazon SQS: the queue from which Karpenter reads interruptions.
package sqs

import "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"

// Kinds lists the kinds of this package: one line each.
func Kinds() []*kind.Kind {
	return []*kind.Kind{
		queueKind(),
	}
}
