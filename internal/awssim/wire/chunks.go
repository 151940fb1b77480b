package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// readChunks replaces a body in the encoding aws-chunked by its content. A chunk is its size in
// hexadecimal digits, perhaps a signature, and its bytes; after the last one, which is empty, there
// may be headers, such as a checksum ("Signature calculations for trailing headers" in the
// reference of S3). Signatures are not checked, as those of other requests.
func (c *call) readChunks() error {
	in := bufio.NewReader(bytes.NewReader(c.body))
	var content bytes.Buffer
	for {
		line, err := chunkLine(in)
		if err != nil {
			return err
		}
		digits, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseInt(digits, 16, 32)
		if err != nil || size < 0 {
			return incomplete("%q is not the size of a chunk", digits)
		}
		if size == 0 {
			break
		}
		if _, err := io.CopyN(&content, in, size); err != nil {
			return incomplete("a chunk has less than %d bytes", size)
		}
		if line, err := chunkLine(in); err != nil || line != "" {
			return incomplete("a chunk has more than %d bytes", size)
		}
	}
	if want := c.Header.Get("X-Amz-Decoded-Content-Length"); want != strconv.Itoa(content.Len()) {
		return incomplete("the chunks have %d bytes, and X-Amz-Decoded-Content-Length is %q", content.Len(), want)
	}
	if err := c.readTrailer(in); err != nil {
		return err
	}
	c.body = content.Bytes()
	c.Header.Set("Content-Length", strconv.Itoa(content.Len()))
	if rest := strings.TrimPrefix(strings.TrimPrefix(c.Header.Get("Content-Encoding"), "aws-chunked"), ","); rest == "" {
		c.Header.Del("Content-Encoding")
	} else {
		c.Header.Set("Content-Encoding", strings.TrimSpace(rest))
	}
	return nil
}

// readTrailer reads the headers after the last chunk. All that are announced have to be there.
func (c *call) readTrailer(in *bufio.Reader) error {
	trailer := http.Header{}
	for {
		line, err := chunkLine(in)
		if err != nil || line == "" {
			break // the end of a body without a trailer, too
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return incomplete("%q is not a header", line)
		}
		trailer.Set(name, strings.TrimSpace(value))
	}
	for name := range strings.SplitSeq(c.Header.Get("X-Amz-Trailer"), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if trailer.Get(name) == "" {
			return core.Fail("MalformedTrailerError", "the request has no trailing header %s", name)
		}
		c.Header.Set(name, trailer.Get(name))
	}
	return nil
}

// chunkLine reads a line without its end.
func chunkLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", incomplete("it ends within a line")
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

func incomplete(format string, args ...any) error {
	return core.Fail("IncompleteBody", "The request body is not in the encoding aws-chunked: "+format, args...)
}
