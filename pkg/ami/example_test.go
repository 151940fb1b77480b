package ami_test

import (
	"context"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/ami"
)

// The newest image of one version in two regions.
func Example() {
	cfg := awssim.New(awssim.Options{}).Config() // for AWS, use config.LoadDefaultConfig
	found, err := ami.List(context.Background(), cfg, ami.Query{
		Owner: ami.Owner, OS: []string{"ubuntu-24.04"}, Version: "v1.34.2", Architectures: []string{ami.X8664},
		Regions: []string{"us-east-1", "eu-west-1"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, image := range found.Images {
		fmt.Println(image.Region, image.Version, image.OS, image.Name)
	}
	// Output:
	// us-east-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664000
	// eu-west-1 v1.34.2 ubuntu-24.04 capa-ami-ubuntu-24.04-v1.34.2-1765664000
}
