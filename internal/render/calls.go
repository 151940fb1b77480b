package render

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Calls counts the calls of one operation.
type Calls struct {
	Service   string      `json:"service"`
	Operation string      `json:"operation"` // of an API server: "GET nodes"
	Count     int         `json:"count"`
	Attempts  int         `json:"attempts"` // more than Count if some were repeated
	Writes    bool        `json:"writes"`   // the operation may change something
	Failures  []CallError `json:"failures,omitempty"`
	Seconds   float64     `json:"seconds"` // of all calls
}

// CallError counts the calls that ended with one error code.
type CallError struct {
	Code  string `json:"code"` // "no answer" if AWS has not answered
	Count int    `json:"count"`
}

// CallCounter counts calls by their operation. It is for concurrent use.
type CallCounter struct {
	mu  sync.Mutex
	all map[string]*Calls
}

// Add counts a call.
func (c *CallCounter) Add(call plan.Call) {
	if call.Attempts == 0 {
		return // it was not sent
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*Calls{}
	}
	operation := operationOf(call)
	n := c.all[call.Service+"\n"+operation]
	if n == nil {
		n = &Calls{Service: call.Service, Operation: operation, Writes: call.Writes}
		c.all[call.Service+"\n"+operation] = n
	}
	n.Count++
	n.Attempts += call.Attempts
	n.Seconds += seconds(call.Took)
	if call.Err != nil {
		n.fail(cmp.Or(call.Code(), "no answer"))
	}
}

func (c *Calls) fail(code string) {
	at := slices.IndexFunc(c.Failures, func(e CallError) bool { return e.Code == code })
	if at < 0 {
		at = len(c.Failures)
		c.Failures = append(c.Failures, CallError{Code: code})
	}
	c.Failures[at].Count++
}

// List returns the counts, sorted by service and operation.
func (c *CallCounter) List() (out []Calls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.all {
		one := *n
		one.Seconds = math.Round(one.Seconds*1000) / 1000 // a sum of such
		one.Failures = slices.SortedFunc(slices.Values(n.Failures), func(a, b CallError) int { return cmp.Compare(a.Code, b.Code) })
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Calls) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	return out
}

// operationOf returns the operation of a call. Of a request to an API server it is the method
// and the resource, without the names of objects: "GET nodes".
func operationOf(call plan.Call) string {
	method, path, ok := strings.Cut(call.Operation, " /")
	if !ok {
		return call.Operation
	}
	words := strings.Split(path, "/")
	switch {
	case words[0] == "api" && len(words) > 2: // api/v1/…
		words = words[2:]
	case words[0] == "apis" && len(words) > 3: // apis/apps/v1/…
		words = words[3:]
	default:
		return call.Operation
	}
	if words[0] == "namespaces" && len(words) > 2 {
		words = words[2:]
	}
	operation := method + " " + words[0]
	if len(words) > 2 { // nodes/NAME/status
		operation += "/" + words[2]
	}
	return operation
}
