package class

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
)

// Cluster API truncates names to this length, and adds five random characters to
// truncated names.
const (
	longestName  = 63
	randomLength = 5
)

// suffix replaces Cluster API's random characters by a hash, so that an object has the
// same name in every run.
func (e *expander) suffix(what, topologyName string) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	sum := sha256.Sum256([]byte(strings.Join([]string{e.namespace(), e.cluster.Name, what, topologyName}, "/")))
	out := make([]byte, randomLength)
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out)
}

// name returns the name from the naming template of the class, or plain if there is none.
func (e *expander) name(what, template, plain, topologyName string, at Place) string {
	name := plain
	if template != "" {
		made, err := e.fromTemplate(what, template, topologyName)
		if err != nil {
			e.fail(
				at,
				"the naming template does not result in a valid name: "+err.Error(),
				"use {{ .cluster.name }}, {{ .machineDeployment.topologyName }} for machine deployments, and {{ .random }}",
			)
		}
		name = made
	}
	return e.shortened(name, what, topologyName)
}

func (e *expander) shortened(name, what, topologyName string) string {
	if len(name) <= longestName {
		return name
	}
	return name[:longestName-randomLength] + e.suffix(what, topologyName)
}

func (e *expander) fromTemplate(what, template, topologyName string) (string, error) {
	data := map[string]any{
		"cluster": map[string]any{"name": e.cluster.Name},
		"random":  e.suffix(what, topologyName),
	}
	if topologyName != "" {
		data["machineDeployment"] = map[string]any{"topologyName": topologyName}
	}
	t, err := gotmpl.Parse(template)
	if err != nil {
		return "", err
	}
	name, err := t.Within(e.budget).ExecuteStrict(data)
	if err != nil {
		return "", err
	}
	if bad := validation.IsDNS1123Subdomain(e.shortened(name, what, topologyName)); len(bad) > 0 {
		return "", fmt.Errorf("%q: %w", name, errors.New(bad[0]))
	}
	return name, nil
}
