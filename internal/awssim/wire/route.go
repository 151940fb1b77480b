package wire

import (
	"net/url"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// route finds the service and the operation of a request.
func (h *Handler) route(c *call) error {
	c.Form = c.URL.Query()
	if strings.HasPrefix(c.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(c.body))
		if err != nil {
			return core.Fail("MalformedQueryString", "%s", err)
		}
		for name, values := range form {
			c.Form[name] = append(c.Form[name], values...)
		}
	}
	if c.service = h.serviceOf(c); c.service == nil {
		return core.NotSimulated("the service %q", c.caller.service)
	}
	switch c.service.Metadata.Protocol {
	case "ec2", "query":
		c.name = c.Form.Get("Action")
	case "json":
		_, c.name, _ = strings.Cut(c.Header.Get("X-Amz-Target"), ".")
	default:
		c.name = c.match()
		if c.name == "" {
			return core.NotSimulated("%s %s %s", c.service.Metadata.ID, c.Method, c.URL.RequestURI())
		}
	}
	op, ok := c.service.Operations[c.name]
	if !ok {
		name := c.name
		c.name = ""
		return core.NotSimulated("%s %s", c.service.Metadata.ID, name)
	}
	c.operation = op
	return nil
}

// serviceOf returns the service of a request. The name in the scope of a signature is not
// enough: two services share one, and a request may have no signature. The version of the
// API or the prefix of the target decides. A request to S3 has neither.
func (h *Handler) serviceOf(c *call) *model.Service {
	version, target := c.Form.Get("Version"), c.Header.Get("X-Amz-Target")
	prefix, _, _ := strings.Cut(target, ".")
	for _, s := range h.models {
		switch {
		case c.caller.service != "" && c.caller.service != s.Scope():
		case version != "" && version == s.Metadata.Version,
			target != "" && prefix == s.Metadata.Target,
			version == "" && target == "" && strings.HasPrefix(s.Metadata.Protocol, "rest-") && (c.caller.service != "" || s.Scope() == "s3"):
			return s
		}
	}
	return nil
}

// match returns the operation of a REST service whose method, path and query are those of
// the request; of several, the one with the most literal parts. It sets the labels.
func (c *call) match() (name string) {
	path, query, most := c.URL.EscapedPath(), c.URL.Query(), -1
	for n, op := range c.service.Operations {
		if op.HTTP.Method != c.Method {
			continue
		}
		labels, literals := labelsOf(op.HTTP.URI, path, query)
		if literals > most {
			name, most, c.labels = n, literals, labels
		}
	}
	return name
}

// labelsOf returns the labels of a path, such as "/clusters/{name}" or "/{Bucket}/{Key+}",
// and the number of literal parts that are in the path and the query; -1 if the path or
// the query does not match.
func labelsOf(uri, path string, query url.Values) (labels map[string]string, literals int) {
	uri, wanted, _ := strings.Cut(uri, "?")
	for name, values := range mustQuery(wanted) {
		if !query.Has(name) || values[0] != "" && values[0] != query.Get(name) {
			return nil, -1
		}
		literals++
	}
	labels = map[string]string{}
	parts, rest := strings.Split(strings.Trim(uri, "/"), "/"), strings.TrimPrefix(path, "/")
	for i, part := range parts {
		label := strings.Trim(part, "{+}")
		value, after, _ := strings.Cut(rest, "/")
		switch {
		case strings.HasSuffix(part, "+}"):
			value, after = rest, ""
		case label == part && value == part:
			literals++
		case label == part:
			return nil, -1
		}
		text, err := url.PathUnescape(value)
		if err != nil || value == "" && part != "" || i == len(parts)-1 && after != "" {
			return nil, -1
		}
		labels[label], rest = text, after
	}
	return labels, literals
}

func mustQuery(literal string) url.Values {
	v, _ := url.ParseQuery(literal) // of a model of AWS
	return v
}
