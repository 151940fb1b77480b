// Command generate writes the file with the models of the operations that the simulated
// AWS simulates, from the models in the AWS CLI.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
	"github.com/clusterawsadm/clusterawsadm/test/awsmodel"
)

func main() {
	if err := write(context.Background(), os.Args[1]); err != nil { //nolint:forbidigo // the root of all contexts
		_, _ = fmt.Fprintln(os.Stderr, "generate:", err) //nolint:forbidigo // the only output
		os.Exit(1)                                       //nolint:forbidigo // a command
	}
}

func write(ctx context.Context, to string) error {
	wanted := map[string][]string{}
	for _, op := range awssim.New(awssim.Options{}).Process().Operations() {
		wanted[op.Package] = append(wanted[op.Package], op.Name)
	}
	all := map[string]*model.Service{}
	err := awsmodel.Each(ctx, func(s *model.Service) {
		if names := wanted[s.Package()]; names != nil {
			all[s.Package()] = s.Only(names)
		}
	})
	if err != nil {
		return err
	}
	return awsmodel.Write(to, all)
}
