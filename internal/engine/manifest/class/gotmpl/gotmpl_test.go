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

// Errors and limits. Package test/oracle compares results with those of text/template and
// sprig.
func TestErrors(t *testing.T) {
	for template, want := range map[string]string{
		"a\n{{ nope }}":               `line 2 of the template: the function "nope" is not supported`,
		"{{ if .t }}":                 "line 1 of the template: unexpected EOF",
		"a\nb {{ .null.x }}":          "line 2 of the template: the value is null and has no field .x",
		"{{ .s.x }}":                  "line 1 of the template: can't evaluate field x in a string",
		"{{ upper .n }}":              "line 1 of the template: wrong type: expected string; got float64",
		"{{ upper .missing }}":        "line 1 of the template: no value given; expected string",
		"\n\n{{ fail \"not here\" }}": "line 3 of the template: fail: not here",
		"{{ div 1 0 }}":               "line 1 of the template: div: runtime error: integer divide by zero",
		"{{ index .list 7 }}":         "line 1 of the template: index: index out of range: 7",
		"{{ env \"HOME\" }}":          `line 1 of the template: the function "env" is not supported`,
		"{{ now }}":                   `line 1 of the template: the function "now" is not supported`,
		"{{ randAlpha 5 }}":           `line 1 of the template: the function "randAlpha" is not supported`,
		"{{ define \"T\" }}{{ template \"T\" }}{{ end }}{{ template \"T\" }}":                                   "line 1 of the template: templates call each other too deeply",
		"{{ repeat 1000000000 .s }}":                                                                            "line 1 of the template: repeat: the template exceeds the limits for work or size",
		"{{ range until 1000000000 }}x{{ end }}":                                                                "line 1 of the template: until: the template exceeds the limits for work or size",
		"{{ range 1000000000 }}x{{ end }}":                                                                      "line 1 of the template: the template exceeds the limits for work or size",
		"{{ indent 1000000000 .s }}":                                                                            "line 1 of the template: indent: the template exceeds the limits for work or size",
		"{{ printf \"%999999999d\" 1 }}":                                                                        "line 1 of the template: printf: the template exceeds the limits for work or size",
		"{{ $x := list 1 }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ $x }}":                         "line 1 of the template: the template exceeds the limits for work or size",
		"{{ $x := \"ab\" }}{{ range until 100 }}{{ $x = print $x $x }}{{ end }}":                                "line 1 of the template: the template exceeds the limits for work or size",
		"{{ $d := dict }}{{ $d = set $d \"x\" $d }}{{ toJson $d }}":                                             "line 1 of the template: the template exceeds the limits for work or size",
		"{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}":         "line 1 of the template: the template exceeds the limits for work or size",
		strings.Repeat("{{ range until 100 }}", 4) + strings.Repeat("x", 1000) + strings.Repeat("{{ end }}", 4): "line 1 of the template: the template exceeds the limits for work or size",
		"{{ $x := repeat 10000 \"x\" }}{{ printf (repeat 100000 \"%[1]s\") $x }}":                               "line 1 of the template: printf: the template exceeds the limits for work or size",
		"{{ printf (repeat 100000 \"%9999d\") 1 }}":                                                             "line 1 of the template: printf: the template exceeds the limits for work or size",
		"{{ printf \"%*d\" 999999 1 }}":                                                                         "line 1 of the template: printf: the template exceeds the limits for work or size",
		"{{ join (repeat 500000 \"x\") (until 60000) }}":                                                        "line 1 of the template: join: the template exceeds the limits for work or size",
		"{{ regexMatch (repeat 20000 \"(a|b)*\") \"ab\" }}":                                                     "line 1 of the template: regexMatch: the template exceeds the limits for work or size",
		"{{ regexMatch (repeat 100 \"a{1000}\") (repeat 1000 \"a\") }}":                                         "line 1 of the template: regexMatch: the template exceeds the limits for work or size",
		"{{ len (uniq (until 16000)) }}":                                                                        "line 1 of the template: uniq: the template exceeds the limits for work or size",
		"{{ len (split \"\" (repeat 1000000 \"x\")) }}":                                                         "line 1 of the template: split: the template exceeds the limits for work or size",
		"{{ trimAll (repeat 500000 \"é\") (repeat 500000 \"é\") }}":                                             "line 1 of the template: trimAll: the template exceeds the limits for work or size",
		"{{ range 8000000 }}{{ end }}":                                                                          "line 1 of the template: the template exceeds the limits for work or size",
	} {
		_, err := gotmpl.Render(template, data())
		assert.EqualError(t, err, want, template)
	}
}

// Functions that are expensive for large arguments work for those of real templates.
func TestUsualSizes(t *testing.T) {
	for template, want := range map[string]string{
		`{{ printf "port 12345: %05d|%-5s|%[1]d" 80 "a" }}`:               "port 12345: 00080|a    |80",
		`{{ join "," (until 3) }}`:                                        "0,1,2",
		`{{ regexReplaceAll "[^a-z0-9]+" (repeat 1000 "a_") "-" | len }}`: "2000",
		`{{ regexMatch "^v[0-9]+([.][0-9]+){1,2}$" "v1.34.2" }}`:          "true",
		`{{ len (uniq (concat (until 500) (until 500))) }}`:               "500",
		`{{ len (split "," (repeat 1000 "a,")) }}`:                        "1001",
		`{{ without (list "a" "b" "c") "b" "x" }}`:                        "[a c]",
		`{{ trimAll "ab " (repeat 1000 "ab c") | len }}`:                  "3997",
	} {
		got, err := gotmpl.Render(template, data())
		require.NoError(t, err, template)
		assert.Equal(t, want, got, template)
	}
}

// All templates of one input share a budget.
func TestBudget(t *testing.T) {
	b := gotmpl.NewBudget()
	for n := 1; ; n++ {
		_, err := b.Render("{{ range until 100 }}{{ range until 1000 }}{{ end }}{{ end }}", data())
		if err != nil {
			require.EqualError(t, err, "line 1 of the template: the template exceeds the limits for work or size")
			require.Greater(t, n, 8)
			return
		}
		require.Less(t, n, 1000)
	}
}

func TestStrict(t *testing.T) {
	template, err := gotmpl.Parse("{{ .obj.a.b }}-{{ .missing }}")
	require.NoError(t, err)
	text, err := template.Execute(data())
	require.NoError(t, err)
	assert.Equal(t, "c-<no value>", text)
	_, err = template.ExecuteStrict(data())
	require.EqualError(t, err, "line 1 of the template: .missing is not defined")
}

// Every template gives a text of limited length or an *Error.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"", "{{", "{{ . }}", "{{ .s | upper }}", "{{ range $i, $x := .list }}{{ $i }}{{ break }}{{ end }}", "{{ with .obj }}{{ .a.b }}{{ else }}{{ end }}",
		"{{ define \"T\" }}{{ template \"T\" . }}{{ end }}{{ template \"T\" . }}", "{{ $x := dict \"a\" 1 }}{{ set $x \"b\" $x }}", "{{ index .list 0 | repeat 9 }}",
		"{{ substr 5 1 .s }}", "{{ slice .list -1 }}", "{{ trunc -99 .s }}", "{{ first }}", "{{ dig \"a\" .obj }}", "{{ int .s | until }}", "{{ untilStep 0 9 0 }}", "{{ printf \"%!\" }}",
		"{{ regexReplaceAll \"(a*)*b\" .s \"$1\" }}", "{{ semverCompare .s .s }}", "{{ 1i }}", "{{ nil }}", "{{ (nil).x }}", "{{ $ }}", "{{ $.list }}", "{{- /**/ -}}",
		"{{ $x := repeat 10000 \"x\" }}{{ printf (repeat 100000 \"%[1]s\") $x }}", "{{ join (repeat 500000 \"x\") (until 60000) }}", "{{ printf \"%[1]*d\" 9 }}",
		"{{ regexMatch (repeat 20000 \"(a|b)*\") \"ab\" }}", "{{ uniq (until 16000) }}", "{{ split \"\" .s }}", "{{ trimAll .s .s }}", "{{ range 8000000 }}{{ end }}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		text, err := gotmpl.Render(template, data())
		var evalErr *gotmpl.Error
		switch {
		case err != nil && !errors.As(err, &evalErr):
			t.Fatalf("unexpected error: %v", err)
		case err != nil && (evalErr.What == "" || evalErr.Line < 1):
			t.Fatalf("an error without a message: %v", evalErr)
		case len(text) > 1<<20:
			t.Fatalf("%d bytes", len(text))
		}
	})
}
