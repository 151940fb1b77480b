package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Rules of AWS for tags: "Tag your Amazon EC2 resources" in the EC2 user guide.
const (
	mostTags       = 50
	longestTagKey  = 127 // of EC2; other services have one more
	ownMachineTags = 8   // that a machine has from this program
	ownSubnetTags  = 6
)

// checkTagRules checks the tags that all resources of the cluster get, and those of subnets.
func (c *checks) checkTagRules() {
	spec := &c.cluster.Infra.Spec
	c.checkTags(c.infra, "spec.additionalTags", spec.AdditionalTags, nil, ownSubnetTags, "a subnet")
	for i, s := range spec.NetworkSpec.Subnets {
		if spec.NetworkSpec.VPC.ID == "" {
			path := fmt.Sprintf("spec.network.subnets[%d].tags", i)
			c.checkTagTexts(c.infra, path, s.Tags)
			c.checkTags(c.infra, path, s.Tags, spec.AdditionalTags, ownSubnetTags, "a subnet")
		}
	}
}

// warnOtherCluster warns of a tag of another cluster on machines of the control plane: the AWS cloud controller manager, which runs there,
// takes the name of its cluster from the tag, and ends if there are two (findClusterIDs in pkg/providers/v1/tags.go of
// k8s.io/cloud-provider-aws), unless its configuration has KubernetesClusterID.
func (c *checks) warnOtherCluster(o *manifest.Entry, path string, tags infrav1.Tags) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if name, is := strings.CutPrefix(key, infrav1.NameKubernetesAWSCloudProviderPrefix); is && name != c.cluster.Name {
			c.warn(o.Problem(
				path+"."+key,
				"machines of the control plane have a tag of this cluster, too, and the AWS cloud controller manager does not start with two",
				"remove it, or give the tag to subnets only",
			))
		}
	}
}

// checkMachineTags checks the tags of a machine, which has those of the cluster, too.
func (c *checks) checkMachineTags(o *manifest.Entry, path string, tags infrav1.Tags) {
	c.checkTags(o, path+".additionalTags", tags, c.cluster.Infra.Spec.AdditionalTags, ownMachineTags, "a machine")
}

// checkTags checks the tags of a resource, which has inherited tags and some of this program, too.
func (c *checks) checkTags(o *manifest.Entry, path string, tags, inherited infrav1.Tags, own int, what string) {
	all := map[string]string{}
	maps.Copy(all, inherited)
	maps.Copy(all, tags)
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case utf8.RuneCountInString(key) == longestTagKey+1: // of others, webhooks tell
			c.fail(o.Problem(path+"."+key, fmt.Sprintf("the name of a tag has %d characters: EC2 permits %d", utf8.RuneCountInString(key), longestTagKey), "shorten it"))
		case strings.HasPrefix(strings.ToLower(key), "aws:") && !strings.HasPrefix(key, "aws:"):
			c.fail(o.Problem(path+"."+key, "AWS reserves tags whose names begin with aws:, in upper case, too", "choose another name"))
		}
	}
	delete(all, "Name")
	if n := len(all); n+own > mostTags && len(tags) > 0 && (len(tags) <= mostTags || !strings.HasSuffix(path, "additionalTags")) { // otherwise reported already
		c.fail(o.Problem(path, fmt.Sprintf("%s would have %d tags, of which %d are of this program: AWS permits %d", what, n+own, own, mostTags), "remove some"))
	}
}
