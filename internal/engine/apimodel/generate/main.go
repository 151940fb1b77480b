// Command generate writes the file with the constraints of AWS's APIs, from the models in the AWS CLI.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/apimodel"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/test/awsmodel"
)

func main() {
	if err := write(context.Background(), os.Args[1]); err != nil { //nolint:forbidigo // the root of all contexts
		_, _ = fmt.Fprintln(os.Stderr, "generate:", err) //nolint:forbidigo // the only output
		os.Exit(1)                                       //nolint:forbidigo // a command
	}
}

func write(ctx context.Context, to string) error {
	all, names := apimodel.Models{}, operations()
	err := awsmodel.Each(ctx, func(s *apimodel.Service) {
		if some := s.Only(names[s.Metadata.ID]); len(some.Operations) > 0 {
			all[s.Metadata.ID] = some
		}
	})
	if err != nil {
		return err
	}
	return awsmodel.Write(to, all)
}

// operations lists, by the ID of their service, what resources are created and updated with: the actions of all kinds but
// those that delete. An action that is no operation, as a permission can be, is not in the model of the service.
func operations() map[string][]string {
	ids := map[string][]string{
		"autoscaling": {"Auto Scaling"}, "ec2": {"EC2"}, "eks": {"EKS"}, "iam": {"IAM"},
		"elasticloadbalancing": {"Elastic Load Balancing", "Elastic Load Balancing v2"},
	}
	names := map[string][]string{}
	for _, k := range aws.Kinds() {
		for _, a := range k.Actions {
			service, name, _ := strings.Cut(a, ":")
			for _, id := range ids[service] {
				if !strings.HasPrefix(name, "Delete") {
					names[id] = append(names[id], name)
				}
			}
		}
	}
	return names
}
