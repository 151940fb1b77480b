package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// parameter is a part of the name of parameters, such as "Tag" of "Tag.1.Key": the value
// with this name, and the parts that follow.
type parameter struct {
	value string
	parts map[string]*parameter
}

// parameters groups the parameters of a request by the parts of their names.
func (c *call) parameters() *parameter {
	all := &parameter{parts: map[string]*parameter{}}
	for name, values := range c.Form {
		if name == "Action" || name == "Version" || strings.HasPrefix(name, "X-Amz-") { // of a presigned request
			continue
		}
		at := all
		for part := range strings.SplitSeq(name, ".") {
			if at.parts[part] == nil {
				at.parts[part] = &parameter{parts: map[string]*parameter{}}
			}
			at = at.parts[part]
		}
		at.value = values[0]
	}
	return all
}

// readQuery reads the parameters of EC2's and AWS's query protocols.
func (c *call) readQuery() (tree, error) {
	q := query{c.service, c.service.Metadata.Protocol == "ec2"}
	return q.structure(c.operation.Input.Shape, c.parameters())
}

// query reads parameters.
type query struct {
	*model.Service

	ec2 bool
}

// name returns the name of a member in parameters.
func (q query) name(member string, m model.Member) string {
	if q.ec2 {
		return cmp.Or(m.Query, field(cmp.Or(m.Name, member)))
	}
	if item := q.Shapes[m.Shape].Item.Name; item != "" && q.flattened(m) {
		return item
	}
	return cmp.Or(m.Name, member)
}

func (q query) flattened(m model.Member) bool {
	return q.ec2 || q.Flat(m)
}

func (q query) structure(shape string, p *parameter) (tree, error) {
	members := map[string]string{}
	for member, m := range q.Shapes[shape].Members {
		members[q.name(member, m)] = member
	}
	t := tree{}
	for _, part := range core.SortedKeys(p.parts) {
		member, ok := members[part]
		if !ok {
			return nil, core.NotSimulated("parameter %s", part)
		}
		value, err := q.value(q.Shapes[shape].Members[member], p.parts[part])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		t[member] = value
	}
	return t, nil
}

func (q query) value(m model.Member, p *parameter) (any, error) {
	switch s := q.Shapes[m.Shape]; s.Type {
	case "structure":
		return q.structure(m.Shape, p)
	case "list":
		return q.list(m, s, p)
	case "map":
		return q.pairs(m, s, p)
	}
	return p.value, nil
}

func (q query) list(m model.Member, s model.Shape, p *parameter) (any, error) {
	if !q.flattened(m) {
		if p = p.parts[cmp.Or(s.Item.Name, "member")]; p == nil {
			return []any{}, nil // the SDKs send an empty value for an empty list
		}
	}
	list := []any{}
	for _, item := range p.numbered() {
		value, err := q.value(s.Item, item)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func (q query) pairs(m model.Member, s model.Shape, p *parameter) (any, error) {
	if !q.flattened(m) {
		if p = p.parts["entry"]; p == nil {
			return tree{}, nil
		}
	}
	t := tree{}
	for _, pair := range p.numbered() {
		key, value := pair.parts[cmp.Or(s.Key.Name, "key")], pair.parts[cmp.Or(s.Value.Name, "value")]
		if key == nil || value == nil {
			return nil, core.Fail("MalformedInput", "an entry of a map has a key and a value")
		}
		v, err := q.value(s.Value, value)
		if err != nil {
			return nil, err
		}
		t[key.value] = v
	}
	return t, nil
}

// numbered returns the parts in the order of their numbers.
func (p *parameter) numbered() (list []*parameter) {
	number := func(part string) int {
		n, _ := strconv.Atoi(part) // other parts are first
		return n
	}
	names := core.SortedKeys(p.parts)
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(number(x), number(y)) })
	for _, part := range names {
		list = append(list, p.parts[part])
	}
	return list
}
