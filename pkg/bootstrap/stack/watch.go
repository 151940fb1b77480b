package stack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

const (
	// pollLeast and pollMost limit the time between two reads of the stack.
	pollLeast = 2 * time.Second
	pollMost  = 5 * time.Second
	// heartbeat is how often Options.Progress is called.
	heartbeat = 30 * time.Second
	// idleChecks is how often the stack may appear idle before there is an event: the status
	// may be older than the request.
	idleChecks = 3
	// outageTimeout is how long calls may fail before a wait gives up.
	outageTimeout = 5 * time.Minute
	// longest is the maximum duration of an operation, as in upstream.
	longest = 30 * time.Minute
)

// errTooLong means that an operation exceeded the maximum duration.
var errTooLong = errors.New("the operation has not ended within 30 minutes")

// watch waits until no operation on the stack is in progress, and returns the stack, or
// nil if it was deleted, and the events of the operation. It reports events while it
// waits.
func (s *Stack) watch(ctx context.Context, id, token string) (*types.Stack, []Event, error) {
	w := &watcher{s: s, id: id, token: token, seen: map[string]bool{}, began: s.clock.Now()}
	w.beat, w.reached = w.began, w.began
	for pause := pollLeast; ; pause = min(pause*5/4, pollMost) {
		now, done, err := w.poll(ctx)
		if done || err != nil {
			return now, w.events, err
		}
		w.reportProgress()
		if err := s.clock.Sleep(ctx, pause); err != nil {
			return nil, w.events, err
		}
	}
}

// poll reads the stack once and reports whether the operation has ended. A temporary
// failure of calls is not an error.
func (w *watcher) poll(ctx context.Context) (now *types.Stack, done bool, err error) {
	now, err = w.s.look(ctx, w.id)
	if err == nil {
		err = w.read(ctx)
	}
	w.polls++
	switch {
	case stopped(ctx, err):
		return nil, false, context.Cause(ctx)
	case err == nil && w.atRest(now):
		return now, true, nil
	case err == nil:
		w.reached = w.s.clock.Now()
	case cloud.Rejected(err) && !cloud.Throttled(err), w.s.clock.Since(w.reached) > outageTimeout:
		return nil, false, err
	}
	if w.s.clock.Since(w.began) > longest {
		return nil, false, errTooLong
	}
	return nil, false, nil
}

// atRest reports whether the operation has ended.
func (w *watcher) atRest(now *types.Stack) bool {
	return (now == nil || !busy(now.StackStatus)) && (len(w.events) > 0 || w.denied || w.polls >= idleChecks)
}

// watcher follows one operation on a stack.
type watcher struct {
	s         *Stack
	id, token string // token may be "" if unknown
	seen      map[string]bool
	events    []Event
	denied    bool // no permission to read events
	polls     int

	began, beat, reached time.Time
}

// read reports new events.
func (w *watcher) read(ctx context.Context) error {
	if w.denied {
		return nil
	}
	fresh, err := w.fresh(ctx)
	switch {
	case notFound(err):
		return nil // look reports the error
	case cloud.Denied(err):
		w.denied = true
		w.s.o.Note("cannot show events of the stack: no permission for cloudformation:DescribeStackEvents")
		return nil
	case err != nil:
		return err
	}
	slices.Reverse(fresh)
	slices.SortStableFunc(fresh, func(x, y *types.StackEvent) int { return aws.ToTime(x.Timestamp).Compare(aws.ToTime(y.Timestamp)) })
	for _, e := range fresh {
		w.seen[aws.ToString(e.EventId)] = true
		w.events = append(w.events, event(e))
		w.s.o.Event(event(e))
		w.beat = w.s.clock.Now()
	}
	return nil
}

// fresh returns the new events of the operation, the latest first. Pages are counted from
// the latest event and shift during reading, so an event may come twice, or after an
// older one.
func (w *watcher) fresh(ctx context.Context) (list []*types.StackEvent, err error) {
	here := map[string]bool{}
	pages := cfn.NewDescribeStackEventsPaginator(w.s.cfn, &cfn.DescribeStackEventsInput{StackName: &w.id})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range out.StackEvents {
			e := &out.StackEvents[i]
			id := aws.ToString(e.EventId)
			switch {
			case w.seen[id]:
				return list, nil
			case begins(e) && w.token != "" && aws.ToString(e.ClientRequestToken) != "" && *e.ClientRequestToken != w.token:
				return nil, nil // an event of an earlier operation: ours has not begun yet
			case !here[id]:
				here[id] = true
				list = append(list, e)
			}
			if begins(e) {
				return list, nil
			}
		}
	}
	return list, nil
}

func ofStack(e *types.StackEvent) bool {
	return aws.ToString(e.PhysicalResourceId) == aws.ToString(e.StackId) && aws.ToString(e.ResourceType) == "AWS::CloudFormation::Stack"
}

func begins(e *types.StackEvent) bool { return event(e).Begins() }

func event(e *types.StackEvent) Event {
	return Event{
		At: aws.ToTime(e.Timestamp), Logical: aws.ToString(e.LogicalResourceId), Type: aws.ToString(e.ResourceType), Physical: aws.ToString(e.PhysicalResourceId),
		Status: e.ResourceStatus, Reason: aws.ToString(e.ResourceStatusReason), Stack: ofStack(e),
	}
}

// still calls Options.Progress if there was no event for a while.
func (w *watcher) reportProgress() {
	if w.s.clock.Since(w.beat) < heartbeat {
		return
	}
	w.beat = w.s.clock.Now()
	latest := map[string]Event{}
	var order []string
	for _, e := range w.events {
		if e.Stack {
			continue
		}
		if _, known := latest[e.Logical]; !known {
			order = append(order, e.Logical)
			latest[e.Logical] = e
		}
		if before := latest[e.Logical]; before.Status != e.Status {
			latest[e.Logical] = e
		}
	}
	var working []Event
	for _, id := range order {
		if strings.HasSuffix(string(latest[id].Status), "_IN_PROGRESS") {
			working = append(working, latest[id])
		}
	}
	w.s.o.Progress(working)
}

// history returns the events of the last operation on a stack, without reporting them.
func (s *Stack) history(ctx context.Context, id string) []Event {
	quiet := *s
	quiet.o.Event, quiet.o.Note = func(Event) {}, func(string) {}
	w := &watcher{s: &quiet, id: id, seen: map[string]bool{}}
	if err := w.read(ctx); err != nil {
		return nil // the events only explain another error
	}
	return w.events
}

// rootCauses returns the failures that are not consequences of others.
func rootCauses(events []Event) (list []Event) {
	told := map[string]bool{}
	for _, e := range events {
		if e.Failed() && !e.Stack && !strings.Contains(strings.ToLower(e.Reason), "cancelled") && !told[e.Logical+e.Reason] {
			told[e.Logical+e.Reason] = true
			list = append(list, e)
		}
	}
	return list
}
