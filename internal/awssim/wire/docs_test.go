package wire_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
	_ "github.com/clusterawsadm/clusterawsadm/internal/golden" // the flag -update
)

// TestPage checks the tables of docs/simulator.md, which are generated from the code. With -update
// they are written.
func TestPage(t *testing.T) {
	file := filepath.Join("..", "..", "..", "docs", "simulator.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	models, err := model.Load()
	require.NoError(t, err)
	code := readSource(t)
	want := replaced(t, string(page), "operations", operations(t, models, code))
	want = replaced(t, want, "delays", delays(models, code))
	want = replaced(t, want, "limits", limits(models))
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page), "run the test with -update")
}

// replaced returns a page with another text between two comments.
func replaced(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	require.True(t, ok, begin)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, end)
	return before + begin + text + end + after
}

// operations is a table for each service.
func operations(t *testing.T, models map[string]*model.Service, code *source) string {
	t.Helper()
	var b strings.Builder
	service := ""
	for _, op := range awssim.New(awssim.Options{}).Process().Operations() {
		if op.Package != service {
			service = op.Package
			fmt.Fprintf(&b, "\n### %s\n\n| Operation | Parameters | Errors | Consistency |\n|---|---|---|---|\n", models[service].Metadata.ID)
		}
		name := op.Package + "." + op.Name
		require.NotNil(t, code.handlers[name], "%s: the code that registers its handler is not found", name)
		r := code.reaches(name)
		fmt.Fprintf(
			&b,
			"| %s | %s | %s | %s |\n",
			op.Name,
			strings.Join(op.Fields, ", "),
			strings.Join(codesOf(models[service], r), ", "),
			strings.Join(slices.Sorted(maps.Keys(r.late)), ", "),
		)
	}
	return b.String() + "\n"
}

// codesOf are the error codes that a handler reaches. An error with a type of its own may have
// another code than its name.
func codesOf(m *model.Service, r *reach) (codes []string) {
	isCode := regexp.MustCompile(`^[A-Z][A-Za-z.]+$`)
	for code := range r.codes {
		if shape, ok := m.Shapes[code]; ok && shape.Error.Code != "" {
			code = shape.Error.Code
		}
		if isCode.MatchString(code) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// delays is the table of what takes time.
func delays(models map[string]*model.Service, code *source) string {
	var b strings.Builder
	b.WriteString("\n| In | For how long | Time | Operations |\n|---|---|---|---|\n")
	all := code.delays()
	for i, d := range all {
		text, most := strings.TrimPrefix(d.text, "how long "), time.Duration(0)
		switch {
		case text == d.text && !strings.HasPrefix(text, "the minimum time that "):
			continue // no delay, or the maximum of the one before
		case text == d.text:
			text, most = strings.TrimPrefix(text, "the minimum time that "), all[i+1].takes
		}
		takes := d.takes.String()
		if most > 0 {
			takes += " to " + most.String()
		}
		takes = regexp.MustCompile(`([mh])0[ms](0s)?`).ReplaceAllString(takes, "$1")
		var operations []string
		for _, name := range code.reachedBy(d.object) {
			service, operation, _ := strings.Cut(name, ".")
			if models[service].Metadata.ID != titleOf(models, d.service) && service != d.service {
				operation = models[service].Metadata.ID + " " + operation
			}
			operations = append(operations, operation)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", titleOf(models, d.service), text, takes, strings.Join(operations, ", "))
	}
	return b.String() + "\n"
}

// limits is the table of the rate limits.
func limits(models map[string]*model.Service) string {
	var b strings.Builder
	b.WriteString("\n| Service | Operations | At once | A second | Error |\n|---|---|---|---|---|\n")
	p := awssim.New(awssim.Options{}).Process()
	var rows []string
	for _, op := range p.Operations() {
		service := models[op.Package].Metadata.ID
		l, _ := p.Limits(service)
		inputs := []any{nil, reflect.New(op.Input).Interface()}
		if op.Name == "RunInstances" {
			inputs = append(inputs, &ec2.RunInstancesInput{MaxCount: aws.Int32(1)})
		}
		if f, ok := op.Input.FieldByName("InstanceIds"); ok && strings.HasSuffix(op.Name, "Instances") && f.Type.Kind() == reflect.Slice {
			in := reflect.New(op.Input)
			in.Elem().FieldByIndex(f.Index).Set(reflect.ValueOf([]string{"i-0"}))
			inputs = append(inputs, in.Interface())
		}
		for _, in := range inputs {
			for _, bucket := range l.Of(op.Name, in) {
				class := bucket.Class
				if bucket.Each {
					class += ", each"
				}
				row := fmt.Sprintf("| %s | %s | %v | %v | %s |\n", service, class, bucket.Size, bucket.Refill, l.Code)
				if !slices.Contains(rows, row) {
					rows = append(rows, row)
				}
			}
		}
	}
	slices.Sort(rows)
	return b.String() + strings.Join(rows, "") + "\n"
}

// titleOf is the name of a package of the simulator in the tables.
func titleOf(models map[string]*model.Service, service string) string {
	switch m := models[service]; {
	case m != nil:
		return m.Metadata.ID
	case service == "elb":
		return "Elastic Load Balancing v2"
	}
	return "clusters" // what is in them
}
