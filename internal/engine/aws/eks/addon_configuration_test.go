package eks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Schemas are read as far as EKS and Go agree about them. No schema makes this program fetch another document.
func TestSchemas(t *testing.T) {
	for _, unread := range []string{"", "no JSON", `{"$ref": "https://example.com/schema.json"}`, `{"properties": {"a": {"$ref": "other.json"}}}`, `{"type": 1}`} {
		assert.Nil(t, compile(unread), unread)
	}
	schema := compile(`{
		"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/All",
		"definitions": {"All": {
			"type": "object", "additionalProperties": false,
			"properties": {
				"perl": {"type": "string", "pattern": "^(?!x)"}, "short": {"type": "string", "pattern": "^a+$"}, "time": {"type": "string", "format": "date-time"},
				"either": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"size": {"type": "integer", "minimum": 2}}}]}
			}
		}}
	}`)
	require.NotNil(t, schema)
	for configuration, want := range map[string][]string{
		`{"perl": "x", "short": "aa", "time": "soon", "either": {"size": 3}}`: nil,
		`{"either": null}`:    nil,
		`short: b`:            {`short: Does not match pattern '^a+$'`},
		`either: {size: 1}`:   {"either.size: Must be greater than or equal to 2"},
		`{"other": 1}`:        {"Additional property other is not allowed"},
		"{":                   {"it is neither JSON nor YAML"},
		`[]`:                  {"Invalid type. Expected: object, given: array"},
		"perl: 1\nother: 2\n": {"Additional property other is not allowed", "perl: Invalid type. Expected: string, given: integer"},
	} {
		have, err := misfits(schema, configuration)
		require.NoError(t, err)
		assert.Equal(t, want, have, configuration)
	}
}
