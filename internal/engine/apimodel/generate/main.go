// Command generate writes the file with the constraints of AWS's APIs, from the models in the AWS CLI.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/apimodel"
	"github.com/clusterawsadm/clusterawsadm/test/awsmodel"
)

func main() {
	if err := write(context.Background(), os.Args[1]); err != nil { //nolint:forbidigo // the root of all contexts
		_, _ = fmt.Fprintln(os.Stderr, "generate:", err) //nolint:forbidigo // the only output
		os.Exit(1)                                       //nolint:forbidigo // a command
	}
}

func write(ctx context.Context, to string) error {
	all := apimodel.Models{}
	err := awsmodel.Each(ctx, func(s *apimodel.Service) {
		if names := apimodel.Operations()[s.Metadata.ID]; names != nil {
			all[s.Metadata.ID] = s.Only(names)
		}
	})
	if err != nil {
		return err
	}
	return awsmodel.Write(to, all)
}
