package eks_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// TestLife creates and deletes clusters that have the resources of this package. In between, it changes each field of these resources outside of
// a run: the next run restores the field, or is refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(
		t, eks.Kinds(),
		"eks-addons.yaml", "eks-auto.yaml", "eks-fargate.yaml", "eks-iam.yaml", "eks-templates.yaml",
		"eks-machines.yaml", "eks-ipv6.yaml",
	)
}
