package iam_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Clusters with the kinds of this package are created and deleted, and each field of these kinds that somebody changes
// is restored or refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(t, iam.Kinds(), "eks-iam.yaml", "eks-karpenter.yaml")
}
