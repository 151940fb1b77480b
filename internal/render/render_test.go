package render

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// printed returns the output of a renderer.
func printed(t *testing.T, render func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, render(NewOutput(&b)))
	return b.String()
}

func TestPlan(t *testing.T) {
	demo := PlanView{Cluster: "demo", Region: "us-east-1"}
	colour, full := demo, demo
	colour.Style.Colour, full.Full = true, true
	for name, c := range map[string]struct {
		plan plan.Plan
		view PlanView
	}{
		"create":   {sample(3), demo},
		"colour":   {changes(true), colour},
		"full":     {sample(1), full},
		"folded":   {sample(1000), demo},
		"changes":  {changes(false), demo},
		"conflict": {changes(true), demo},
		"replace":  {replacement(2), demo},
		"replaced": {replacement(20), demo},
		"narrow":   {replacement(2), PlanView{Cluster: "demo", Region: "us-east-1", Width: 40, Notes: []string{"Nodes will not become ready: the manifest installs no pod network."}}},
		"nothing":  {plan.Plan{Steps: []plan.Step{{Resource: "vpc", Action: plan.Keep, CloudID: "vpc-1"}}}, demo},
		"gone":     {plan.Plan{}, demo},
	} {
		t.Run(name, func(t *testing.T) {
			c.plan.Expected = 3*time.Minute + 5*time.Second
			golden.Assert(t, "plan-"+name+".txt", printed(t, func(w io.Writer) error { return Plan(w, c.plan, c.view) }))
		})
	}
}

// replacement is a plan that replaces machines, because fields of their template have changed.
func replacement(n int) (p plan.Plan) {
	for i := range n {
		id := fmt.Sprintf("i-%d", i)
		fresh, gone := plan.ID(fmt.Sprintf("machine/demo-md-0/%d", n+i)), plan.ID(fmt.Sprintf("retired/machine/demo-md-0/%d/%s", i, id))
		p.Steps = append(p.Steps,
			plan.Step{Resource: fresh, Action: plan.Create, PartOf: gone, Diff: plan.Diff{{Field: "instanceType", Want: "m5.large", Remedy: plan.Replace}}},
			plan.Step{Resource: plan.ID(fmt.Sprintf("drain/demo-md-0/%d/%s", i, id)), Action: plan.Remove, CloudID: id, PartOf: gone},
			plan.Step{
				Resource:   gone,
				Label:      plan.ID(fmt.Sprintf("machine/demo-md-0/%d", i)),
				Action:     plan.Remove,
				CloudID:    id,
				ReplacedBy: fresh,
				Origin:     "cluster.yaml:95 MachineDeployment/demo-md-0 spec: made from another template",
				Diff: plan.Diff{
					{
						Field:  "bootstrap.files",
						Have:   "(another value)",
						Want:   plan.NotShown,
						Origin: "cluster.yaml:131 KubeadmConfigTemplate/demo-md-0 spec.template.spec.files",
					},
					{Field: "bootstrap.ntp.enabled", Want: plan.NotShown, Origin: "cluster.yaml:135 KubeadmConfigTemplate/demo-md-0 spec.template.spec.ntp.enabled"},
					{Field: "instanceType", Have: "t3.large", Want: "m5.large", Origin: "cluster.yaml:117 AWSMachineTemplate/demo-md-0 spec.template.spec.instanceType"},
					{Field: "rootVolume.size", Have: "8"},
				},
			})
	}
	return completed(p)
}

// completed sets the areas and groups of steps, as the engine does.
func completed(p plan.Plan) plan.Plan {
	for i, s := range p.Steps {
		p.Steps[i].Area, p.Steps[i].Group = reconcile.AreaOf(s.Resource, s.Origin), s.Resource.Group()
	}
	return p
}

func TestPlanForDeletion(t *testing.T) {
	p := sample(40)
	for i := range p.Steps {
		p.Steps[i].Action, p.Steps[i].Diff, p.Steps[i].CloudID = plan.Remove, nil, "id-1"
	}
	golden.Assert(t, "plan-delete.txt", printed(t, func(w io.Writer) error { return Plan(w, p, PlanView{}) }))
}

func TestPlanOfAThousandMachinesIsShort(t *testing.T) {
	out := printed(t, func(w io.Writer) error { return Plan(w, sample(1000), PlanView{}) })
	assert.Less(t, strings.Count(out, "\n"), 120)
	assert.Contains(t, out, "machine/demo-md-0/… ×1000")
	assert.Contains(t, out, "1019 to create")
}

func TestPlanDocument(t *testing.T) {
	p := changes(true)
	p.Expected = time.Minute
	for _, f := range []Format{JSON, YAML} {
		golden.Assert(t, "plan."+string(f), printed(t, func(w io.Writer) error {
			return Encode(w, f, NewPlanDocument(p, PlanView{Cluster: "demo", Region: "us-east-1"}))
		}))
	}
	empty, err := json.Marshal(NewPlanDocument(plan.Plan{}, PlanView{}))
	require.NoError(t, err)
	assert.Contains(t, string(empty), `"steps":[]`, "a list is a list, even when it is empty")
	require.Error(t, Encode(io.Discard, Text, 1))
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, "4h12m", Age(now.Add(-4*time.Hour-12*time.Minute), now))
	assert.Equal(t, "0s", Age(now.Add(time.Minute), now), "the clock is behind")
}

func TestStatus(t *testing.T) {
	for name, v := range map[string]StatusView{"": {}, "-colour": {Style: Style{Colour: true}}, "-full": {Full: true}, "-narrow": {Width: 60}} {
		golden.Assert(t, "status"+name+".txt", printed(t, func(w io.Writer) error { return Status(w, status(), v) }))
	}
	golden.Assert(t, "status-gone.txt", printed(t, func(w io.Writer) error {
		return Status(w, cluster.Status{Name: "demo", Region: "us-east-1"}, StatusView{})
	}))
}

func TestTable(t *testing.T) {
	golden.Assert(t, "table.txt", printed(t, func(w io.Writer) error {
		return Table(w, []string{"NAME", "REGION", "RESOURCES"}, [][]string{{"demo", "us-east-1", "72"}, {"a-longer-name", "eu-central-1", "9"}, {"empty", "", ""}})
	}))
	assert.Equal(t, "NAME   REGION\n", printed(t, func(w io.Writer) error { return Table(w, []string{"NAME", "REGION"}, nil) }))
}

func TestPicture(t *testing.T) {
	p := picture()
	p.reduce()
	golden.Assert(t, "graph.txt", printed(t, func(w io.Writer) error { return p.Outline(w, Style{}) }))
	golden.Assert(t, "graph.mmd", printed(t, p.Mermaid))
	golden.Assert(t, "graph.dot", printed(t, p.DOT))
	golden.Assert(t, "graph.svg", printed(t, p.SVG))
}

func TestSVGIsXMLAndNothingOverlaps(t *testing.T) {
	p := picture()
	dec := xml.NewDecoder(strings.NewReader(printed(t, p.SVG)))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	d := layOut(p)
	require.Len(t, d.boxes, len(p.Resources))
	for i, a := range d.boxes {
		assert.LessOrEqual(t, a.x+a.wide, d.wide)
		assert.LessOrEqual(t, a.y+a.high, d.high)
		for _, n := range a.Needs {
			assert.Less(t, d.byID[n.ID].x+d.byID[n.ID].wide, a.x, "%s is right of %s", a.ID, n.ID)
		}
		for _, b := range d.boxes[:i] {
			apart := a.x+a.wide <= b.x || b.x+b.wide <= a.x || a.y+a.high <= b.y || b.y+b.high <= a.y
			assert.True(t, apart, "%s and %s", a.ID, b.ID)
		}
	}
}

func TestReduceKeepsWhatDoesNotFollow(t *testing.T) {
	p := Picture{Resources: []Box{
		{ID: "a"},
		{ID: "b", Needs: []Arrow{{ID: "a"}}},
		{ID: "c", Needs: []Arrow{{ID: "b"}, {ID: "a"}}},
		{ID: "d", Needs: []Arrow{{ID: "a"}}},
	}}
	p.reduce()
	assert.Equal(t, []Arrow{{ID: "b"}}, p.Resources[2].Needs)
	assert.Equal(t, []Arrow{{ID: "a"}}, p.Resources[3].Needs)
}

func TestNumbers(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 42 * time.Second: "42s", 59600 * time.Millisecond: "1m", 125 * time.Second: "2m05s",
		time.Hour: "1h", 70 * time.Minute: "1h10m",
	} {
		assert.Equal(t, want, short(d))
	}
	for d, want := range map[time.Duration]string{
		time.Second: "5 seconds", 41 * time.Second: "40 seconds", 100 * time.Second: "2 minutes", 185 * time.Second: "3 minutes",
	} {
		assert.Equal(t, want, roughly(d))
	}
	assert.Equal(t, []string{"1 policy", "2 policies", "3 nat-gateways", "2 user-data", "2 security-group-rules"},
		[]string{text.Count(1, "policy"), text.Count(2, "policy"), text.Count(3, "nat-gateway"), text.Count(2, "user-data"), text.Count(2, "security-group-rules")})
	assert.Equal(t, "ab…", cut("abcd", 3))
	assert.Empty(t, cut("abcd", 0))
}

func TestANameIsTakenOffOnlyAtTheEnd(t *testing.T) {
	assert.Equal(t, "demo-md-0-…", nameless("demo-md-0-3", "3"))
	assert.Equal(t, "t3.large", nameless("t3.large", "3"))
	assert.Equal(t, "10.0.3.3", nameless("10.0.3.3", "3"))
}

// The tags with digests of a template are one line, without the digests.
func TestPlanOfAdoptedMachine(t *testing.T) {
	s := plan.Step{Resource: "machine/demo-md-0/0", Action: plan.Update, CloudID: "i-1"}
	for _, tag := range []string{"resource", "template", "template-fields"} {
		s.Diff = append(s.Diff, plan.Change{Field: "tag clusterawsadm/" + tag, Want: "abcdef", Remedy: plan.InPlace})
	}
	view := PlanView{Cluster: "demo", Region: "us-east-1"}
	out := printed(t, func(w io.Writer) error { return Plan(w, completed(plan.Plan{Steps: []plan.Step{s}}), view) })
	assert.NotContains(t, out, "clusterawsadm/template")
	assert.Regexp(t, `\n +\+ recorded template +that of the manifest\n`, out)
	for i := range s.Diff {
		s.Diff[i].Have = "fedcba"
	}
	out = printed(t, func(w io.Writer) error { return Plan(w, completed(plan.Plan{Steps: []plan.Step{s}}), view) })
	assert.Regexp(t, `\n +~ recorded template +another one → that of the manifest\n`, out)
}
