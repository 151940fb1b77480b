package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Create a cluster in a simulated account, show it, and delete it. The account's clock runs 500 times
// faster. With a real account, use config.LoadDefaultConfig of the AWS SDK, and leave Target.Clock nil.
func Example() {
	ctx := context.Background()
	m, err := reconcile.LoadFile("../../configs/quickstart.yaml", input.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	account := awssim.New(awssim.Options{Region: m.Region(), Speed: 500})
	c := reconcile.Open(m, cluster.Target{Config: account.Config(), Owner: "ada@laptop", Timeout: time.Hour, Clock: account})

	planned, err := c.Plan(ctx)
	fmt.Println(planned.Count(plan.Create), "to create, about", planned.Expected, err)

	created := 0
	_, err = c.Apply(ctx, cluster.Options{Observe: func(e plan.Event) {
		if e.What == plan.Creating {
			created++
		}
	}})
	fmt.Println(created, "created", err)

	status, err := c.Status(ctx)
	for _, r := range status.Resources[:3] {
		fmt.Println(r.Resource, r.State, err)
	}

	result, err := c.Delete(ctx, cluster.Options{})
	fmt.Println(result.Plan.Count(plan.Remove), "deleted", err)
	// Output:
	// 37 to create, about 2m30s <nil>
	// 37 created <nil>
	// vpc ok <nil>
	// internet-gateway ok <nil>
	// subnet/public/us-east-1a ok <nil>
	// 37 deleted <nil>
}

// All problems of an invalid manifest are reported.
func ExampleLoad() {
	_, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: []byte(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: demo
spec:
  infrastructureRef:
    apiGroup: infrastructure.cluster.x-k8s.io
    kind: AWSCluster
    name: demo
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata:
  name: demo
spec:
  regoin: eu-west-1
`)}}, input.LoadOptions{Region: "us-east-1"})
	var invalid *input.InvalidError
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// demo.yaml:6: Cluster/demo spec.controlPlaneRef: the cluster has no control plane — set a KubeadmControlPlane, or add Machines with the label cluster.x-k8s.io/control-plane
	// demo.yaml:17: AWSCluster/demo spec.regoin: the field does not exist — did you mean "region"?
}

// The policy for a user of one cluster only.
func ExampleManifest_Policy() {
	m, err := reconcile.LoadFile("../../configs/quickstart.yaml", input.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := m.Policy().Statement[1]
	fmt.Println(s.Effect, s.Action[0], "…", s.Condition)
	// Output:
	// Allow ec2:AllocateAddress … map[StringEquals:map[aws:RequestedRegion:[us-east-1]]]
}
