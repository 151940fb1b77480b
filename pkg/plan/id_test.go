package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Machines and Nodes have a group, also those that are retired; other resources have none.
func TestGroup(t *testing.T) {
	for id, want := range map[plan.ID]string{
		"machine/md-0/17": "machine/md-0", "retired/machine/md-0/17/i-1": "retired/machine/md-0",
		"vpc": "", "subnet/public/us-east-1a": "", "vpc-block/10.1.0.0/16": "", "image/ubuntu/1.34.2/x86_64": "",
	} {
		assert.Equal(t, want, id.Group(), id)
	}
}
