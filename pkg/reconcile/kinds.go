package reconcile

import (
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// Kinds of resources that a program may want to tell apart: what plan.ID.Kind returns.
const (
	KindAPIServer      = incluster.APIServerKind
	KindLaunchTemplate = ec2.LaunchTemplateKind
	KindMachine        = ec2.MachineKind
	KindNode           = incluster.NodeKind
)
