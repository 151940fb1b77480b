package manifest

import (
	"fmt"
	"strings"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
)

// checkFargate checks the Fargate profiles.
func (c *checks) checkFargate() {
	names := map[string]string{}
	for _, f := range c.cluster.EKS.Fargate {
		o := c.lookup(kindFargateProfile, f.Name)
		c.checkEKSName(o, "spec.profileName", f.Spec.ProfileName, longestEKSName)
		c.checkRoleName(o, f.Spec.RoleName)
		if strings.HasPrefix(f.Spec.ProfileName, "eks-") {
			c.fail(o.problem("spec.profileName", "EKS reserves names of profiles that begin with eks-", "choose another name"))
		}
		if other := names[f.Spec.ProfileName]; other != "" {
			c.fail(o.problem("spec.profileName", fmt.Sprintf("%s has the same name in EKS, %s", other, f.Spec.ProfileName), "set profileName"))
		}
		names[f.Spec.ProfileName] = o.title()
		c.checkSelectors(o, f)
		c.warnNoEffectOnRole(o, f.Spec.RolePath, f.Spec.RolePermissionsBoundary, 0)
	}
}

func (c *checks) checkSelectors(o *object, f *expinfrav1.AWSFargateProfile) {
	if n := len(f.Spec.Selectors); n == 0 || n > mostSelectors {
		c.fail(
			o.problem(
				"spec.selectors",
				fmt.Sprintf("a Fargate profile has 1 to %d selectors, this one has %d", mostSelectors, n),
				"add selectors for the namespaces to run on Fargate",
			),
		)
	}
	for i, s := range f.Spec.Selectors {
		path := fmt.Sprintf("spec.selectors[%d]", i)
		if s.Namespace == "" {
			c.fail(o.problem(path+".namespace", "a selector needs a namespace", "set it"))
		}
		if len(s.Labels) > mostSelectors {
			c.fail(o.problem(path+".labels", fmt.Sprintf("a selector has at most %d labels", mostSelectors), "remove some"))
		}
	}
}
