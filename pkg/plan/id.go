package plan

import (
	"slices"
	"strings"
)

// ID names a resource within its cluster: "subnet/private/us-east-1a". It is the
// same in plans, events, errors and statuses, and in the tag
// clusterawsadm/resource. Its first word is the kind.
type ID string

// Kind returns the first word of the ID: "subnet".
func (id ID) Kind() string {
	kind, _, _ := strings.Cut(string(id), "/")
	return kind
}

// Unretired returns the ID that a resource had before it was retired: "machine/md-0/17/i-0123"
// of "retired/machine/md-0/17/i-0123".
func (id ID) Unretired() ID { return ID(strings.TrimPrefix(string(id), "retired/")) }

// Group returns the common part of the IDs of machines or Nodes of one group: "machine/md-0" of
// "machine/md-0/17", and "retired/machine/md-0" of "retired/machine/md-0/17/i-0123". It is "" for a
// resource that is not one of many.
func (id ID) Group() string {
	words := strings.Split(string(id), "/")
	last, retired := 1, id.Unretired() != id
	if retired {
		last = 2
	}
	if !retired && !slices.Contains([]string{"machine", "node"}, id.Kind()) || len(words) < last+2 {
		return ""
	}
	return strings.Join(words[:len(words)-last], "/")
}
