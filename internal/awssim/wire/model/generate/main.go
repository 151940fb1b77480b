// Command generate writes the file with the models of the operations that the simulated
// AWS simulates, from the models in the AWS CLI.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	folder, err := awsmodel.Folder(ctx)
	if err != nil {
		return err
	}
	files, err := awsmodel.Files(folder)
	if err != nil {
		return err
	}
	wanted := map[string][]string{}
	for _, op := range awssim.New(awssim.Options{}).Process().Operations() {
		wanted[op.Package] = append(wanted[op.Package], op.Name)
	}
	all := map[string]*model.Service{}
	for _, file := range files {
		s, err := read(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if names := wanted[s.Package()]; names != nil {
			all[s.Package()] = s.Only(names)
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

func read(file string) (*model.Service, error) {
	f, err := os.Open(file) //nolint:gosec // a file of the AWS CLI
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(unzipped)
	if err != nil {
		return nil, err
	}
	var s model.Service
	return &s, json.Unmarshal(raw, &s)
}
