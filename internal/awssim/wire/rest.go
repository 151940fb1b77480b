package wire

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// readREST reads the path, the query, the headers and the body of a request.
func (c *call) readREST() (tree, error) {
	shape := c.service.Shapes[c.operation.Input.Shape]
	t, err := c.readBody(shape)
	if err != nil {
		return nil, err
	}
	query := c.URL.Query()
	_, literals, _ := strings.Cut(c.operation.HTTP.URI, "?")
	fixed := mustQuery(literals)
	maps.DeleteFunc(query, func(name string, _ []string) bool {
		return name == "x-id" || strings.HasPrefix(name, "X-Amz-") || fixed.Has(name)
	})
	for member, m := range shape.Members {
		name := cmp.Or(m.Name, member)
		if value := c.located(m, name, query); value != nil {
			t[member] = value
		}
		if m.Location == "querystring" {
			query.Del(name)
		}
	}
	for name := range query {
		return nil, core.NotSimulated("%s: parameter %s", c.name, name)
	}
	return t, nil
}

// located returns a member that is not in the body; nil if it is not set.
func (c *call) located(m model.Member, name string, query map[string][]string) any {
	switch m.Location {
	case "uri":
		return c.labels[name]
	case "querystring":
		values, ok := query[name]
		if !ok {
			return nil
		}
		if c.service.Shapes[m.Shape].Type != "list" {
			return values[0]
		}
		list := []any{}
		for _, v := range values {
			list = append(list, v)
		}
		return list
	case "header":
		if values := c.Header.Values(name); len(values) > 0 {
			return values[0]
		}
	case "headers":
		t := tree{}
		for header := range c.Header {
			if key, ok := strings.CutPrefix(strings.ToLower(header), strings.ToLower(name)); ok {
				t[key] = c.Header.Get(header)
			}
		}
		if len(t) > 0 {
			return t
		}
	}
	return nil
}

// readBody reads the body of a request.
func (c *call) readBody(shape model.Shape) (tree, error) {
	payload, ok := shape.Members[shape.Payload]
	switch {
	case ok && c.service.Shapes[payload.Shape].Type != "structure":
		return tree{shape.Payload: c.body}, nil
	case ok && len(c.body) == 0:
		return tree{}, nil
	case ok:
		t, err := c.readXML(payload.Shape)
		return tree{shape.Payload: t}, err
	case c.service.Metadata.Protocol == "rest-json":
		return c.readJSON(c.operation.Input.Shape)
	}
	return tree{}, nil
}

// writeREST writes the headers and the body of a response.
func (c *call) writeREST(w http.ResponseWriter, value any) {
	shape := c.service.Shapes[c.operation.Output.Shape]
	t, _ := value.(tree)
	for _, member := range core.SortedKeys(t) {
		c.setHeader(w.Header(), member, shape.Members[member], t[member])
	}
	status := cmp.Or(c.operation.HTTP.Status, http.StatusOK)
	payload, ok := shape.Members[shape.Payload]
	switch {
	case ok && c.service.Shapes[payload.Shape].Type != "structure":
		send(w, status, w.Header().Get("Content-Type"), bodyOf(t[shape.Payload]))
	case c.service.Metadata.Protocol == "rest-json":
		send(w, status, "application/json", c.showJSON(c.operation.Output.Shape, value))
	case ok:
		send(w, status, "application/xml", c.showXML(payload, t[shape.Payload]))
	case slices.ContainsFunc(slices.Collect(maps.Values(shape.Members)), func(m model.Member) bool { return m.Location == "" }):
		send(w, status, "application/xml", c.showXML(c.operation.Output, t))
	default:
		send(w, status, "", nil)
	}
}

// showXML writes a body of XML. Clients do not read the name of its root.
func (c *call) showXML(m model.Member, value any) []byte {
	x := printer{Service: c.service}
	x.out.WriteString(`<?xml version="1.0" encoding="UTF-8"?>`)
	root := cmp.Or(m.Name, m.Shape)
	x.open(root, "http://s3.amazonaws.com/doc/2006-03-01/")
	x.members(m.Shape, value)
	x.close(root)
	return x.bytes()
}

func (c *call) setHeader(h http.Header, member string, m model.Member, value any) {
	name := cmp.Or(m.Name, member)
	switch m.Location {
	case "header":
		h.Set(name, text(value, format(c.service, m, rfc822)))
	case "headers":
		t, _ := value.(tree)
		for key, v := range t {
			h.Set(name+key, text(v, ""))
		}
	}
}

// bodyOf returns a body that is no structure.
func bodyOf(value any) []byte {
	switch v := value.(type) {
	case io.Reader:
		raw, _ := io.ReadAll(v) // of the simulation, in memory
		return raw
	case []byte:
		return v
	}
	return []byte(text(value, ""))
}
