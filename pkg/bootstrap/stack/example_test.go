package stack_test

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

// Create and delete the stack of a configuration.
func Example() {
	ctx := context.Background()
	fast := clock.Fast(time.Now(), 500)
	cfg := awssim.New(awssim.Options{Clock: fast}).Config() // for AWS, use config.LoadDefaultConfig and no Clock

	config, suffix := bootstrap.Default(), ".team-a"
	config.Spec.StackName, config.Spec.NameSuffix = "team-a", &suffix
	template, err := config.Template().YAML()
	if err != nil {
		fmt.Println(err)
		return
	}
	s := stack.New(cfg, config.Spec.StackName, stack.Options{Clock: fast})
	outcome, err := s.Apply(ctx, stack.Wanted{Template: string(template)})
	fmt.Println(outcome, err)
	resources, err := s.Resources(ctx)
	fmt.Println(len(resources), "resources", err)
	existed, err := s.Delete(ctx)
	fmt.Println("deleted", existed, err)
	// Output:
	// created <nil>
	// 11 resources <nil>
	// deleted true <nil>
}
