package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// endpointHost is the field of objects that controllers set to the address of the API server.
const endpointHost = "controlPlaneEndpoint.host"

// values renders the template of values with the objects of the cluster, as CAAPH does
// (internal/value_substitutions.go): Cluster, ControlPlane and InfraCluster. Their status, and what
// controllers write into their spec, is not known here, except for the address of the API server: a template that uses it
// is rendered again with the address, and until then it is plan.Unknown in the values.
func (l *loader) values(o *manifest.Entry, text string, c *clusterv1.Cluster, budget *gotmpl.Budget) (chartValues, bool) {
	const path = "spec.valuesTemplate"
	if strings.TrimSpace(text) == "" {
		return chartValues{}, true
	}
	t := valuesTemplate{text: text, objects: l.objectsForValues(c), managed: c.Spec.ControlPlaneRef.Kind == manifest.KindManagedPlane}
	t.port = l.portForValues(t)
	host := t.givenHost()
	if host != "" {
		values, err := t.render(host, budget)
		if err != nil {
			l.fail(o.Problem(path, err.What, err.Fix))
		}
		return chartValues{now: values}, err == nil
	}
	values, err := t.render("api-1.elb.amazonaws.com", budget)
	if err != nil {
		l.fail(o.Problem(path, err.What, err.Fix))
		return chartValues{}, false
	}
	other, err := t.render("api-2.elb.amazonaws.com", budget)
	if err == nil && reflect.DeepEqual(values, other) {
		return chartValues{now: values}, true
	}
	masked, _ := unknownWhereDifferent(values, other).(map[string]any)
	return chartValues{now: masked, later: func(host string) (map[string]any, error) {
		values, problem := t.render(host, gotmpl.NewBudget())
		if problem != nil {
			return nil, errors.New(problem.What)
		}
		return values, nil
	}}, true
}

// chartValues are the values of a chart: those that are known now, and those with the address of the API server; nil if they are the same.
type chartValues struct {
	now   map[string]any
	later func(host string) (map[string]any, error)
}

// valuesTemplate is the template of values of a chart.
type valuesTemplate struct {
	text    string
	objects map[string]any
	managed bool // by EKS
	port    int64
}

// givenHost returns the host of the API server that the manifest sets. That of EKS is always set by EKS.
func (t *valuesTemplate) givenHost() string {
	if t.managed {
		return ""
	}
	for _, name := range []string{"InfraCluster", "Cluster"} {
		object, _ := t.objects[name].(map[string]any)
		if host, _ := manifest.ValueAt(object, "spec."+endpointHost).(string); host != "" {
			return host
		}
	}
	return ""
}

// portForValues returns the port of the API server.
func (l *loader) portForValues(t valuesTemplate) int64 {
	const portOfEKS = 443
	if t.managed {
		return portOfEKS
	}
	for _, name := range []string{"InfraCluster.spec.controlPlaneEndpoint.port", "Cluster.spec.controlPlaneEndpoint.port", "Cluster.spec.clusterNetwork.apiServerPort"} {
		if port, _ := manifest.ValueAt(t.objects, name).(int64); port != 0 {
			return port
		}
	}
	return manifest.DefaultAPIPort
}

// withHost returns the objects with the address of the API server, as controllers write it: CAPA into the object of the infrastructure and
// that of EKS's control plane, with https:// before the host of EKS (pkg/cloud/services/eks/cluster.go of v2.13.0), and Cluster API into the Cluster.
func (t *valuesTemplate) withHost(host string) map[string]any {
	if t.managed {
		host = "https://" + host
	}
	names := []string{"Cluster", "InfraCluster"}
	if t.managed {
		names = append(names, "ControlPlane")
	}
	objects := maps.Clone(t.objects)
	for _, name := range names {
		object, is := objects[name].(map[string]any)
		if !is {
			continue
		}
		object = maps.Clone(object)
		spec, _ := object["spec"].(map[string]any)
		spec = maps.Clone(spec)
		if spec == nil {
			spec = map[string]any{}
		}
		spec["controlPlaneEndpoint"] = map[string]any{"host": host, "port": t.port}
		object["spec"], objects[name] = spec, object
	}
	return objects
}

// render returns the values for an address of the API server.
func (t *valuesTemplate) render(host string, budget *gotmpl.Budget) (map[string]any, *manifest.Problem) {
	objects := t.withHost(host)
	rendered, err := budget.Render(t.text, objects)
	if err != nil {
		return nil, &manifest.Problem{What: err.Error(), Fix: "use the fields of .Cluster, .ControlPlane and .InfraCluster, as the manifest sets them"}
	}
	if at := strings.Index(rendered, "<no value>"); at >= 0 {
		what := fmt.Sprintf("line %d of the result has no value", strings.Count(rendered[:at], "\n")+1)
		if field := t.missing(objects); field != "" {
			what = fmt.Sprintf("%s has no value (line %d of the result)", field, strings.Count(rendered[:at], "\n")+1)
		}
		return nil, &manifest.Problem{What: what + ": the manifest does not set the field", Fix: "set the field, or write the value: " +
			"a run knows the address of the API server (.Cluster.spec.controlPlaneEndpoint), and nothing else that controllers write into the objects"}
	}
	data, err := yaml.YAMLToJSON([]byte(rendered)) // as Helm reads values: YAML 1.1, in which "yes" is true
	if err != nil {
		return nil, &manifest.Problem{What: "the result is not valid YAML: " + firstLine(err), Fix: "check the indentation"}
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, &manifest.Problem{What: "the result is not a mapping", Fix: "values are names with values"}
	}
	return values, nil
}

// missing returns the first expression of the template that is a field without a value, such as ".Cluster.status.phase"; "" for none.
func (t *valuesTemplate) missing(objects map[string]any) string {
	for _, field := range regex.Of(`\.(?:Cluster|ControlPlane|InfraCluster)(?:\.[A-Za-z_]\w*)+`).FindAllString(t.text, -1) {
		if manifest.ValueAt(objects, strings.TrimPrefix(field, ".")) == nil {
			return "{{ " + field + " }}"
		}
	}
	return ""
}

// unknownWhereDifferent returns a value with plan.Unknown for all parts that another one does not have in the same way.
func unknownWhereDifferent(a, b any) any {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		out := map[string]any{}
		for name, value := range a {
			out[name] = unknownWhereDifferent(value, b[name])
		}
		return out
	default:
		if !reflect.DeepEqual(a, b) {
			return plan.Unknown
		}
		return a
	}
}

// firstLine returns the first line of an error without quoted values, which may be secret.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return regex.Of("`[^`]*`").ReplaceAllString(line, "…")
}

// objectsForValues returns the objects that a template of values can use.
func (l *loader) objectsForValues(c *clusterv1.Cluster) map[string]any {
	all := map[string]any{}
	add := func(name, kind, of string) {
		o := l.lookup(kind, of)
		if o == nil {
			return
		}
		value := o.Value
		if o.Typed != nil {
			raw, err := json.Marshal(o.Typed)
			var newest map[string]any
			if err == nil && utiljson.Unmarshal(raw, &newest) == nil { // integers stay integers, as CAAPH reads them
				newest["apiVersion"], newest["kind"] = o.Value["apiVersion"], o.Kind
				value = newest
			}
		}
		all[name] = value
	}
	add("Cluster", manifest.KindCluster, c.Name)
	add("ControlPlane", c.Spec.ControlPlaneRef.Kind, c.Spec.ControlPlaneRef.Name)
	add("InfraCluster", c.Spec.InfrastructureRef.Kind, c.Spec.InfrastructureRef.Name)
	return all
}
