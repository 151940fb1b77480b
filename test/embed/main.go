// Command embed creates, shows and deletes the cluster of a manifest with the
// engine of clusterawsadm as a library:
//
//	AWS_ENDPOINT_URL=http://127.0.0.1:5000 embed demo.yaml
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
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string) error {
	m, err := reconcile.LoadFile(file, input.LoadOptions{Lookup: os.LookupEnv})
	if err != nil {
		return err // an *input.InvalidError: every problem with file and line
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(m.Region()))
	if err != nil {
		return err
	}
	c := reconcile.Open(m, cluster.Target{Config: cfg, Owner: "test/embed", Clock: &fast{began: time.Now()}})

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

// fast is a clock for an emulator of AWS, which is 30 times faster.
type fast struct{ began time.Time }

func (f *fast) Now() time.Time { return f.began.Add(30 * time.Since(f.began)) }

func (f *fast) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d / 30):
		return nil
	}
}
