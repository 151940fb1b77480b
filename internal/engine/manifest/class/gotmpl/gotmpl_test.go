package gotmpl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
)

func data() map[string]any {
	return map[string]any{
		"s": "text", "n": 3.0, "t": true, "null": nil, "list": []any{"a", 1.0, nil},
		"obj": map[string]any{"a": map[string]any{"b": "c"}},
	}
}

// That the results are those of text/template with sprig is for test/oracle to
// say; here are errors and bounds.
func TestErrors(t *testing.T) {
	for template, want := range map[string]string{
		"a\n{{ nope }}":               `line 2 of the template: there is no function "nope" here`,
		"{{ if .t }}":                 "line 1 of the template: unexpected EOF",
		"a\nb {{ .null.x }}":          "line 2 of the template: the value is null, so there is no .x in it",
		"{{ .s.x }}":                  "line 1 of the template: can't evaluate field x in a string",
		"{{ upper .n }}":              "line 1 of the template: wrong type: expected string; got float64",
		"{{ upper .missing }}":        "line 1 of the template: there is no value here, and string is needed",
		"\n\n{{ fail \"not here\" }}": "line 3 of the template: fail: not here",
		"{{ div 1 0 }}":               "line 1 of the template: div: runtime error: integer divide by zero",
		"{{ index .list 7 }}":         "line 1 of the template: index: index out of range: 7",
		"{{ env \"HOME\" }}":          `line 1 of the template: there is no function "env" here`,
		"{{ now }}":                   `line 1 of the template: there is no function "now" here`,
		"{{ randAlpha 5 }}":           `line 1 of the template: there is no function "randAlpha" here`,
		"{{ define \"T\" }}{{ template \"T\" }}{{ end }}{{ template \"T\" }}":                                   "line 1 of the template: templates call each other too deeply",
		"{{ repeat 1000000000 .s }}":                                                                            "line 1 of the template: repeat: the template makes too much: more work or text than is allowed",
		"{{ range until 1000000000 }}x{{ end }}":                                                                "line 1 of the template: until: the template makes too much: more work or text than is allowed",
		"{{ range 1000000000 }}x{{ end }}":                                                                      "line 1 of the template: the template makes too much: more work or text than is allowed",
		"{{ indent 1000000000 .s }}":                                                                            "line 1 of the template: indent: the template makes too much: more work or text than is allowed",
		"{{ printf \"%999999999d\" 1 }}":                                                                        "line 1 of the template: printf: the template makes too much: more work or text than is allowed",
		"{{ $x := list 1 }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ $x }}":                         "line 1 of the template: the template makes too much: more work or text than is allowed",
		"{{ $x := \"ab\" }}{{ range until 100 }}{{ $x = print $x $x }}{{ end }}":                                "line 1 of the template: the template makes too much: more work or text than is allowed",
		"{{ $d := dict }}{{ $d = set $d \"x\" $d }}{{ toJson $d }}":                                             "line 1 of the template: the template makes too much: more work or text than is allowed",
		"{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}":         "line 1 of the template: the template makes too much: more work or text than is allowed",
		strings.Repeat("{{ range until 100 }}", 4) + strings.Repeat("x", 1000) + strings.Repeat("{{ end }}", 4): "line 1 of the template: the template makes too much: more work or text than is allowed",
	} {
		_, err := gotmpl.Render(template, data())
		assert.EqualError(t, err, want, template)
	}
}

func TestStrict(t *testing.T) {
	template, err := gotmpl.Parse("{{ .obj.a.b }}-{{ .missing }}")
	require.NoError(t, err)
	text, err := template.Execute(data())
	require.NoError(t, err)
	assert.Equal(t, "c-<no value>", text)
	_, err = template.ExecuteStrict(data())
	require.EqualError(t, err, "line 1 of the template: there is no .missing here")
}

// Whatever the template, there is a text of bounded length or an *Error.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"", "{{", "{{ . }}", "{{ .s | upper }}", "{{ range $i, $x := .list }}{{ $i }}{{ break }}{{ end }}", "{{ with .obj }}{{ .a.b }}{{ else }}{{ end }}",
		"{{ define \"T\" }}{{ template \"T\" . }}{{ end }}{{ template \"T\" . }}", "{{ $x := dict \"a\" 1 }}{{ set $x \"b\" $x }}", "{{ index .list 0 | repeat 9 }}",
		"{{ substr 5 1 .s }}", "{{ slice .list -1 }}", "{{ trunc -99 .s }}", "{{ first }}", "{{ dig \"a\" .obj }}", "{{ int .s | until }}", "{{ untilStep 0 9 0 }}", "{{ printf \"%!\" }}",
		"{{ regexReplaceAll \"(a*)*b\" .s \"$1\" }}", "{{ semverCompare .s .s }}", "{{ 1i }}", "{{ nil }}", "{{ (nil).x }}", "{{ $ }}", "{{ $.list }}", "{{- /**/ -}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		text, err := gotmpl.Render(template, data())
		var told *gotmpl.Error
		switch {
		case err != nil && !errors.As(err, &told):
			t.Fatalf("unexpected error: %v", err)
		case err != nil && (told.What == "" || told.Line < 1):
			t.Fatalf("an error that says nothing: %v", told)
		case len(text) > 1<<20:
			t.Fatalf("%d bytes", len(text))
		}
	})
}
