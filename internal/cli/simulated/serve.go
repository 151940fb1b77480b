package simulated

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// farewell is how long requests may still take when a server ends.
const farewell = time.Second

// Serve serves the account to AWS clients until the context ends. The listener is that of the
// address listen. Serve closes it.
func (a *Account) Serve(ctx context.Context, listen string, l net.Listener) error {
	h, err := a.process.Handler()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := a.lock.write(served + "http://" + l.Addr().String()); err != nil {
		return errors.Join(err, l.Close())
	}
	s := &http.Server{Handler: onlyFor(listen, l, a.handler(h)), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := s.Shutdown(late); err != nil {
		return s.Close() // a request that is still open, such as one that waits for a fault
	}
	return nil
}
