package permission_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// service is a client of the SDK, and how IAM calls what it asks for.
type service struct {
	prefix string // of the actions
	client reflect.Type
}

// services are those of cloud.Clients, by the package of their client.
func services() map[string]service {
	of := func(prefix string, client any) service { return service{prefix, reflect.TypeOf(client)} }
	return map[string]service{
		"autoscaling":            of("autoscaling", &autoscaling.Client{}),
		"ec2":                    of("ec2", &ec2.Client{}),
		"eks":                    of("eks", &eks.Client{}),
		"elasticloadbalancing":   of("elasticloadbalancing", &elasticloadbalancing.Client{}),
		"elasticloadbalancingv2": of("elasticloadbalancing", &elasticloadbalancingv2.Client{}),
		"eventbridge":            of("events", &eventbridge.Client{}),
		"iam":                    of("iam", &iam.Client{}),
		"kms":                    of("kms", &kms.Client{}),
		"pricing":                of("pricing", &pricing.Client{}),
		"s3":                     of("s3", &s3.Client{}),
		"secretsmanager":         of("secretsmanager", &secretsmanager.Client{}),
		"servicequotas":          of("servicequotas", &servicequotas.Client{}),
		"sqs":                    of("sqs", &sqs.Client{}),
		"ssm":                    of("ssm", &ssm.Client{}),
		"sts":                    of("sts", &sts.Client{}),
	}
}

// call is an operation of a service: "ec2", "CreateVpc".
type call struct{ service, operation string }

// calls finds every call of the SDK in the code of the engine: operations,
// paginators and presigned requests.
func calls(t *testing.T, dirs ...string) map[call]string {
	t.Helper()
	found := map[call]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				collect(t, path, found)
			}
			return err
		})
		require.NoError(t, err)
	}
	return found
}

func collect(t *testing.T, path string, found map[call]string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	imported := map[string]string{}
	for _, i := range file.Imports {
		full := strings.Trim(i.Path.Value, `"`)
		name := filepath.Base(full)
		if strings.HasPrefix(full, "github.com/aws/aws-sdk-go-v2/") {
			if i.Name != nil {
				imported[i.Name.Name] = name
			} else {
				imported[name] = name
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if c, ok := called(s, imported); ok {
			found[c] = set.Position(s.Pos()).String()
		}
		return true
	})
}

// called tells what a selector calls: c.EC2.CreateVpc,
// ec2.NewDescribeVpcsPaginator, ec2.NewFromConfig(cfg).DescribeRegions,
// client.PresignGetObject, stscreds.NewAssumeRoleProvider.
func called(s *ast.SelectorExpr, imported map[string]string) (call, bool) {
	name := s.Sel.Name
	if name == "Options" { // of the client: it sends nothing
		return call{}, false
	}
	if name == "NewAssumeRoleProvider" {
		return call{"sts", "AssumeRole"}, true
	}
	if op, ok := strings.CutPrefix(name, "Presign"); ok {
		if _, ok := services()["s3"].client.MethodByName(op); ok {
			return call{"s3", op}, true
		}
	}
	var of string
	switch x := s.X.(type) {
	case *ast.Ident:
		of = imported[x.Name]
		m := regexp.MustCompile(`^New(\w+)Paginator$`).FindStringSubmatch(name)
		if m == nil {
			return call{}, false
		}
		name = m[1]
	case *ast.SelectorExpr:
		if f, ok := reflect.TypeFor[cloud.Clients]().FieldByName(x.Sel.Name); ok && f.Type.Kind() == reflect.Pointer {
			of = filepath.Base(f.Type.Elem().PkgPath())
		}
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "NewFromConfig" {
			if p, ok := f.X.(*ast.Ident); ok {
				of = imported[p.Name]
			}
		}
	}
	service, ok := services()[of]
	if !ok {
		return call{}, false
	}
	_, ok = service.client.MethodByName(name)
	return call{of, name}, ok
}
