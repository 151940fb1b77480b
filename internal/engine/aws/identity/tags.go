package identity

import (
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ChangeTags makes the changes of tags that d lists, and returns the tags that the resource has then. set sets all desired tags, and remove removes
// the tags with some keys. Tags are removed first: with the new ones beside the old ones, a resource might have more than the 50 that AWS permits.
func ChangeTags(have, want cloud.Tags, d plan.Diff, set func() error, remove func(keys []string) error) (cloud.Tags, error) {
	if keys := d.Untagged(); len(keys) > 0 {
		if err := remove(keys); err != nil {
			return have, err
		}
		have = have.Without(keys)
	}
	if d.SetsTags() {
		if err := set(); err != nil {
			return have, err
		}
		have = have.With(want)
	}
	return have, nil
}
