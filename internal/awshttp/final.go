package awshttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"slices"
	"strings"
)

// finalError keeps the SDK from repeating a call.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// RetryableError is read by the retryer of the SDK.
func (*finalError) RetryableError() bool { return false }

// Final reports whether the error of a request stays the same if the request is repeated: a
// certificate that is not trusted, a host that does not speak TLS or HTTP, a proxy that refuses
// to connect, an answer that does not come from AWS. The SDK repeats all of them, as it repeats
// lost connections.
func Final(err error) bool {
	if err == nil {
		return false
	}
	return errors.As(err, new(*AnswerError)) || errors.As(err, new(*TooLargeError)) || untrusted(err) || hasNoProtocol(err)
}

// untrusted reports whether a certificate is not accepted.
func untrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError)) || errors.As(err, new(x509.SystemRootsError)) ||
		errors.As(err, new(tls.RecordHeaderError))
}

// hasNoProtocol reports whether client and server have no protocol in common, or a proxy refuses
// the request. Package net/http has no types for these errors.
func hasNoProtocol(err error) bool {
	var request *url.Error
	if !errors.As(err, &request) {
		return false
	}
	text := request.Err.Error()
	return text == "Forbidden" || slices.ContainsFunc([]string{ // the first is of a proxy, as the last
		"unsupported protocol scheme", "no Host in request URL", "invalid URL",
		"server gave HTTP response to HTTPS client", "malformed HTTP", "server response headers exceeded",
		"tls: server selected unsupported protocol version", "tls: no cipher suite supported",
		"remote error: tls: handshake failure", "remote error: tls: protocol version not supported", "remote error: tls: unrecognized name",
		"remote error: tls: bad certificate", "remote error: tls: unknown certificate authority", "remote error: tls: certificate required",
		"remote error: tls: insufficient security level", "remote error: tls: no application protocol",
		"Proxy Authentication Required",
	}, func(s string) bool { return strings.Contains(text, s) })
}
