// Command embed creates, shows and deletes the cluster of a manifest with the engine of
// clusterawsadm as a library, or takes a cluster back from a management cluster:
//
//	AWS_ENDPOINT_URL=http://127.0.0.1:5000 embed demo.yaml
//	AWS_ENDPOINT_URL=http://127.0.0.1:5000 embed taken.yaml management.kubeconfig demo
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/management"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := run
	if len(os.Args) > 2 {
		do = takeback
	}
	if err := do(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func takeback(ctx context.Context, file string) error {
	from, err := management.Connect(management.Options{Kubeconfig: os.Args[2]})
	if err != nil {
		return err
	}
	return management.Takeback{
		From: from, Namespace: "default", Name: os.Args[3],
		Target: target,
		Write:  func(manifest []byte) error { return os.WriteFile(file, manifest, 0o600) },
		Tell:   func(text string) { fmt.Println(text) },
	}.Run(ctx)
}

// target is the account of a manifest.
func target(ctx context.Context, m *reconcile.Manifest) (cluster.Target, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(m.Region()))
	return cluster.Target{Config: cfg, Owner: "test/embed", Clock: &fast{began: time.Now()}}, err
}

func run(ctx context.Context, file string) error {
	m, err := reconcile.LoadFile(file, input.LoadOptions{Lookup: os.LookupEnv})
	if err != nil {
		return err // an *input.InvalidError: every problem with file and line
	}
	t, err := target(ctx, m)
	if err != nil {
		return err
	}
	c := reconcile.Open(m, t)

	planned, err := c.Plan(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("plan: %d to create, about %s\n", planned.Count(plan.Create), planned.Expected)

	progress := cluster.Options{Observe: func(e plan.Event) {
		if e.What == plan.Done {
			fmt.Printf("  %-40s %s\n", e.Resource, e.CloudID)
		}
	}}
	if _, err := c.Apply(ctx, progress); err != nil {
		return err
	}
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("status: %s in %s, https://%s\n", status.Name, status.Region, status.Endpoint)
	for _, r := range status.Resources {
		fmt.Printf("  %-8s %-40s %s\n", r.State, r.Resource, r.CloudID)
	}
	result, err := c.Delete(ctx, progress)
	fmt.Printf("deleted: %d resources\n", result.Plan.Count(plan.Remove))
	return err
}
