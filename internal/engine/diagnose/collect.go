package diagnose

import (
	"context"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// Console returns the console output of a machine, without secrets.
func Console(ctx context.Context, c *cloud.Clients, m ec2.InstanceState) (string, error) {
	q := &machineCheck{c: c, machine: m}
	lines, err := q.consoleText(cloud.ReadOnly(ctx))
	return strings.Join(lines, "\n"), err
}
