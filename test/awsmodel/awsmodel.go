// Package awsmodel checks the inputs of AWS calls against AWS's own models of its
// services: required members, unknown members, enums, ranges, lengths and patterns. It
// reads the models from the AWS CLI that is installed on the machine.
package awsmodel

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// service is the file service-2.json of botocore.
type service struct {
	Metadata struct {
		ServiceID string `json:"serviceId"`
	} `json:"metadata"`
	Operations map[string]struct {
		Input *member `json:"input"`
	} `json:"operations"`
	Shapes map[string]shape `json:"shapes"`
}

// shape is a type of a model.
type shape struct {
	Type     string            `json:"type"`
	Required []string          `json:"required"`
	Members  map[string]member `json:"members"` // of a structure
	Member   member            `json:"member"`  // of a list
	Key      member            `json:"key"`     // of a map
	Value    member            `json:"value"`   // of a map
	Min      *float64          `json:"min"`
	Max      *float64          `json:"max"`
	Enum     []string          `json:"enum"`
	Pattern  string            `json:"pattern"`
}

type member struct {
	Shape string `json:"shape"`
}

// Models are the models of services, by the ID of the service.
type Models map[string]*service

// Load reads the newest model of each service, from the folder "data" of botocore.
func Load(data string) (Models, error) {
	files, err := Files(data)
	if err != nil {
		return nil, err
	}
	all := Models{}
	for _, file := range files {
		s := new(service)
		if err := Read(file, s); err != nil {
			return nil, err
		}
		all[s.Metadata.ServiceID] = s
	}
	return all, nil
}

// Files lists the files with the newest model of each service that the program uses, in
// the folder "data" of botocore: all of botocore's would take a minute to read.
func Files(data string) (newest []string, err error) {
	for _, folder := range []string{
		"autoscaling", "cloudformation", "ec2", "eks", "elb", "elbv2", "events", "iam", "kms", "pricing", "resourcegroupstaggingapi", "s3", "secretsmanager", "service-quotas", "sqs", "ssm", "sts",
	} {
		files, err := filepath.Glob(filepath.Join(data, folder, "*", "service-2.json.gz"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s has no model of %s", data, folder)
		}
		newest = append(newest, slices.Max(files)) // the versions are dates
	}
	return newest, nil
}

// Read reads a file of compressed JSON, such as a model, into a value.
func Read(file string, into any) error {
	f, err := os.Open(file) //nolint:gosec // a file of the AWS CLI
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(unzipped).Decode(into)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return errors.Join(err, f.Close())
}

// Write writes a value to a file that Read can read.
func Write(file string, value any) error {
	raw, err := json.Marshal(value)
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
	return os.WriteFile(file, zipped.Bytes(), 0o644) //nolint:gosec // a file of this repository
}

// Each reads the newest model of each service that the program uses from the installed AWS CLI, and passes it on.
func Each[T any](ctx context.Context, do func(model *T)) error {
	folder, err := Folder(ctx)
	if err != nil {
		return err
	}
	files, err := Files(folder)
	if err != nil {
		return err
	}
	for _, file := range files {
		model := new(T)
		if err := Read(file, model); err != nil {
			return err
		}
		do(model)
	}
	return nil
}

// Folder finds botocore's folder "data", next to the program aws or in the Python of the
// PATH, which is where pip installs it.
func Folder(ctx context.Context) (string, error) {
	program, err := exec.LookPath("aws")
	if err != nil {
		return "", errors.New("the AWS CLI is not installed; it has AWS's models of its services (pip install awscli)")
	}
	if target, err := filepath.EvalSymlinks(program); err == nil {
		program = target
	}
	root := filepath.Dir(filepath.Dir(program))
	patterns := []string{
		filepath.Join(root, "lib", "python3*", "*-packages", "botocore", "data"),
		filepath.Join(filepath.Dir(program), "awscli", "botocore", "data"), // of the AWS CLI, version 2
	}
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import botocore; print(botocore.__path__[0])").Output(); err == nil {
		patterns = append(patterns, filepath.Join(strings.TrimSpace(string(out)), "data"))
	}
	for _, p := range patterns {
		if found, err := filepath.Glob(p); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("botocore is not found: %s belongs to the AWS CLI, but none of %s exists", program, strings.Join(patterns, ", "))
}
