// Package wire serves the simulated AWS over HTTP, in the protocols of AWS's services: EC2
// and AWS query, JSON, REST with JSON and REST with XML.
//
// It has no code for single operations. Package model says where a member of an input or
// output is in a request or response, and reflection fills and reads the structs of the
// SDK. A request passes through three forms: HTTP, a tree of values by the names of the
// model, and the struct.
package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// largest is the size of the largest request that is read, in bytes. It is larger than
// what any simulated operation accepts, except for objects of S3.
const largest = 64 << 20

// Handler answers requests of AWS clients. Signatures are not checked: the access key of a
// signature says who the caller is.
type Handler struct {
	// Observe, if set, is called after every call that has reached the account.
	Observe func(Call)

	process    *core.Process
	models     map[string]*model.Service
	operations map[string]core.Operation // by package and name
}

// Call is one call.
type Call struct {
	RequestID, Service, Operation string
	Input, Output                 any // pointers to the SDK's structs
	Err                           error
}

// New returns a handler for an account. All its clients are one program of the account. An
// operation that the models do not have is answered as not simulated.
func New(p *core.Process) (*Handler, error) {
	models, err := model.Load()
	if err != nil {
		return nil, err
	}
	h := &Handler{process: p, models: models, operations: map[string]core.Operation{}}
	for _, op := range p.Operations() {
		h.operations[op.Package+" "+op.Name] = op
	}
	return h, nil
}

// call is one request.
type call struct {
	*http.Request

	service   *model.Service // nil if it is not known
	name      string         // of the operation; "" if it is not known
	operation model.Operation
	labels    map[string]string // parts of the path, by name
	caller    caller
	body      []byte
	id        string // of the request
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, caller: callerOf(r), id: newID()}
	out, err := h.answer(r.Context(), c)
	if err != nil {
		c.refuse(w, err)
		return
	}
	c.write(w, out)
}

// answer finds out what a request asks for, and asks the account.
func (h *Handler) answer(ctx context.Context, c *call) (out any, err error) {
	if c.body, err = io.ReadAll(http.MaxBytesReader(nil, c.Body, largest)); err != nil {
		return nil, core.Fail("RequestTooLarge", "%s", err)
	}
	if err := h.route(c); err != nil {
		return nil, err
	}
	if err := c.checkSums(); err != nil {
		return nil, err
	}
	tree, err := c.read()
	if err != nil {
		return nil, err
	}
	in := reflect.New(h.operations[c.service.Package()+" "+c.name].Input)
	if err := fill(in.Elem(), tree); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	request := core.Request{Service: c.service.Metadata.ID, Operation: c.name, Region: c.caller.region, AccessKey: c.caller.key, Input: in.Interface()}
	out, err = h.process.Call(ctx, request)
	if h.Observe != nil {
		h.Observe(Call{c.id, request.Service, request.Operation, request.Input, out, err})
	}
	return out, err
}

// read returns the tree of the input.
func (c *call) read() (tree, error) {
	switch c.service.Metadata.Protocol {
	case "ec2", "query":
		return c.readQuery()
	case "json":
		return c.readJSON(c.operation.Input.Shape)
	}
	return c.readREST()
}

// write writes an output.
func (c *call) write(w http.ResponseWriter, out any) {
	c.head(w)
	value := c.dumpOutput(out)
	switch c.service.Metadata.Protocol {
	case "ec2", "query":
		send(w, http.StatusOK, "text/xml;charset=UTF-8", c.showQuery(value))
	case "json":
		send(w, http.StatusOK, "application/x-amz-json-"+c.service.Metadata.JSON, c.showJSON(c.operation.Output.Shape, value))
	default:
		c.writeREST(w, value)
	}
}

// dumpOutput reads an output. AWS answers with empty lists where the SDK's struct has none,
// except in S3.
func (c *call) dumpOutput(out any) any {
	shape := c.operation.Output.Shape
	value := dump(c.service, shape, reflect.ValueOf(out).Elem())
	t, ok := value.(tree)
	if !ok || c.service.Metadata.Protocol == "rest-xml" {
		return value
	}
	for name, m := range c.service.Shapes[shape].Members {
		if t[name] == nil && c.service.Shapes[m.Shape].Type == "list" {
			t[name] = []any{}
		}
	}
	return t
}

// head sets the headers with the ID of the request.
func (c *call) head(w http.ResponseWriter) {
	if c.service != nil && c.service.Metadata.Protocol == "rest-xml" {
		w.Header().Set("X-Amz-Request-Id", c.id)
		w.Header().Set("X-Amz-Id-2", "simulated")
		return
	}
	w.Header().Set("X-Amzn-Requestid", c.id)
}

func send(w http.ResponseWriter, status int, kind string, body []byte) {
	if len(body) > 0 {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone does not need it
}
