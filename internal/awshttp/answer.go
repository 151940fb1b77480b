package awshttp

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// MaxAnswer is the largest size of an answer that is read. A page of AWS has at most 1,000
// entries of a few kilobytes.
const MaxAnswer = 64 << 20

// maxDepth limits how deep the elements of an answer are nested. The deepest type in the
// models of AWS's APIs that this program uses has less than 20 levels.
const maxDepth = 100

// AnswerError says that an answer does not come from AWS.
type AnswerError struct {
	Host   string
	Status int
	Kind   string // its Content-Type
	What   string // what it lacks
}

func (e *AnswerError) Error() string {
	kind := e.Kind
	if kind == "" {
		kind = "no Content-Type"
	}
	return fmt.Sprintf(
		"this is not an answer of AWS: HTTP %d, %s, from %s (%s): is there a proxy or a login page? Check AWS_ENDPOINT_URL and HTTPS_PROXY",
		e.Status,
		kind,
		e.Host,
		e.What,
	)
}

// TooLargeError says that an answer is larger than MaxAnswer.
type TooLargeError struct{}

func (*TooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d MiB: it comes from another server (check the address and HTTPS_PROXY)", MaxAnswer>>20)
}

// limited is a body that ends with a TooLargeError after so many bytes.
type limited struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, &TooLargeError{}
	}
	if int64(len(p)) > l.left+1 { // one more byte shows whether the body is too large
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, &TooLargeError{}
	}
	return n, err
}

// rest is a body of which a part has been read.
type rest struct {
	io.Reader
	io.Closer
}

// check returns an error if an answer does not come from AWS. The SDK decodes any document,
// such as a login page, as an answer with empty fields.
//
// AWS answers with the ID of the request, in a header or in the document:
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/common-parameters.html ("requestId"),
// https://smithy.io/2.0/aws/protocols/aws-query-protocol.html ("ResponseMetadata"),
// https://docs.aws.amazon.com/AmazonS3/latest/API/RESTCommonResponseHeaders.html.
func check(r *smithyhttp.Request, a *smithyhttp.Response, op string) error {
	wrong := func(what string) error {
		return &AnswerError{Host: r.URL.Host, Status: a.StatusCode, Kind: a.Header.Get("Content-Type"), What: what}
	}
	identified := requestID(a.Header)
	switch {
	case a.StatusCode >= http.StatusInternalServerError, a.StatusCode == http.StatusTooManyRequests, a.StatusCode == http.StatusRequestTimeout:
		return nil // front ends of AWS answer so, too; the SDK repeats the call
	case a.StatusCode >= http.StatusMultipleChoices:
		if identified || a.Header.Get("X-Amzn-Errortype") != "" {
			return nil
		}
		text, err := all(a)
		if err == nil && !hasID(text) && !bytes.Contains(text, []byte(`"__type"`)) {
			return wrong("no request ID")
		}
		return err
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		return checkXML(a, op, identified, wrong)
	}
	return checkBody(r, a, op, identified, wrong)
}

// requestID reports whether the headers of an answer have the ID of the request.
func requestID(h http.Header) bool {
	return h.Get("X-Amzn-Requestid") != "" || h.Get("X-Amz-Request-Id") != "" || h.Get("X-Amz-Requestid") != ""
}

// hasID reports whether an XML document has the ID of the request.
func hasID(text []byte) bool {
	return slices.ContainsFunc([]string{"<requestId>", "<RequestId>", "<RequestID>"}, func(name string) bool {
		_, after, found := bytes.Cut(text, []byte(name))
		return found && !bytes.HasPrefix(after, []byte("<"))
	})
}

// root returns the name of the first element of an XML document.
func root(text []byte) (string, error) {
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.RawToken()
		if err != nil {
			return "", err
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local, nil
		}
	}
}

// checkXML checks the document of a query protocol: its root is named after the operation.
func checkXML(a *smithyhttp.Response, op string, identified bool, wrong func(string) error) error {
	text, err := all(a)
	if err != nil {
		return err
	}
	name, err := root(text)
	switch want := op + "Response"; {
	case len(bytes.TrimSpace(text)) == 0:
		return wrong("it is empty")
	case err != nil:
		return wrong("not XML")
	case name != want:
		return wrong(fmt.Sprintf("the document is %.40q instead of %s", name, want))
	case !identified && !hasID(text):
		return wrong("no request ID")
	case deep(text):
		return wrong(fmt.Sprintf("more than %d levels of elements", maxDepth))
	}
	return nil
}

// deep reports whether elements are nested deeper than maxDepth.
func deep(text []byte) bool {
	depth := 0
	for depth <= maxDepth {
		_, after, found := bytes.Cut(text, []byte("<"))
		inside, next, closed := bytes.Cut(after, []byte(">"))
		if !found || !closed {
			return false
		}
		switch {
		case bytes.HasPrefix(inside, []byte("/")):
			depth--
		case !bytes.HasPrefix(inside, []byte("?")) && !bytes.HasPrefix(inside, []byte("!")) && !bytes.HasSuffix(inside, []byte("/")):
			depth++
		}
		text = next
	}
	return true
}

// checkBody checks an answer of a protocol in which the ID of the request is a header.
func checkBody(r *smithyhttp.Request, a *smithyhttp.Response, op string, identified bool, wrong func(string) error) error {
	if !identified {
		if _, err := all(a); err != nil { // a connection that ends within the answer is another error
			return err
		}
		return wrong("no request ID")
	}
	if op == "GetObject" { // any content
		return nil
	}
	const enough = 64
	start := make([]byte, enough)
	n, err := io.ReadFull(a.Body, start)
	start = start[:n]
	a.Body = rest{io.MultiReader(bytes.NewReader(start), a.Body), a.Body}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return &smithy.DeserializationError{Err: err}
	}
	start = bytes.TrimSpace(start)
	switch text := strings.ToLower(string(start)); {
	case len(start) == 0: // of operations without output
		return nil
	case strings.HasPrefix(text, "<!doctype"), strings.HasPrefix(text, "<html"):
		return wrong("a web page")
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") && start[0] != '{':
		return wrong("not a JSON object")
	case r.Header.Get("Smithy-Protocol") == "rpc-v2-cbor" && a.Header.Get("Smithy-Protocol") != "rpc-v2-cbor":
		return wrong("not CBOR")
	}
	return nil
}

// all reads the body of an answer, and leaves it to be read again.
func all(a *smithyhttp.Response) ([]byte, error) {
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, &smithy.DeserializationError{Err: err}
	}
	a.Body = rest{bytes.NewReader(text), a.Body}
	return text, nil
}
