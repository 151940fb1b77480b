//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// call is a request to AWS.
type call struct {
	service   string // as in the signature of the request
	operation string
	token     string // the client token; "" if there is none
	input     string // the request without the token
}

// callOf reads the operation and the token of a request, in each of AWS's protocols.
func callOf(r *http.Request, body []byte) call {
	c := call{operation: r.Method + " " + r.URL.Path, input: r.URL.RequestURI()}
	if scope := strings.Split(r.Header.Get("Authorization"), "/"); len(scope) > 3 {
		c.service = scope[3]
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Has("Action") {
		c.operation, c.token = form.Get("Action"), form.Get("ClientToken")
		form.Del("ClientToken")
		c.input = form.Encode()
		return c
	}
	if _, target, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		c.operation = target
	}
	var document map[string]any
	if json.Unmarshal(body, &document) == nil {
		for _, name := range []string{"clientRequestToken", "ClientRequestToken"} {
			if token, ok := document[name].(string); ok {
				c.token = token
				delete(document, name)
			}
		}
		c.input += fmt.Sprint(document)
	}
	return c
}

// refuse answers with an error, in the protocol of the service.
func (c call) refuse(w http.ResponseWriter, f fault) {
	status, code := http.StatusInternalServerError, "InternalError"
	switch f { //nolint:exhaustive // the other faults do not lose a token
	case unavailable:
		status, code = http.StatusServiceUnavailable, "ServiceUnavailable"
	case throttled:
		status, code = http.StatusBadRequest, "ThrottlingException"
		switch c.service {
		case "ec2":
			status, code = http.StatusServiceUnavailable, "RequestLimitExceeded"
		case "s3":
			status, code = http.StatusServiceUnavailable, "SlowDown"
		case "elasticloadbalancing", "iam", "autoscaling":
			code = "Throttling"
		}
	default:
	}
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	format := "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>injected</Message></Error><RequestId>0</RequestId></ErrorResponse>"
	switch c.service {
	case "ec2":
		format = "<Response><Errors><Error><Code>%s</Code><Message>injected</Message></Error></Errors><RequestID>0</RequestID></Response>"
	case "s3":
		format = "<Error><Code>%s</Code><Message>injected</Message></Error>"
	case "ssm", "secretsmanager", "eks", "servicequotas":
		format = `{"__type": %q, "message": "injected"}`
	}
	_, _ = fmt.Fprintf(w, format, code)
}

// tokens has the answers to requests with a client token: AWS answers a repeated request as
// it has answered the first one.
type tokens struct {
	mu    sync.Mutex
	known map[string]*remembered
}

// remembered is the first successful request with a token.
type remembered struct {
	sync.Mutex
	input  string
	answer *answer
}

func newTokens() *tokens { return &tokens{known: map[string]*remembered{}} }

// once returns the answer to a call, which is sent unless one with its token has succeeded.
func (x *tokens) once(c call, send func() (answer, error)) (answer, error) {
	if c.token == "" {
		return send()
	}
	x.mu.Lock()
	key := c.operation + " " + c.token
	if x.known[key] == nil {
		x.known[key] = &remembered{}
	}
	first := x.known[key]
	x.mu.Unlock()
	first.Lock() // a second one waits for the first
	defer first.Unlock()
	switch {
	case first.answer == nil:
		a, err := send()
		if err == nil && a.status == http.StatusOK {
			first.input, first.answer = c.input, &a
		}
		return a, err
	case first.input != c.input:
		return mismatch(c), nil
	}
	return *first.answer, nil
}

// mismatch is the answer to a token that belongs to another request.
func mismatch(c call) answer {
	a := answer{status: http.StatusBadRequest, header: http.Header{}}
	a.body = []byte(
		"<Response><Errors><Error><Code>IdempotentParameterMismatch</Code><Message>the token belongs to another request</Message></Error></Errors></Response>",
	)
	if c.service != "ec2" {
		a.body = []byte(`{"__type": "InvalidParameterException", "message": "the token belongs to another request"}`)
	}
	return a
}
