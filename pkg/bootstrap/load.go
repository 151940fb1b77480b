package bootstrap

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1alpha1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1alpha1"
	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// kind is the only supported kind.
const kind = "AWSIAMConfiguration"

// Options configure Load.
type Options struct {
	// Strict turns warnings into errors.
	Strict bool
}

// Load reads the first document of a file, YAML or JSON, with API version v1alpha1 or
// v1beta1. The name is used in messages ("-" for standard input). YAML is version 1.1, in
// which an unquoted "on" is true. The error is an *input.InvalidError with all problems.
func Load(name string, data []byte, o Options) (*Config, error) {
	l := &loader{lines: lines{file: name, of: map[string]int{}}}
	c, err := l.load(data)
	if err != nil {
		return nil, err
	}
	c.lines = l.lines
	l.remark(c)
	l.lines.order(l.warnings)
	c.Warnings = l.warnings
	if o.Strict && len(c.Warnings) > 0 {
		return nil, &input.InvalidError{Problems: c.Warnings}
	}
	return c, nil
}

type loader struct {
	lines    lines
	errors   []input.Problem
	warnings []input.Problem
	budget   int // number of nodes that locate may still visit
}

func (l *loader) load(data []byte) (*Config, error) {
	if len(data) == 0 {
		return nil, l.invalid("", "the file is empty", "begin it with apiVersion: "+bootstrapv1.SchemeGroupVersion.String()+" and kind: "+kind)
	}
	text, err := l.json(data)
	if err != nil {
		return nil, err
	}
	var document any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &document); err != nil {
		return nil, l.invalid("", err.Error(), "")
	}
	object, isObject := document.(map[string]any)
	if !isObject {
		object = map[string]any{}
	}
	version, err := l.recognise(object)
	if err != nil {
		return nil, err
	}
	l.check(object, version)
	l.functions(object["spec"], "spec")
	if len(l.errors) > 0 {
		l.lines.order(l.errors)
		return nil, &input.InvalidError{Problems: l.errors}
	}
	return l.decode(text, object, version)
}

// json converts the first document to JSON and records the lines of its fields.
func (l *loader) json(data []byte) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = l.invalid("", fmt.Sprintf("the YAML is invalid: %v", r), "")
		}
	}()
	l.locate(data)
	if json.Valid(data) {
		return data, nil
	}
	if text, err = yaml.YAMLToJSON(data); err == nil {
		return text, nil
	}
	what := err.Error()
	for _, p := range []string{"error converting YAML to JSON: ", "yaml: "} {
		what = strings.TrimPrefix(what, p)
	}
	if m := regex.Of(`^line (\d+): `).FindStringSubmatch(what); m != nil {
		line, _ := strconv.Atoi(m[1])
		what = what[len(m[0]):]
		if regex.Of(`^did not find expected (key|node content|'|<)|^found undefined tag`).MatchString(what) {
			line++ // in grammar errors, the parser counts lines from zero
		}
		l.lines.of[""] = line
	}
	return nil, l.invalid("", "the YAML is invalid: "+what, "check the indentation, and quote text that holds special characters")
}

// recognise returns the API version of the object.
func (l *loader) recognise(object map[string]any) (string, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kinds, _ := object["kind"].(string)
	use := "use apiVersion: " + bootstrapv1.SchemeGroupVersion.String() + " and kind: " + kind
	gv, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case apiVersion == "" || kinds == "" || err != nil || gv.Group == "" || gv.Version == "":
		return "", l.invalid("apiVersion", "the file has no valid apiVersion and kind", use)
	case kinds != kind:
		return "", l.invalid("kind", fmt.Sprintf("the kind %q in %s is not supported", kinds, gv), use)
	case gv != bootstrapv1.SchemeGroupVersion && gv != bootstrapv1alpha1.SchemeGroupVersion:
		return "", l.invalid("apiVersion", fmt.Sprintf("%s has no version %q", kind, gv.String()), use)
	}
	return gv.Version, nil
}

// decode sets the defaults of the version in the file, and converts the object to the
// newest version, whose defaults then apply only to the suffix and the stack name.
func (l *loader) decode(text []byte, object map[string]any, version string) (*Config, error) {
	var newest bootstrapv1.AWSIAMConfiguration
	var err error
	if version == bootstrapv1.SchemeGroupVersion.Version {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, &newest)
		bootstrapv1.SetObjectDefaults_AWSIAMConfiguration(&newest)
	} else {
		var older bootstrapv1alpha1.AWSIAMConfiguration
		if err = kjson.UnmarshalCaseSensitivePreserveInts(text, &older); err == nil {
			bootstrapv1alpha1.SetObjectDefaults_AWSIAMConfiguration(&older)
			err = bootstrapv1alpha1.Convert_v1alpha1_AWSIAMConfiguration_To_v1beta1_AWSIAMConfiguration(&older, &newest, nil)
			bootstrapv1.SetDefaults_AWSIAMConfiguration(&newest)
		}
	}
	if err != nil { // should not happen after check
		return nil, l.invalid("", strings.TrimPrefix(err.Error(), "json: "), "")
	}
	if complete(object) {
		asWritten(object, &newest.Spec)
	} else if readOnly := at(object, "spec", "nodes")["ec2ContainerRegistryReadOnly"]; readOnly == false && newest.Spec.Nodes.EC2ContainerRegistryReadOnly {
		l.warn("spec.nodes.ec2ContainerRegistryReadOnly", "false has no effect beside spec.eks, which makes it true", "remove spec.eks, or set spec.eks.disable")
	}
	return &Config{Spec: newest.Spec}, nil
}

// invalid returns an error with one problem.
func (l *loader) invalid(path, what, fix string) error {
	return &input.InvalidError{Problems: []input.Problem{l.problem(path, what, fix)}}
}

func (l *loader) problem(path, what, fix string) input.Problem {
	return input.Problem{Position: l.lines.at(path), Path: path, What: what, Fix: fix}
}

func (l *loader) warn(path, what, fix string) {
	l.warnings = append(l.warnings, l.problem(path, what, fix))
}
