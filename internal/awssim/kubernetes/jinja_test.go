package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/templates"
)

// The simulated cloud-init ignores texts that jinja2 refuses, and no others.
func TestTemplates(t *testing.T) {
	vars := func() map[string]any {
		return map[string]any{
			"ds": map[string]any{"meta_data": map[string]any{
				"local_hostname": "h", "instance_id": nil, "placement": map[string]any{"availability_zone": nil}, "mac": nil, "hostname": nil,
			}},
			"v1": map[string]any{"region": nil}, "x": nil, "y": nil, "range": nil,
		}
	}
	cases := templates.All(t)
	for _, text := range cases.Accepted {
		_, err := renderJinja(text+"\nend\n", vars())
		require.NoError(t, err, text)
	}
	for _, text := range cases.Refused {
		_, err := renderJinja(text+"\nend\n", vars())
		assert.Error(t, err, text)
	}
}

// Variables become their values, and unknown ones the mark of cloud-init. An attribute of an unknown one is an error.
func TestVariablesOfTemplates(t *testing.T) {
	vars := map[string]any{"ds": map[string]any{"meta_data": map[string]any{"local_hostname": "ip-10-0-0-1.ec2.internal", "mac": nil}}}
	for text, want := range map[string]string{
		"name: '{{ ds.meta_data.local_hostname }}'":          "name: 'ip-10-0-0-1.ec2.internal'",
		`{{ ds.meta_data["local-hostname"] }}`:               "ip-10-0-0-1.ec2.internal",
		"{{ ds.meta_data.localhostname }}":                   "CI_MISSING_JINJA_VAR/localhostname",
		"{{ ds.meta_data.mac }}{{ ds.meta_data.mac|upper }}": "{{ ds.meta_data.mac }}{{ ds.meta_data.mac|upper }}",
		"{# a #}{% raw %}{{ .Name }}{% endraw %}{{ '{{' }}":  "{{ .Name }}{{",
		"{% if a %}b{% else %}c{% endif %}":                  "b",
	} {
		out, err := renderJinja(text, vars)
		require.NoError(t, err, text)
		assert.Equal(t, want, out)
	}
	for text, want := range map[string]string{
		"{{ ds.metadata.local_hostname }}":    "'metadata' is undefined",
		"{{ ds.meta_data.local-hostname }}":   "'local' is undefined",
		"a\n{{ ds.meta_data.mac | shorten }}": "no filter named 'shorten' on line 3",
	} {
		_, err := renderJinja(text, vars)
		assert.ErrorContains(t, err, want)
	}
}
