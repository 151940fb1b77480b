// Command generate writes the file with the constraints of AWS's APIs, from the models in the AWS CLI.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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
	folder, err := awsmodel.Folder(ctx)
	if err != nil {
		return err
	}
	files, err := awsmodel.Files(folder)
	if err != nil {
		return err
	}
	all := apimodel.Models{}
	for _, file := range files {
		s := new(apimodel.Service)
		if err := awsmodel.Read(file, s); err != nil {
			return err
		}
		if names := apimodel.Operations()[s.Metadata.ID]; names != nil {
			all[s.Metadata.ID] = s.Only(names)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(raw); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, zipped.Bytes(), 0o644) //nolint:gosec // a file of this repository
}
