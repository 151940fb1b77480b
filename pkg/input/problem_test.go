package input_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

func TestProblem(t *testing.T) {
	at := input.Position{File: "a.yaml", Line: 3}
	for want, p := range map[string]input.Problem{
		"a.yaml:3: AWSCluster/x spec.region: no good — do better": {Position: at, Object: "AWSCluster/x", Path: "spec.region", What: "no\tgood", Fix: "do\nbetter"},
		"a.yaml: wrong": {Position: input.Position{File: "a.yaml"}, What: "wrong"},
		"wrong":         {What: "wrong"},
	} {
		assert.Equal(t, want, p.String())
	}
	assert.Equal(t, "a\nb", (&input.InvalidError{Problems: []input.Problem{{What: "a"}, {What: "b"}}}).Error())
}
