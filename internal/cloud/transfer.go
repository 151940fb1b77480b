package cloud

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// transfers reports whether the requests or answers of an operation have the content of an object,
// which may take long on a slow connection.
func transfers(op string) bool { return op == "PutObject" || op == "GetObject" }

// transferred is answered for a call with the content of an object: the attempt may last as long as
// the content moves, and answerTimeout counts from its last part.
func (c *Clients) transferred(
	ctx context.Context,
	in middleware.FinalizeInput,
	next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
	attempt, progress := c.Clock.Watch(ctx, answerTimeout, errNoAnswer)
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if body, ok := r.GetStream().(io.ReadSeeker); ok {
			if r, err = r.SetStream(&sending{body, progress}); err != nil {
				progress.Stop()
				return out, md, err
			}
			in.Request = r
		}
	}
	out, md, err = next.HandleFinalize(attempt, in)
	if o, ok := out.Result.(*s3.GetObjectOutput); ok && err == nil {
		o.Body = &content{o.Body, progress} // the attempt ends when the caller has read it
		return out, md, nil
	}
	if err != nil && attempt.Err() != nil && ctx.Err() == nil {
		err = &smithyhttp.RequestSendError{Err: errNoAnswer} // as in answered
	}
	progress.Stop()
	return out, md, err
}

// sending is the content of an object that is sent.
type sending struct {
	io.ReadSeeker
	progress *clock.Watch
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	s.progress.Touch()
	return s.ReadSeeker.Read(p)
}

// content is the content of an object, which comes after the answer.
type content struct {
	io.ReadCloser
	progress *clock.Watch
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	c.progress.Touch()
	return c.ReadCloser.Read(p)
}

// Close implements io.Closer.
func (c *content) Close() error {
	defer c.progress.Stop()
	return c.ReadCloser.Close()
}
