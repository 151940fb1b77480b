package iamjudge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// authorization is AWS's Service Authorization Reference, as data.
type authorization struct {
	actions   map[string]action   // by "service:action", in lower case
	arns      map[string]string   // by "service:type", in lower case, with variables
	dependent map[string][]string // actions that AWS checks in addition, by action
}

// action is an action of the reference.
type action struct {
	Name          string `json:"name"`
	ResourceTypes []struct {
		Name             string   `json:"name"`
		Required         bool     `json:"required"`
		DependentActions []string `json:"dependentActions"`
	} `json:"resourceTypes"`
	DependentActions []string `json:"dependentActions"`
}

// services are those that the program calls, as IAM abbreviates them.
func services() []string {
	return []string{
		"autoscaling",
		"ec2",
		"eks",
		"elasticloadbalancing",
		"events",
		"iam",
		"kms",
		"route53",
		"s3",
		"secretsmanager",
		"servicequotas",
		"sqs",
		"ssm",
		"sts",
	}
}

// read reads the data. Its newer versions do not have the dependent actions any more, so
// these are from the last version that has them.
func read(t *testing.T, modules string) *authorization {
	t.Helper()
	newest, older := filepath.Join(modules, "@cloud-copilot", "iam-data", "data"), filepath.Join(modules, "iam-data-with-dependent-actions", "data")
	a := &authorization{actions: map[string]action{}, arns: map[string]string{}, dependent: map[string][]string{}}
	for _, service := range services() {
		for name, x := range file[action](t, newest, "actions", service) {
			a.actions[service+":"+name] = x
		}
		for name, x := range file[struct{ ARN string }](t, newest, "resourceTypes", service) {
			a.arns[service+":"+name] = x.ARN
		}
		for name, x := range file[action](t, older, "actions", service) {
			all := slices.Clone(x.DependentActions)
			for _, r := range x.ResourceTypes {
				all = append(all, r.DependentActions...)
			}
			slices.Sort(all)
			a.dependent[service+":"+name] = slices.Compact(all)
		}
	}
	return a
}

func file[T any](t *testing.T, folder, kind, service string) (all map[string]T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, kind, service+".json")) //nolint:gosec // a file of a test
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &all))
	return all
}
