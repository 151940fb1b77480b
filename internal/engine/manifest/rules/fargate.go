package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkFargate checks the Fargate profiles.
func (c *checks) checkFargate() {
	names := map[string]string{}
	for _, f := range c.cluster.EKS.Fargate {
		o := c.lookup(manifest.KindFargateProfile, f.Name)
		c.checkEKSName(o, "spec.profileName", f.Spec.ProfileName, longestEKSName)
		c.checkRoleName(o, f.Spec.RoleName)
		if strings.HasPrefix(f.Spec.ProfileName, "eks-") {
			c.fail(o.Problem("spec.profileName", "EKS reserves names of profiles that begin with eks-", "choose another name"))
		}
		if other := names[f.Spec.ProfileName]; other != "" {
			c.fail(o.Problem("spec.profileName", fmt.Sprintf("%s has the same name in EKS, %s", other, f.Spec.ProfileName), "set profileName"))
		}
		names[f.Spec.ProfileName] = o.Title()
		c.checkSelectors(o, f)
		c.warnNoEffectOnRole(o, f.Spec.RolePath, f.Spec.RolePermissionsBoundary, 0)
	}
}

func (c *checks) checkSelectors(o *manifest.Entry, f *expinfrav1.AWSFargateProfile) {
	if n := len(f.Spec.Selectors); n == 0 || n > mostSelectors {
		c.fail(
			o.Problem(
				"spec.selectors",
				fmt.Sprintf("a Fargate profile has 1 to %d selectors, this one has %d", mostSelectors, n),
				"add selectors for the namespaces to run on Fargate",
			),
		)
	}
	for i, s := range f.Spec.Selectors {
		path := fmt.Sprintf("spec.selectors[%d]", i)
		if s.Namespace == "" {
			c.fail(o.Problem(path+".namespace", "a selector needs a namespace", "set it"))
		}
		if s.Namespace != "" && !regex.Of(`^[a-z0-9*?-]{1,63}$`).MatchString(s.Namespace) {
			c.warn(
				o.Problem(
					path+".namespace",
					fmt.Sprintf("%q selects no pod: it is not the name of a namespace", s.Namespace),
					"use small letters, digits, -, and * or ? for any",
				),
			)
		}
		for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
			if bad := badLabel(key, strings.NewReplacer("*", "x", "?", "x").Replace(s.Labels[key])); bad != "" {
				c.warn(o.Problem(path+".labels."+key, "selects no pod: "+bad, "change the label"))
			}
		}
		if len(s.Labels) > mostSelectors {
			c.fail(o.Problem(path+".labels", fmt.Sprintf("a selector has at most %d labels", mostSelectors), "remove some"))
		}
	}
}
