package jinja_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/jinja"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/templates"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Texts are accepted and refused as by jinja2.
func TestParse(t *testing.T) {
	cases := templates.All(t)
	for _, text := range cases.Accepted {
		if _, err := jinja.Parse(text + "\n"); err != nil {
			t.Errorf("%s: %s", text, err.What)
		}
	}
	for _, text := range cases.Refused {
		_, err := jinja.Parse(text + "\n")
		assert.NotNil(t, err, text)
	}
}

// jinja2, with the settings of cloud-init, agrees about the texts.
func TestJinja2Agrees(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.CommandContext(t.Context(), python, "-c", "import jinja2").Run() != nil {
		t.Skip("jinja2 is not installed")
	}
	const program = `
import json, sys
from jinja2.sandbox import SandboxedEnvironment
env = SandboxedEnvironment(trim_blocks=True, extensions=["jinja2.ext.do"])
def accepts(text):
    try: env.from_string(text)
    except Exception: return False
    return True
json.dump([accepts(text + "\nend\n") for text in json.load(sys.stdin)], sys.stdout)`
	cases := templates.All(t)
	in, err := json.Marshal(append(append([]string{}, cases.Accepted...), cases.Refused...))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, "-c", program)
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	require.NoError(t, err)
	var accepted []bool
	require.NoError(t, json.Unmarshal(out, &accepted))
	for i, is := range accepted {
		if i < len(cases.Accepted) {
			assert.True(t, is, cases.Accepted[i])
		} else {
			assert.False(t, is, cases.Refused[i-len(cases.Accepted)])
		}
	}
}

// The variables of a template are those that it does not set, and how they are used.
func TestReads(t *testing.T) {
	tmpl, err := jinja.Parse(
		`{{ ds.meta_data["local-hostname"] }}{% set x = v1.region %}{{ x }}{% if a %}{{ b.c }}{% endif %}{{ d | default("") }}{{ e-f }}{{ g.split(".") }}`,
	)
	require.Nil(t, err)
	var got []string
	for _, r := range tmpl.Reads {
		text := strings.Join(r.Path, ".")
		for mark, is := range map[string]bool{"?": r.Maybe, "|": r.Default, "-": r.Operand} {
			if is {
				text += mark
			}
		}
		got = append(got, text)
	}
	assert.Equal(t, []string{"ds.meta_data.local-hostname", "v1.region", "a", "b.c?", "d|", "e-", "f-", "g"}, got)
}
