package oracle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
)

const templateData = `{
  "s": "a b", "e": "", "n": 3, "f": 2.5, "big": 1000000, "t": true, "no": false, "null": null, "v": "v1.34.2", "lines": "x\ny",
  "list": ["b", "a", "b"], "mixed": [1, "x", null, true, {"k": "v"}], "empty": [], "obj": {"a": {"b": ["c", "d"]}, "k": "v", "z": 0}, "none": {}
}`

func freshData(t require.TestingT) map[string]any {
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(templateData), &m))
	return m
}

// std returns the result of text/template and sprig for a template.
func std(t require.TestingT, text string) (out string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	parsed, err := template.New("t").Funcs(sprig.HermeticTxtFuncMap()).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = parsed.Execute(&b, freshData(t))
	return b.String(), err
}

// sameText compares both evaluators: the same text, or an error of both.
func sameText(t require.TestingT, text string) {
	want, wantErr := std(t, text)
	got, gotErr := gotmpl.Render(text, freshData(t))
	if wantErr != nil {
		require.Error(t, gotErr, "%s\ntext/template: %v", text, wantErr)
		return
	}
	require.NoError(t, gotErr, text)
	require.Equal(t, want, got, text)
}

// Templates of published classes, and special cases of the language.
func TestTemplates(t *testing.T) {
	for _, text := range []string{
		"", "plain", "{{ .s }}", "{{ .missing }}", "{{ .missing.more }}", "{{ .null }}", "{{ .null.more }}", "{{ .s.more }}", "{{ .big }}", "{{ .f }} {{ .n }}",
		"{{ .obj }}{{ .list }}{{ .mixed }}", `{{ if .t }}yes{{ else if .no }}no{{ else }}never{{ end }}`, `{{ if and .t (not .no) }}true{{ end }}`,
		`{{ with .obj.a }}{{ .b }}{{ $.s }}{{ else }}-{{ end }}`, `{{ with $x := .e }}{{ $x }}{{ else with .s }}{{ . }}{{ end }}`,
		`{{ range .list }}<{{ . }}>{{ end }}`, `{{ range $i, $x := .list }}{{ $i }}={{ $x }} {{ end }}`, `{{ range $k, $x := .obj }}{{ $k }}={{ $x }};{{ end }}`,
		`{{ range .empty }}x{{ else }}none{{ end }}`, `{{ range .list }}{{ if eq . "a" }}{{ break }}{{ end }}{{ . }}{{ end }}`, `{{ range .list }}{{ if eq . "a" }}{{ continue }}{{ end }}{{ . }}{{ end }}`,
		`{{ range 3 }}{{ . }}{{ end }}`, `{{ range $i := until 3 }}{{ $i }}{{ end }}`, `{{ range .n }}x{{ end }}`, `{{ range $i, $x := 3 }}x{{ end }}`, `{{ range .s }}x{{ end }}`,
		`{{ $x := 1 }}{{ range .list }}{{ $x = add $x 1 }}{{ end }}{{ $x }}`, `{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}`,
		`{{ range $i, $e := .list }}{{ range $j, $f := $.list }}{{ $i }}{{ $j }}{{ $e }}{{ $f }} {{ end }}{{ end }}`,
		`{{ range $i, $e := .list -}}  {{ $i }}  {{- end }}`, "{{- /* a comment */ -}} x", `{{ "quoted" }}{{ ` + "`raw`" + ` }}{{ 'a' }}{{ 0x1F }}{{ 1e3 }}{{ 1_000 }}`,
		`{{ define "T" }}[{{ . }}]{{ end }}{{ template "T" .s }}{{ template "T" }}`, `{{ block "B" .n }}{{ . }}{{ end }}`, `{{ template "none" }}`,
		`{{ eq .n 3 }}`, `{{ eq .n 3.0 }}`, `{{ eq .s "x" "a b" }}`, `{{ eq .missing "x" }}`, `{{ ne .missing .null }}`, `{{ eq .list .list }}`, `{{ eq .t true }}`, `{{ eq (int .n) 3 }}`,
		`{{ lt .n 4.0 }}`, `{{ gt (len .list) 2 }}`, `{{ le "a" .s }}`, `{{ ge .t .t }}`, `{{ lt .missing 1 }}`, `{{ lt 1 .n }}`,
		`{{ index .list 1 }}`, `{{ index .obj "a" "b" 0 }}`, `{{ index .list 9 }}`, `{{ index .obj "none" }}`, `{{ index .obj "none" "x" }}`, `{{ index .list .n }}`, `{{ index .s 0 }}`,
		`{{ len .s }} {{ len .obj }} {{ len .empty }}`, `{{ len .n }}`, `{{ len .missing }}`,
		`{{ printf "%s-%d-%v-%q" .s (int .n) .f .s }}`, `{{ print .s .n 1 2 "x" }}`, `{{ println .s }}`, `{{ printf "%d" .n }}`, `{{ .null | print }}`,
		`{{ .s | upper | quote }}`, `{{ quote .s .n .null }}`, `{{ squote .s }}`, `{{ .lines | indent 4 }}`, `{{ .lines | nindent 2 }}`, `{{ indent -1 .s }}`, `{{ trim "  x " }}`,
		`{{ trimSuffix "b" .s }}{{ trimPrefix "a" .s }}{{ trimAll "ab" .s }}`, `{{ .s | replace " " "-" }}`, `{{ join "," .mixed }}`, `{{ join "," .s }}`, `{{ splitList " " .s | join "+" }}`,
		`{{ (split " " .s)._1 }}`, `{{ (split " " .s)._7 }}`, `{{ (splitn " " 2 "a b c")._1 }}`, `{{ .s | b64enc }}`, `{{ "eA==" | b64dec }}`, `{{ "?" | b64dec }}`, `{{ .s | sha256sum }}`,
		`{{ .missing | default "d" }}`, `{{ default "d" .e }}`, `{{ default 0 .n }}`, `{{ coalesce .e .missing .s }}`, `{{ ternary "y" "n" .t }}`, `{{ ternary "y" "n" .s }}`, `{{ empty .e }}{{ empty .none }}{{ empty .n }}`,
		`{{ list 1 2 "x" | toJson }}`, `{{ dict "a" 1 "b" | toJson }}`, `{{ .obj | toJson }}{{ .obj | toPrettyJson }}`, `{{ "<a>" | toJson }}{{ "<a>" | toRawJson }}`, `{{ (fromJson "{\"a\": [1]}").a }}`,
		`{{ get .obj "k" }}{{ get .obj "none" }}`, `{{ hasKey .obj "k" }}`, `{{ pick .obj "k" | toJson }}{{ omit .obj "k" | toJson }}`, `{{ set .obj "q" 1 | toJson }}`, `{{ unset .obj "k" | toJson }}`, `{{ pluck "k" .obj .none }}`, `{{ dig "a" "b" "d" .obj }}`, `{{ dig "x" "y" "d" .obj }}`, `{{ keys .obj | sortAlpha }}`,
		`{{ first .list }}{{ last .list }}{{ rest .list }}{{ initial .list }}`, `{{ first .empty }}`, `{{ append .list "c" }}{{ prepend .list "c" }}{{ concat .list .mixed }}`, `{{ has "a" .list }}`, `{{ uniq .list }}{{ without .list "b" }}{{ compact .mixed }}{{ reverse .list }}`, `{{ slice .list 1 2 }}`, `{{ slice .list 2 9 }}`, `{{ first .s }}`,
		`{{ add 1 2 3 }}{{ add .n 1 }}{{ add1 .n }}{{ sub 5 .n }}{{ mul 2 .n }}{{ div 7 2 }}{{ mod 7 2 }}{{ div 1 0 }}`, `{{ max 1 .n 2 }}{{ min 1 .n 2 }}{{ floor .f }}{{ ceil .f }}`, `{{ int "08" }}{{ int64 .f }}{{ float64 "1.5" }}{{ atoi "x" }}{{ toString .n }}`, `{{ untilStep 3 0 -1 }}{{ until -2 }}`,
		`{{ semverCompare ">= 1.30" .v }}`, `{{ semverCompare "^1.2" "x" }}`, `{{ (semver .v).Minor }}`, `{{ regexMatch "^v1" .v }}`, `{{ regexReplaceAll "a(.)" .s "${1}x" }}`, `{{ regexFind "[0-9]+" .v }}`, `{{ mustRegexMatch "(" .v }}`,
		`{{ substr 1 2 .s }}{{ trunc 2 .v }}{{ trunc -2 .v }}{{ nospace .s }}{{ cat .s .null .n }}{{ repeat 2 .s }}{{ contains "b" .s }}{{ hasPrefix "a" .s }}{{ hasSuffix "b" .s }}{{ plural "one" "many" 1 }}`,
		`{{ kindOf .n }} {{ kindOf .s }} {{ kindOf .obj }} {{ kindOf .list }} {{ kindOf .null }} {{ kindIs "bool" .t }}`, `{{ fail "no" }}`, `{{ any .e .s }}{{ all .e .s }}`,
		`{{ nope }}`, `{{ .s 1 }}`, `{{ 1 | 2 }}`, `{{ nil }}`, `{{ (1) }}`, `{{ if }}x{{ end }}`, `{{ end }}`, `{{ .a`, `{{ upper 1 }}`, `{{ indent .n .s }}`, `{{ upper .missing }}`, `{{ upper }}`, `{{ or .e .no "x" }}{{ and .s .t "y" }}`, `{{ or }}`, `{{ .s | or "" }}`,
	} {
		t.Run(text, func(t *testing.T) {
			sameText(t, text)
		})
	}
}

// Random expressions.
func TestTemplatesAtRandom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sameText(r, body(r, 3))
	})
}

func body(r *rapid.T, depth int) string {
	var b strings.Builder
	for range rapid.IntRange(1, 3).Draw(r, "pieces") {
		inner := func() string { return body(r, depth-1) }
		kind := rapid.IntRange(0, 7).Draw(r, "piece")
		if depth == 0 {
			kind = min(kind, 2)
		}
		switch kind {
		case 0:
			b.WriteString(rapid.SampledFrom([]string{"text", "\n", " - "}).Draw(r, "text"))
		case 1, 2:
			b.WriteString("{{ " + pipeline(r, depth) + " }}")
		case 3:
			b.WriteString("{{ if " + pipeline(r, depth) + " }}" + inner() + "{{ else }}" + inner() + "{{ end }}")
		case 4:
			b.WriteString(
				"{{ range " + rapid.SampledFrom([]string{"", "$x := ", "$i, $x := "}).Draw(r, "variables") + pipeline(r, depth) + " }}" + inner() + "{{ end }}",
			)
		case 5:
			b.WriteString("{{- with " + pipeline(r, depth) + " -}}" + inner() + "{{ else }}" + inner() + "{{ end }}")
		case 6:
			b.WriteString("{{ $v := " + pipeline(r, depth) + " }}" + inner() + "{{ $v }}")
		default:
			b.WriteString("{{ $.s }}")
		}
	}
	return b.String()
}

func pipeline(r *rapid.T, depth int) string {
	p := command(r, depth)
	for range rapid.IntRange(0, 2).Draw(r, "pipes") {
		p += " | " + rapid.SampledFrom([]string{
			"upper",
			"quote",
			"toJson",
			"default \"d\"",
			"len",
			"print",
			"indent 2",
			"join \",\"",
			"int",
			"add 1",
			"empty",
			"not",
			"first",
			"list",
			"b64enc",
			"eq \"a\"",
			"kindOf",
			"toString",
			"replace \"a\" \"b\"",
			"has \"a\"",
			"trunc 3",
			"squote",
			"uniq",
		}).Draw(r, "filter")
	}
	return p
}

func command(r *rapid.T, depth int) string {
	if depth <= 0 || rapid.Bool().Draw(r, "operand") {
		return operand(r)
	}
	argument := func() string {
		if rapid.Bool().Draw(r, "nested") {
			return "(" + pipeline(r, depth-1) + ")"
		}
		return operand(r)
	}
	two := rapid.SampledFrom([]string{"eq", "ne", "lt", "ge", "and", "or", "add", "default", "index", "list", "join", "hasPrefix", "dict", "append", "concat", "coalesce", "max", "print", "splitList", "cat", "ternary 1", "has", "without"}).
		Draw(r, "function")
	return two + " " + argument() + " " + argument()
}

func operand(r *rapid.T) string {
	return rapid.SampledFrom([]string{
		".",
		".s",
		".e",
		".n",
		".f",
		".t",
		".no",
		".null",
		".list",
		".mixed",
		".empty",
		".obj",
		".obj.a.b",
		".none",
		".missing",
		".missing.x",
		"$.obj",
		"$.list",
		"1",
		"2.5",
		`"x"`,
		`"a"`,
		"true",
		"(index $.list 0)",
	}).Draw(r, "operand")
}
