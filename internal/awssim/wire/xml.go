package wire

import (
	"cmp"
	"encoding/xml"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// showQuery writes the output of EC2's and AWS's query protocols.
func (c *call) showQuery(value any) []byte {
	x := printer{Service: c.service}
	root := c.name + "Response"
	x.open(root, c.service.Metadata.Namespace)
	if c.service.Metadata.Protocol == "ec2" {
		x.leaf("requestId", c.id)
		x.members(c.operation.Output.Shape, value)
	} else {
		if wrapper := c.operation.Output.Wrapper; wrapper != "" {
			x.open(wrapper, "")
			x.members(c.operation.Output.Shape, value)
			x.close(wrapper)
		}
		x.open("ResponseMetadata", "")
		x.leaf("RequestId", c.id)
		x.close("ResponseMetadata")
	}
	x.close(root)
	return x.bytes()
}

// printer writes XML.
type printer struct {
	*model.Service

	out strings.Builder
}

// bytes returns what has been written.
func (x *printer) bytes() []byte { return []byte(x.out.String()) }

func (x *printer) open(name, namespace string) {
	x.out.WriteString("<" + name)
	if namespace != "" {
		x.out.WriteString(` xmlns="` + namespace + `"`)
	}
	x.out.WriteString(">")
}

func (x *printer) close(name string) { x.out.WriteString("</" + name + ">") }

// leaf writes an element with a text.
func (x *printer) leaf(name, text string) {
	x.open(name, "")
	_ = xml.EscapeText(&x.out, []byte(text)) // a string does not fail
	x.close(name)
}

// members writes the members of a structure that are in the body.
func (x *printer) members(shape string, value any) {
	t, _ := value.(tree)
	for _, member := range core.SortedKeys(t) {
		m := x.Shapes[shape].Members[member]
		if m.Location == "" {
			x.element(cmp.Or(m.Name, member), m, t[member])
		}
	}
}

// element writes a value with a name. A flattened list or map is written as several.
func (x *printer) element(name string, m model.Member, value any) {
	s := x.Shapes[m.Shape]
	switch v := value.(type) {
	case []any:
		if x.Flat(m) {
			for _, item := range v {
				x.element(cmp.Or(s.Item.Name, name), s.Item, item)
			}
			return
		}
		x.open(name, "")
		for _, item := range v {
			x.element(cmp.Or(s.Item.Name, "member"), s.Item, item)
		}
		x.close(name)
	case tree:
		x.open(name, "")
		if s.Type == "map" {
			x.entries(s, v)
		} else {
			x.members(m.Shape, v)
		}
		x.close(name)
	default:
		x.leaf(name, text(v, format(x.Service, m, iso8601)))
	}
}

func (x *printer) entries(s model.Shape, pairs tree) {
	for _, key := range core.SortedKeys(pairs) {
		x.open("entry", "")
		x.element(cmp.Or(s.Key.Name, "key"), s.Key, key)
		x.element(cmp.Or(s.Value.Name, "value"), s.Value, pairs[key])
		x.close("entry")
	}
}
