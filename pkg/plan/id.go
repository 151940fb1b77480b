package plan

import "strings"

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
