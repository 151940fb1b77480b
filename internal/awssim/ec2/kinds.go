package ec2

import (
	"cmp"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// resource is a resource of EC2. Thing, which each type embeds, has defaults for most
// methods.
type resource interface {
	thing() *Thing
	// kind is the same for all resources of a type, and for a nil pointer.
	kind() kind
	// name identifies the resource in inventories.
	name() string
	// details are the attributes in inventories.
	details(printer) []string
	// keepsVPC returns the ID of the VPC that cannot be deleted while the resource exists; "" if there is none.
	keepsVPC() string
	// takesTags returns an error for tags that the resource cannot have.
	takesTags(map[string]string) error
	// over reports whether the resource is deleted, or is part of another one.
	over(now time.Time) bool
	// listed reports whether the resource has its own line in the inventory.
	listed() bool
	// ending is the state of a resource whose deletion has started; "" for others.
	ending(now time.Time) string
}

// Thing has the fields that all resources of EC2 have.
type Thing struct {
	ID    string
	Tags  map[string]string
	Born  time.Time
	Given bool // default resource of every account
}

func (t *Thing) thing() *Thing { return t }

func (t *Thing) name() string { return t.nameOr("") }

// nameOr returns the tag "Name", or another name.
func (t *Thing) nameOr(other string) string { return cmp.Or(t.Tags["Name"], other, "without a name") }

func (t *Thing) details(printer) []string { return nil }

func (t *Thing) keepsVPC() string { return "" }

func (t *Thing) takesTags(map[string]string) error { return nil }

func (t *Thing) over(time.Time) bool { return t.Given }

func (t *Thing) listed() bool { return true }

func (t *Thing) ending(time.Time) string { return "" }

// newThing returns the fields of a new resource.
func (svc *Service) newThing(prefix string, tags map[string]string) Thing {
	if tags == nil {
		tags = map[string]string{}
	}
	return Thing{ID: svc.ID(prefix), Tags: tags, Born: svc.Now()}
}

// kind describes a kind of resource.
type kind struct {
	prefix   string             // prefix of IDs
	name     string             // name in messages
	missing  string             // error code if the ID does not exist
	tags     types.ResourceType // type in tag specifications
	title    string             // title in inventories
	apart    bool               // not supported by CreateTags, and not in the inventory
	simulate func(*Service)     // registers its operations
	settle   func(*Service)     // applies changes whose time has come
	route    *routeTarget       // permits routes to it; nil: none
}

// Table holds all resources of one kind, by ID. Every field of State with this type is a
// kind: its operations are registered, and its resources can have tags, are in
// inventories, change over time and may prevent the deletion of a VPC.
type Table[T resource] map[string]T

// table is a Table of any kind.
type table interface {
	fill()
	kind() kind
	get(id string) resource // nil if it does not exist
	all() iter.Seq[resource]
}

func (t *Table[T]) fill() {
	if *t == nil {
		*t = Table[T]{}
	}
}

func (t *Table[T]) kind() kind {
	var none T
	return none.kind()
}

func (t *Table[T]) get(id string) resource {
	if r, ok := (*t)[id]; ok {
		return r
	}
	return nil
}

func (t *Table[T]) all() iter.Seq[resource] {
	return func(yield func(resource) bool) {
		for _, r := range *t {
			if !yield(r) {
				return
			}
		}
	}
}

// tables returns the fields of the state that are tables.
func (s *State) tables() (all []table) {
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		if t, ok := fields.Field(i).Addr().Interface().(table); ok {
			all = append(all, t)
		}
	}
	return all
}

// Tags returns the tags of the resource with an ID; nil if it does not exist.
func (s *State) Tags(id string) map[string]string {
	for _, t := range s.tables() {
		if r := t.get(id); r != nil {
			return r.thing().Tags
		}
	}
	return nil
}

// AllTags yields the ID and the tags of each resource.
func (s *State) AllTags() iter.Seq2[string, map[string]string] {
	return func(yield func(string, map[string]string) bool) {
		for _, t := range s.tables() {
			for r := range t.all() {
				if !yield(r.thing().ID, r.thing().Tags) {
					return
				}
			}
		}
	}
}

// taggable returns all resources that can have tags.
func (svc *Service) taggable() iter.Seq[resource] {
	return func(yield func(resource) bool) {
		for _, t := range svc.tables {
			if t.kind().apart {
				continue
			}
			for r := range t.all() {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// prefixOf returns the prefix of an ID, which identifies its kind.
func prefixOf(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	return prefix
}

// kindOf returns the kind of an ID.
func (svc *Service) kindOf(id string) kind {
	prefix := prefixOf(id)
	if rule := (*groupRule)(nil).kind(); prefix == rule.prefix {
		return rule
	}
	for _, t := range svc.tables {
		if k := t.kind(); k.prefix == prefix {
			return k
		}
	}
	return kind{prefix: prefix, name: "resource", missing: "InvalidID"}
}

// notFound returns the error for an ID that does not exist.
func (k kind) notFound(id string) error {
	if !strings.HasPrefix(id, k.prefix+"-") {
		code := strings.Replace(strings.Replace(k.missing, "NotFound", "Malformed", 1), "Group.", "GroupId.", 1)
		return core.Fail(code, "invalid id: %q", id)
	}
	return core.Fail(k.missing, "the %s ID '%s' does not exist", k.name, id)
}

// lookup returns the resource with an ID in a writing call.
func lookup[T resource](svc *Service, among map[string]T, id *string) (none T, err error) {
	k := none.kind()
	if aws.ToString(id) == "" {
		return none, core.Fail("MissingParameter", "the request must contain the parameter %sId", k.name)
	}
	t, ok := among[*id]
	if !ok || !svc.refers(t) {
		return none, k.notFound(*id)
	}
	return t, nil
}

// refers reports whether writing calls can refer to a resource yet.
func (svc *Service) refers(r resource) bool {
	t := r.thing()
	return t.Given || svc.Now().Sub(t.Born) >= svc.LagRefs
}
