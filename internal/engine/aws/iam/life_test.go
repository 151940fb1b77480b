package iam_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// TestLife creates and deletes clusters that have the resources of this package. In between, it changes each field of these resources outside of
// a run: the next run restores the field, or is refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(t, iam.Kinds(), "eks-iam.yaml", "eks-karpenter.yaml")
}
