package cloud

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// How long after its signature AWS accepts a request ("Elements of an AWS API request
// signature", IAM user guide; RequestTimeTooSkewed in the API reference of S3). A request
// may be on its way for as long: in a proxy, or in the kernel of a machine that has lost its
// network, which sends it again even if the process was killed.
const (
	signatureValidity   = 5 * time.Minute
	signatureValidityS3 = 15 * time.Minute
)

// lateness is what a run knows of requests that delete something and may reach AWS later.
type lateness struct {
	mu    sync.Mutex
	sent  map[int]time.Duration // how long the requests that are not answered yet may take
	last  int                   // number in sent
	until []deadline            // of the requests whose answers are lost
}

// deadline is when AWS does not accept a request any more.
type deadline struct {
	since time.Time
	after time.Duration
}

// left returns how long a request to delete something may still reach AWS, if this run
// sends no other one.
func (l *Lock) left() (left time.Duration) {
	l.late.mu.Lock()
	defer l.late.mu.Unlock()
	for _, d := range l.late.until {
		left = max(left, d.after-min(l.elapsed(d.since), l.clock.Since(d.since)))
	}
	for _, d := range slices.Collect(maps.Values(l.late.sent)) {
		left = max(left, d+l.interval()) // it is sent before the next heartbeat
	}
	return left
}

// announced reports whether the last heartbeat says how long the requests that are to be
// sent may take.
func (l *Lock) announced() bool {
	l.late.mu.Lock()
	defer l.late.mu.Unlock()
	for _, d := range l.late.sent {
		if l.last.late < d+l.last.every {
			return false
		}
	}
	return true
}

// expect records that a request will be sent that AWS accepts for that time. The returned
// function has to be called with whether AWS has answered it, or it was not sent.
func (l *Lock) expect(validity time.Duration) (done func(sent time.Time, answered bool)) {
	l.late.mu.Lock()
	defer l.late.mu.Unlock()
	if l.late.sent == nil {
		l.late.sent = map[int]time.Duration{}
	}
	l.late.last++
	n := l.late.last
	l.late.sent[n] = validity
	return func(sent time.Time, answered bool) {
		l.late.mu.Lock()
		defer l.late.mu.Unlock()
		delete(l.late.sent, n)
		if !answered {
			l.late.until = append(l.late.until, deadline{sent, validity})
		}
	}
}

// inherit takes over from the run that held the lock before. Its requests to delete
// something may still reach AWS, and so may those to create something: with the same client
// tokens, AWS treats them as requests of this run. If the other run deletes something, its
// tokens may be those of resources that do not exist any more.
func (l *Lock) inherit(h Holder) {
	l.late.mu.Lock()
	defer l.late.mu.Unlock()
	if left := h.Late - h.age; left > 0 {
		l.late.until = append(l.late.until, deadline{l.clock.Now(), left})
	}
	if left := l.scaled(signatureValidity) + h.interval() - h.age; left > 0 && l.self.Command == DeleteCommand && (!h.Released || h.Unknown) {
		l.late.until = append(l.late.until, deadline{l.clock.Now(), left}) // it may create something after the deletion
	}
	l.self.Tokens = ""
	if l.self.Command != DeleteCommand && h.Late == 0 && !h.Released && h.age < l.scaled(signatureValidity)+h.interval() {
		l.self.Tokens = cmp.Or(h.Tokens, h.Run)
	}
}

// AwaitRequests waits until no request that does harm can reach AWS later. told is
// called with how long that takes, if it takes time.
func (l *Lock) AwaitRequests(ctx context.Context, told func(left time.Duration)) {
	if left := l.left(); left > 0 {
		told(left)
		_ = l.clock.Sleep(ctx, left) // an interrupted run leaves its record
	}
}

// HarmsLate reports whether a request of an operation does harm when it arrives after another
// run has taken the lock over: it deletes something that the other run may rely on, has fewer
// machines, or replaces or stops machines again.
func HarmsLate(op string) bool {
	return slices.ContainsFunc([]string{"Delete", "Terminate", "Release", "Detach", "Disassociate", "Deregister", "Remove"}, func(p string) bool {
		return strings.HasPrefix(op, p)
	}) || slices.Contains([]string{
		"UpdateAutoScalingGroup",
		"UpdateNodegroupConfig",
		"UpdateNodegroupVersion",
		"SetDesiredCapacity",
		"StopInstances",
		"StartInstanceRefresh",
		"CancelInstanceRefresh",
	}, op)
}

// NeverLate returns a context for a request of another operation that does harm when it arrives
// late, such as one that replaces a parameter on which the next machine depends.
func NeverLate(ctx context.Context) context.Context {
	return context.WithValue(ctx, neverLateKey, true)
}

// validity returns how long AWS accepts a request of a run; 0 if it does no harm when it
// arrives after another run has taken the lock over. These do none outside a deletion: rules of
// security groups and boot data are restored by the next run.
func (c *Clients) validity(ctx context.Context, service, op string, in any) time.Duration {
	harms := HarmsLate(op)
	if c.Lock.self.Command == DeleteCommand {
		harms = harms || strings.HasPrefix(op, "Revoke")
	} else if c.isBootData(in) {
		harms = false
	}
	switch {
	case !harms && ctx.Value(neverLateKey) == nil:
		return 0
	case service == s3.ServiceID:
		return c.Lock.scaled(signatureValidityS3)
	}
	return c.Lock.scaled(signatureValidity)
}

// isBootData reports whether a request deletes boot data of machines.
func (c *Clients) isBootData(in any) bool {
	switch in := in.(type) {
	case *s3.DeleteObjectInput:
		return true
	case *ssm.DeleteParameterInput:
		return !strings.HasPrefix(aws.ToString(in.Name), c.ParameterPath(""))
	}
	_, secret := in.(*secretsmanager.DeleteSecretInput) // only boot data is in secrets
	return secret
}

// scaled shortens a duration as LockOptions.ConsistencyDelay shortens its default.
func (l *Lock) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(l.delay) / float64(ConsistencyDelay))
}

// arrived reports whether a request that ended with err does not reach AWS later: AWS has
// answered it, or it was not sent.
func arrived(err error) bool {
	var answer *smithyhttp.ResponseError
	return err == nil || Code(err) != "" || errors.As(err, &answer) || NotSent(err)
}
