package report

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// rehearsal is one with four calls, of which two are killed, and one kill with another result.
func rehearsal(t *testing.T) *Rehearsal {
	t.Helper()
	events := sample(t)
	again := render.RehearsedRun{Run: "create", Changed: render.Counts{Create: 12, Update: 1}, Reads: 40, Writes: 20, Took: 182}
	k := &render.Kills{Every: 2, CreateCalls: 4, DeleteCalls: 2, Planned: 6, NotReached: 1}
	for _, one := range []render.Kill{
		{Run: "create", Call: 2, Service: "EC2", Operation: "CreateVpc", At: 12, Again: again},
		{Run: "create", Call: 2, After: true, Service: "EC2", Operation: "CreateVpc", At: 13, Again: again, Left: []string{"VPC <demo>: 10.0.0.0/16"}, Changed: []string{"Subnet a: x=1 instead of x=2"}},
		{Run: "create", Call: 4, Service: "SSM", Operation: "PutParameter", At: 14, Again: again},
		{Run: "delete", Call: 2, Service: "EC2", Operation: "DeleteVpc", Error: "delete: DependencyViolation"},
	} {
		k.Add(one)
	}
	return &Rehearsal{
		Rehearsal: render.Rehearsal{
			Cluster: "demo",
			Region:  "us-east-1",
			Account: "123456789012",
			Source:  "account",
			Faults:  "1:slow",
			Runs:    []render.RehearsedRun{{Run: "create", Took: 245}, {Run: "delete", Took: 92}},
			Calls:   []render.Calls{{Service: "EC2", Operation: "CreateVpc", Count: 1, Attempts: 1, Writes: true}},
			Quotas: []plan.Quota{
				{Name: "elastic IP addresses", Service: "ec2", Code: "L-0263D0A3", Limit: 5, Used: 2, Needed: 3},
				{Name: "VPCs", Service: "vpc", Code: "L-F678F1CE", Limit: 5, Used: 1, Needed: 1},
			},
			Policy: []string{"ec2:CreateVpc", "ec2:DescribeVpcs", "iam:PassRole"},
			Kills:  k,
		},
		Program: "v0.1.0", Began: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC), ExitCode: 1, Errors: []string{k.Conclusion()},
		Events: []func() io.Reader{
			func() io.Reader { return strings.NewReader(events) },
			func() io.Reader {
				return strings.NewReader(strings.ReplaceAll(events, `"verb":"create"`, `"verb":"delete"`))
			},
		},
	}
}

func TestRehearsal(t *testing.T) {
	r := rehearsal(t)
	page := r.Page()
	wellFormed(t, page)
	for _, text := range []string{
		`<span class="pill bad">failed</span>`, "<dt>In a copy of</dt><dd>the account</dd>", "<dt>Faults</dt><dd>1:slow</dd>",
		"<b>4\u00a0m\u00a005\u00a0s</b><span>AWS takes for create</span>",
		`<div class="card bad"><b>2</b><span>of them differ</span></div>`, `<div class="card good"><b>0</b><span>left by delete</span></div>`,
		"<b>create, killed after EC2 CreateVpc (call 2)</b>\nleft: VPC &lt;demo&gt;: 10.0.0.0/16\nchanged: Subnet a: x=1 instead of x=2</li>",
		"<b>delete, killed before EC2 DeleteVpc (call 2)</b>\ndelete: DependencyViolation</li>",
		"5 of 6 were tried.",
		`<tr><th scope="row">EC2</th><td>3</td><td class="bad">2</td></tr>`,
		`<summary>All 3 killed runs of create</summary>`,
		`2 EC2 CreateVpc<span class="tag">before</span><span class="item">killed at 0:12; run again: 12 created, 1 changed, 60 calls</span>`,
		`<td class="bad">✗ differs</td>`, `<td class="bad">✗ failed</td>`, `<td class="good">✓ same</td>`,
		"<h2>Timeline of create</h2>", "<h2>Critical path of delete</h2>", "<h2>Graph</h2>", "<h2>Calls</h2>",
		"ec2 L-0263D0A3, nearly used up", "The policy must allow 3 actions: ec2 2, iam 1",
	} {
		assert.True(t, strings.Contains(strings.ReplaceAll(page, ">\n<", "><"), text), text) //nolint:testifylint // the page would fill the screen
	}
	assert.Equal(t, 1, strings.Count(page, "nearly used up"))
	assert.Equal(t, 1, strings.Count(page, "<h2>Graph</h2>"))
	for _, part := range []string{"create", "delete"} {
		assert.Equal(t, 1, strings.Count(page, fmt.Sprintf(`id="%s-r0"`, part)))
		assert.Positive(t, strings.Count(page, fmt.Sprintf(`href="#%s-r`, part)), "links lead to the run's own rows")
	}
	assert.Zero(t, strings.Count(page, `href="#r`))
	// Call 2 was killed twice, call 4 of create once, and delete's before only.
	assert.Equal(
		t,
		[]int{2, 2, 2},
		[]int{strings.Count(page, `<i class="same">`) - 1, strings.Count(page, `<i class="bad">`), strings.Count(page, `<i class="none">`) - 1},
		"besides the legend",
	)
}

// The page of a rehearsal that has failed early shows what there is.
func TestRehearsalThatFailed(t *testing.T) {
	r := &Rehearsal{Rehearsal: render.Rehearsal{Cluster: "demo", Source: "simulated"}, ExitCode: 4, Errors: []string{"plan: quota"}}
	page := r.Page()
	wellFormed(t, page)
	assert.Equal(t, 1, strings.Count(page, "plan: quota"))
	for _, text := range []string{"Killed runs", "Timeline", "Quotas", "left by delete"} {
		assert.Zero(t, strings.Count(page, ">"+text), text)
	}
}
