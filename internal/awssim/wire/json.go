package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// readJSON reads the body of a request.
func (c *call) readJSON(shape string) (tree, error) {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return tree{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.UseNumber()
	var body tree
	if err := d.Decode(&body); err != nil {
		return nil, core.Fail("SerializationException", "%s", err)
	}
	value, err := renamed(c.service, shape, body, nameRead)
	t, _ := value.(tree)
	return t, err
}

// showJSON writes the body of a response.
func (c *call) showJSON(shape string, value any) []byte {
	if value == nil {
		value = tree{}
	}
	value, _ = renamed(c.service, shape, value, nameWritten) // members are of the model
	raw, _ := json.Marshal(value)                            // it consists of maps, lists and scalars
	return raw
}

// naming returns the new name of a member, "" to omit it.
type naming func(s model.Shape, name string) (string, model.Member)

// nameRead returns the member of the model that has a name in the body of a request; "" if
// there is none.
func nameRead(s model.Shape, name string) (string, model.Member) {
	for member, m := range s.Members {
		if cmp.Or(m.Name, member) == name && m.Location == "" {
			return member, m
		}
	}
	return "", model.Member{}
}

// nameWritten returns the name that a member of the model has in the body of a response; "" if
// the member is not in the body.
func nameWritten(s model.Shape, name string) (string, model.Member) {
	m := s.Members[name]
	if m.Location != "" {
		return "", m
	}
	return cmp.Or(m.Name, name), m
}

// renamed changes the names of members, and the format of times.
func renamed(s *model.Service, shape string, value any, name naming) (any, error) {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = renamed(s, s.Shapes[shape].Item.Shape, v[i], name); err != nil {
				return nil, err
			}
		}
		return list, nil
	case tree:
		return renamedTree(s, s.Shapes[shape], v, name)
	case time.Time:
		return float64(v.UnixMilli()) / 1000, nil
	}
	return value, nil
}

func renamedTree(s *model.Service, shape model.Shape, t tree, name naming) (any, error) {
	out := tree{}
	for key, value := range t {
		if value == nil { // null in JSON: not set
			continue
		}
		to, m := key, shape.Value
		if shape.Type == "structure" {
			to, m = name(shape, key)
		}
		if to == "" {
			if _, known := shape.Members[key]; known {
				continue // it is in another part of the response
			}
			return nil, core.NotSimulated("parameter %s", key)
		}
		v, err := renamed(s, m.Shape, value, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if at, ok := value.(time.Time); ok && format(s, m, epoch) != epoch {
			v = text(at, format(s, m, epoch))
		}
		out[to] = v
	}
	return out, nil
}
