package eks_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// Clusters with the kinds of this package are created and deleted, and each field of these kinds that somebody changes
// is restored or refused.
func TestLife(t *testing.T) {
	enginetest.LifeOfKinds(
		t, eks.Kinds(),
		"eks-addons.yaml", "eks-auto.yaml", "eks-fargate.yaml", "eks-iam.yaml", "eks-templates.yaml",
		"eks-machines.yaml", "eks-ipv6.yaml",
	)
}
