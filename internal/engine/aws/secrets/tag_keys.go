package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TagKeysKind is the name of the kind of the record of tag keys.
const TagKeysKind = "tag-keys"

// TagKeys records which tags of the manifest runs have set: for each key, the IDs of the resources that have the tag, or of their groups in the case
// of machines. AWS does not record who has set a tag. With this record, a run can remove the tags that are not in the manifest any more, and leave
// all others alone. See docs/adr/0053-keys-of-tags.md.
type TagKeys map[string][]plan.ID

// allResources stands for all resources that have tags.
const allResources plan.ID = "*"

// NewTagKeys returns the record for resources with these keys of tags. of also has the resources without any such key.
func NewTagKeys(of map[plan.ID][]string) TagKeys {
	k := TagKeys{}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		for _, key := range of[id] {
			k[key] = append(k[key], id)
		}
	}
	for key, ids := range k {
		if len(ids) == len(of) {
			k[key] = []plan.ID{allResources}
		}
	}
	return k
}

// Of lists the recorded keys of a resource.
func (k TagKeys) Of(id plan.ID) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if slices.Contains(k[key], allResources) || slices.Contains(k[key], id) {
			keys = append(keys, key)
		}
	}
	return keys
}

// And returns a record that has everything of both records.
func (k TagKeys) And(more TagKeys) TagKeys {
	out := maps.Clone(k)
	if out == nil {
		out = TagKeys{}
	}
	for key, ids := range more {
		all := slices.Concat(out[key], ids)
		if slices.Contains(all, allResources) {
			all = []plan.ID{allResources}
		}
		slices.Sort(all)
		out[key] = slices.Compact(all)
	}
	return out
}

// String returns the value of the parameter, a JSON object; "" without keys. If it is longer than Parameter Store permits, the longest lists of
// resources are replaced by allResources.
func (k TagKeys) String() string {
	if len(k) == 0 {
		return ""
	}
	k = maps.Clone(k)
	for {
		value, _ := json.Marshal(k) //nolint:errchkjson // texts only
		longest := slices.MaxFunc(slices.Sorted(maps.Keys(k)), func(a, b string) int { return len(k[a]) - len(k[b]) })
		if len(value) <= cloud.StandardParameter || len(k[longest]) == 1 {
			return string(value)
		}
		k[longest] = []plan.ID{allResources}
	}
}

// ReadTagKeys returns the record of tag keys; nil if there is none.
func ReadTagKeys(ctx context.Context, c *cloud.Clients) (TagKeys, error) {
	value, err := Record(ctx, c, TagKeysKind)
	if err != nil || value == "" {
		return nil, err
	}
	var k TagKeys
	if err := json.Unmarshal([]byte(value), &k); err != nil {
		return nil, fmt.Errorf(
			"parameter %s: the value is not one of this program: delete the parameter; tags that were removed from the manifest before stay then: %w",
			c.ParameterPath(TagKeysKind),
			err,
		)
	}
	return k, nil
}

// Write replaces the record.
func (k TagKeys) Write(ctx context.Context, c *cloud.Clients) error {
	if len(k) == 0 {
		return deleteTagKeys(ctx, c)
	}
	for began := c.Clock.Now(); ; {
		_, err := c.SSM.PutParameter(cloud.NeverLate(ctx), &ssm.PutParameterInput{
			Name: aws.String(c.ParameterPath(TagKeysKind)), Value: aws.String(k.String()), Type: types.ParameterTypeString, Overwrite: aws.Bool(true),
		})
		if !cloud.Is(err, "ParameterAlreadyExists") || c.Clock.Since(began) > deletedName {
			return err
		}
		if err := c.Clock.Sleep(ctx, 5*time.Second); err != nil {
			return err
		}
	}
}

// deletedName is how long Write waits until the name of a deleted parameter can be used again. AWS takes 30 seconds (DeleteParameter, Systems Manager
// API reference).
const deletedName = time.Minute

func deleteTagKeys(ctx context.Context, c *cloud.Clients) error {
	_, err := c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(c.ParameterPath(TagKeysKind))})
	return cloud.IgnoreNotFound(err)
}

// TagKeysState is the path of the parameter.
type TagKeysState struct{ Path string }

// CloudID implements graph.State.
func (s TagKeysState) CloudID() string { return s.Path }

// tagKeysRecord is the record as a resource that is deleted with the cluster. Runs write it, outside of their plans, as they do the lock.
type tagKeysRecord struct{}

var (
	_ graph.Desired[TagKeysState] = tagKeysRecord{}
	_ graph.Deleter[TagKeysState] = tagKeysRecord{}
)

// Needs implements graph.Desired.
func (tagKeysRecord) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (tagKeysRecord) Find(ctx context.Context, c *cloud.Clients) (*TagKeysState, error) {
	value, err := Record(ctx, c, TagKeysKind)
	if err != nil || value == "" {
		return nil, err
	}
	return &TagKeysState{c.ParameterPath(TagKeysKind)}, nil
}

// Diff implements graph.Desired.
func (tagKeysRecord) Diff(*TagKeysState) plan.Diff { return nil }

// Delete implements graph.Deleter.
func (tagKeysRecord) Delete(ctx context.Context, c *cloud.Clients, _ *TagKeysState) error {
	return deleteTagKeys(ctx, c)
}

// tagKeysKind declares the record of tag keys.
func tagKeysKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: TagKeysKind, Area: plan.AreaSecurity, Secret: true, Single: true,
		Statement: kind.Parameters, Actions: recordActions(),
	}, kind.Functions[TagKeysState]{
		Delete: tagKeysRecord{},
		List:   onlyOne(tagKeysRecord{}.Find),
	})
}
