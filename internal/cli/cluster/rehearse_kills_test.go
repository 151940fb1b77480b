package cluster

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// What another run leaves, makes twice, does not make, or makes in another way is told.
func TestCompare(t *testing.T) {
	want := []string{
		"Subnet a: 10.0.0.0/24 in us-east-1a; tags Name=a, role=private",
		"Subnet b: tags Name=b",
		"VPC v: tags ",
		"Role r arn=x inline=[] attached=[p q]",
	}
	same := render.Kill{}
	compare(&same, want, want)
	assert.True(t, same.Same())

	other := render.Kill{}
	compare(
		&other,
		want,
		[]string{"Subnet a: 10.0.0.0/24 in us-east-1a; tags Name=a, role=public, x=1", "VPC v: tags ", "VPC v: tags ", "Role r arn=x inline=[] attached=[p]"},
	)
	assert.False(t, other.Same())
	assert.Equal(t, []string{
		"left: VPC v: tags ",
		"missing: Subnet b: tags Name=b",
		"changed: Subnet a: role=public, x=1 instead of role=private",
		"changed: Role r: attached=[p] instead of attached=[p q]",
	}, other.Differences())
}

// The answer names the call at which the first run was killed.
func TestKillsThatDiffer(t *testing.T) {
	k := &render.Kills{Every: 1, Planned: 6, NotReached: 1}
	for _, one := range []render.Kill{
		{Run: "delete", Call: 2, Service: "EC2", Operation: "DeleteVpc"},
		{Run: "create", Call: 7, After: true, Service: "EC2", Operation: "CreateVpc", Left: []string{"VPC v"}, Missing: []string{"Subnet a"}},
		{Run: "create", Call: 7, Service: "EC2", Operation: "CreateVpc", Error: "create: failed"},
		{Run: "create", Call: 3, Service: "EC2", Operation: "CreateVpc"},
	} {
		k.Add(one)
	}
	assert.Equal(t, []int{3, 7, 7, 2}, []int{k.Runs[0].Call, k.Runs[1].Call, k.Runs[2].Call, k.Runs[3].Call})
	assert.Equal(t, []string{"before", "after"}, []string{k.Runs[1].When(), k.Runs[2].When()})
	assert.Equal(t, "2 of 4 killed runs, run again, do not have the result of a run that was not killed", k.Conclusion())
	var out bytes.Buffer
	require.NoError(t, k.WriteText(&out))
	assert.Equal(t, `
KILLED IN                               AFTER ANOTHER RUN
create, before EC2 CreateVpc (call 7)   create: failed
create, after EC2 CreateVpc (call 7)    left: VPC v
                                        missing: Subnet a
`, out.String())
}
