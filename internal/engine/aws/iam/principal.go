package iam

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Principal returns the ARN of the user or the role whose policies apply to a caller, or why
// there is none. The ARN of a session of a role lacks the path of the role, which only IAM
// knows; without permission to ask for it, the role is assumed to have none.
func Principal(ctx context.Context, c *cloud.Clients, caller string) (arn, none string, err error) {
	of := strings.SplitN(caller, ":", 6)
	if len(of) < 6 {
		return "", fmt.Sprintf("%q is not an ARN", caller), nil
	}
	what, name, _ := strings.Cut(of[5], "/")
	switch what {
	case "user":
		return caller, "", nil
	case "root":
		return "", "IAM does not simulate the root user of an account", nil
	case "federated-user":
		return "", "IAM does not simulate federated users", nil
	case "assumed-role":
		name, _, _ = strings.Cut(name, "/")
		role, err := GetRole(ctx, c, name)
		switch {
		case err == nil && role != nil:
			return role.ID, "", nil
		case err == nil || cloud.Denied(err):
			return "arn:" + of[1] + ":iam::" + of[4] + ":role/" + name, "", nil
		}
		return "", "", err
	}
	return "", fmt.Sprintf("IAM does not simulate %s", caller), nil
}
