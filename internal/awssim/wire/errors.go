package wire

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// notSimulated is the error code of what the simulation does not do. AWS has no such code,
// and clients do not retry the status 501.
const notSimulated = "NotSimulated"

// refuse writes the error of a call, in the form of the protocol.
func (c *call) refuse(w http.ResponseWriter, err error) {
	if errors.As(err, new(*smithyhttp.RequestSendError)) || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // a lost connection: net/http closes it without an answer
	}
	if errors.As(err, new(*smithy.DeserializationError)) { // a connection that ends within the answer
		w.Header().Set("Content-Length", "1")
		w.WriteHeader(http.StatusOK)
		panic(http.ErrAbortHandler)
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		api = &smithy.GenericAPIError{Code: notSimulated, Message: strings.ReplaceAll(err.Error(), "awssim: ", ""), Fault: smithy.FaultServer}
	}
	c.head(w)
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		maps.Copy(w.Header(), response.Response.Header)
	}
	status := c.status(err, api)
	switch x := (&printer{}); c.protocol() {
	case "json", "rest-json":
		w.Header().Set("X-Amzn-Errortype", api.ErrorCode())
		send(w, status, "application/json", c.showJSONError(api))
	case "rest-xml":
		x.out.WriteString(`<?xml version="1.0" encoding="UTF-8"?><Error>`)
		x.problem(api)
		x.leaf("RequestId", c.id)
		x.close("Error")
		send(w, status, "application/xml", x.bytes())
	case "ec2":
		x.out.WriteString("<Response><Errors><Error>")
		x.problem(api)
		x.out.WriteString("</Error></Errors>")
		x.leaf("RequestID", c.id)
		x.close("Response")
		send(w, status, "text/xml;charset=UTF-8", x.bytes())
	default:
		x.out.WriteString("<ErrorResponse><Error>")
		x.leaf("Type", side(api))
		x.problem(api)
		x.close("Error")
		x.leaf("RequestId", c.id)
		x.close("ErrorResponse")
		send(w, status, "text/xml;charset=UTF-8", x.bytes())
	}
}

// protocol returns the protocol of the service, or what the request looks like.
func (c *call) protocol() string {
	switch {
	case c.service != nil:
		return c.service.Metadata.Protocol
	case c.Header.Get("X-Amz-Target") != "":
		return "json"
	case c.Form.Get("Action") != "":
		return "query"
	}
	return "rest-json"
}

// problem writes the code and the message of an error.
func (x *printer) problem(err smithy.APIError) {
	x.leaf("Code", err.ErrorCode())
	x.leaf("Message", err.ErrorMessage())
}

// side names the side that has made the mistake, as an error of the query protocol does.
func side(err smithy.APIError) string {
	if err.ErrorFault() == smithy.FaultServer {
		return "Receiver"
	}
	return "Sender"
}

// showJSONError writes an error with the members that the model has.
func (c *call) showJSONError(err smithy.APIError) []byte {
	body := tree{"__type": err.ErrorCode(), "message": err.ErrorMessage()}
	if c.service != nil {
		c.addMembers(body, err)
	}
	raw, _ := json.Marshal(body) // it consists of maps, lists and scalars
	return raw
}

func (c *call) addMembers(body tree, err smithy.APIError) {
	v := reflect.Indirect(reflect.ValueOf(err))
	name := v.Type().Name()
	shape := c.service.Shapes[name]                                               // of a generic error: none
	members, _ := renamed(c.service, name, dump(c.service, name, v), nameWritten) // members are of the model
	if members, ok := members.(tree); ok {
		maps.Copy(body, members)
	}
	if known, ok := c.service.ErrorOf(c.name, err.ErrorCode()); ok {
		shape = known
	}
	if m, ok := shape.Members["Message"]; ok && m.Name == "" {
		delete(body, "message")
		body["Message"] = err.ErrorMessage()
	}
}

// status is the status of the response with an error.
func (c *call) status(err error, api smithy.APIError) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	if c.service != nil {
		if shape, ok := c.service.ErrorOf(c.name, api.ErrorCode()); ok && shape.Error.Status != 0 {
			return shape.Error.Status
		}
	}
	switch api.ErrorCode() {
	case "AccessDenied", "UnauthorizedOperation", "Forbidden":
		return http.StatusForbidden
	case "NotFound", "NoSuchBucket", "NoSuchKey", "NoSuchBucketPolicy", "NoSuchLifecycleConfiguration", "NoSuchTagSet", "NoSuchEntity":
		return http.StatusNotFound
	case "BucketAlreadyExists", "BucketAlreadyOwnedByYou", "BucketNotEmpty":
		return http.StatusConflict
	case "PreconditionFailed":
		return http.StatusPreconditionFailed
	case notSimulated, "NotImplemented":
		return http.StatusNotImplemented
	case "RequestLimitExceeded":
		return http.StatusServiceUnavailable
	}
	if api.ErrorFault() == smithy.FaultServer {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}
