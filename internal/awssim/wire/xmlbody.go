package wire

import (
	"bytes"
	"encoding/xml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// node is an element of XML.
type node struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
	Nodes   []node `xml:",any"`
}

// readXML reads the body of a request.
func (c *call) readXML(shape string) (tree, error) {
	var root node
	if err := xml.NewDecoder(bytes.NewReader(c.body)).Decode(&root); err != nil {
		return nil, core.Fail("MalformedXML", "%s", err)
	}
	return structureOf(c.service, shape, root)
}

func structureOf(s *model.Service, shape string, n node) (tree, error) {
	t := tree{}
	for _, kid := range n.Nodes {
		member, m := nameRead(s.Shapes[shape], kid.XMLName.Local)
		if member == "" {
			return nil, core.NotSimulated("element %s", kid.XMLName.Local)
		}
		value, err := valueOf(s, m, kid)
		if err != nil {
			return nil, err
		}
		if items, several := value.([]any); several && s.Flat(m) {
			before, _ := t[member].([]any)
			value = append(before, items...)
		}
		t[member] = value
	}
	return t, nil
}

// valueOf reads an element. For a flattened list it is one item.
func valueOf(s *model.Service, m model.Member, n node) (any, error) {
	switch shape := s.Shapes[m.Shape]; {
	case shape.Type == "structure":
		return structureOf(s, m.Shape, n)
	case shape.Type == "list" && s.Flat(m):
		item, err := valueOf(s, shape.Item, n)
		return []any{item}, err
	case shape.Type == "list":
		list := []any{}
		for _, kid := range n.Nodes {
			item, err := valueOf(s, shape.Item, kid)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	case shape.Type == "map":
		return nil, core.NotSimulated("the map %s in XML", n.XMLName.Local)
	}
	return n.Text, nil
}
