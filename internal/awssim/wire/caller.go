package wire

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
)

// caller has the parts of the signature of a request.
type caller struct {
	key     string // access key; "" if the request is not signed
	region  string
	service string // name in the scope, such as "ec2"
}

// callerOf reads the scope of the signature, from the header or from the query of a
// presigned request.
func callerOf(r *http.Request) (c caller) {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	if credential == "" {
		credential = r.URL.Query().Get("X-Amz-Credential")
	}
	// key/date/region/service/aws4_request
	if parts := strings.Split(strings.TrimSpace(credential), "/"); len(parts) == 5 {
		c.key, c.region, c.service = parts[0], parts[2], parts[3]
	}
	return c
}

// newID returns a random UUID, as most services name requests.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
