// Package eventbridge has the resources of Amazon EventBridge: the rule that sends interruptions to Karpenter's queue.
package eventbridge

import "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"

// Kinds lists the kinds of this package: one line each.
func Kinds() []*kind.Kind {
	return []*kind.Kind{
		ruleKind(),
	}
}
