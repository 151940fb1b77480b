package eks

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ongoing is the update that somebody else has started, and that is in progress: what it changes to. The fields are "" without one, if it does
// not change them, or if the caller may not list updates.
type ongoing struct{ version, authentication, protection string }

// ongoing finds the update in progress of a cluster or a node group, unless this run has started it. EKS does one at a time, and lists the IDs of
// all that have ever been (ListUpdates, EKS API reference).
func (u lastUpdate) ongoing(ctx context.Context, c *cloud.Clients, status string, of eks.DescribeUpdateInput) (out ongoing, err error) {
	if u.Update != "" || status != string(types.ClusterStatusUpdating) {
		return out, nil
	}
	name := "update in progress of " + aws.ToString(of.Name) + "/" + aws.ToString(of.NodegroupName)
	return cloud.Remember(ctx, c, name, func(ctx context.Context) (ongoing, error) {
		p := eks.NewListUpdatesPaginator(c.EKS, &eks.ListUpdatesInput{Name: of.Name, NodegroupName: of.NodegroupName})
		ids, err := cloud.Pages(ctx, p, func(o *eks.ListUpdatesOutput) []string { return o.UpdateIds })
		for _, id := range ids {
			of.UpdateId = &id
			var one *eks.DescribeUpdateOutput
			if one, err = c.EKS.DescribeUpdate(ctx, &of); err != nil {
				break
			}
			if one.Update != nil && one.Update.Status == types.UpdateStatusInProgress {
				return changesOf(one.Update), nil
			}
		}
		if cloud.Denied(err) {
			err = nil
		}
		return ongoing{}, cloud.IgnoreNotFound(err)
	})
}

func changesOf(u *types.Update) (out ongoing) {
	for _, p := range u.Params {
		switch p.Type { //nolint:exhaustive // other fields can be changed back
		case types.UpdateParamTypeVersion:
			out.version = aws.ToString(p.Value)
		case types.UpdateParamTypeAuthenticationMode:
			out.authentication = aws.ToString(p.Value)
		case types.UpdateParamTypeDeletionProtection:
			out.protection = aws.ToString(p.Value)
		}
	}
	return out
}

// protection says why EKS would not delete the cluster, and which command turns that off; "" if it would. EKS shows a protection that somebody turns
// on only when the update has ended.
func protection(ctx context.Context, c *cloud.Clients, s ClusterState) (string, error) {
	now, err := lastUpdate{}.ongoing(ctx, c, s.Status, eks.DescribeUpdateInput{Name: &s.Name})
	if err != nil {
		return "", err
	}
	wait := fmt.Sprintf("aws eks wait cluster-active --region %s --name %s", c.Region, s.Name)
	switch is := after(strconv.FormatBool(s.DeletionProtection), now.protection); {
	case is == "true":
		what, command := "has deletion protection", fmt.Sprintf("aws eks update-cluster-config --region %s --name %s --no-deletion-protection", c.Region, s.Name)
		if !s.DeletionProtection {
			what = "is getting deletion protection"
		}
		if s.Status != string(types.ClusterStatusActive) { // EKS refuses it during another update, and during the creation
			command = wait + " && " + command
		}
		return fmt.Sprintf("the EKS cluster %s %s: %s turns it off", s.Name, what, command), nil
	case s.DeletionProtection:
		return fmt.Sprintf("the deletion protection of the EKS cluster %s is being turned off: %s ends after that", s.Name, wait), nil
	}
	return "", nil
}

// shown returns the version for a status line: "1.33 → 1.34" during an upgrade.
func (o ongoing) shown(version string) string {
	if o.version == "" || o.version == version {
		return version
	}
	return version + " → " + o.version
}

// after returns the value of a field after the update.
func after(have, target string) string { return cmp.Or(target, have) }

// adviseOngoing explains a difference to what the update in progress changes a field to.
func adviseOngoing(d *plan.Diff, target, field string) {
	if target != "" {
		d.Advise("somebody changes it to " + target + " now, and EKS does not change it back: set " + field + " to " + target)
	}
}
