// Package objects has objects of Kubernetes that the API server accepts, and others that it refuses. Three judges have to agree about
// them: the rules of manifests, the simulated API server, and the real one (e2e/kubernetes).
package objects

import (
	_ "embed"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	//go:embed accepted.yaml
	accepted string
	//go:embed refused.yaml
	refused string
	//go:embed updates.yaml
	updates string
)

// Object is one object, as YAML.
type Object struct {
	Text  string
	Field string // the field for which the API server refuses it; "" if it accepts it
}

// Accepted returns objects that the API server accepts.
func Accepted() []Object { return split(accepted) }

// Refused returns objects that the API server refuses.
func Refused() []Object { return split(refused) }

func split(text string) (all []Object) {
	for _, part := range strings.Split(text, "---\n")[1:] { // the first part is a comment about the file
		o := Object{Text: part}
		if first, _, _ := strings.Cut(part, "\n"); strings.HasPrefix(first, "# ") {
			o.Field = strings.TrimPrefix(first, "# ")
		}
		all = append(all, o)
	}
	return all
}

// Update is an object of a cluster, and what it is changed to.
type Update struct {
	Have, After map[string]any
	Refused     []string // the fields for which the API server refuses it; none if it accepts it
}

// Updates returns changes that the API server accepts, and others that it refuses.
func Updates() (all []Update, err error) {
	for _, part := range strings.Split(updates, "---\n")[1:] {
		var u Update
		if err := yaml.UnmarshalStrict([]byte(part), &u); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}
