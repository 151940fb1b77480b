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

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

const (
	// pollLeast and pollMost bound the time between two looks at a stack.
	pollLeast = 2 * time.Second
	pollMost  = 5 * time.Second
	// heartbeat is how often Options.Still is told what is waited for.
	heartbeat = 30 * time.Second
	// unheard is how often a stack may be at rest before AWS tells of an event:
	// what it says may be from before the request.
	unheard = 3
	// patience is how long AWS may be out of reach while a stack is waited for.
	patience = 5 * time.Minute
	// longest is how long a stack may take: upstream's limit.
	longest = 30 * time.Minute
)

// errTooLong says that AWS took longer than it ever should.
var errTooLong = errors.New("AWS has been at it for 30 minutes")

// watch waits until nobody is at work on a stack any more, and returns what it
// is then: nil when it is gone. Events are told on the way; it returns those
// of the operation that it waited for.
func (s *Stack) watch(ctx context.Context, id, token string) (*types.Stack, []Event, error) {
	w := &watcher{s: s, id: id, token: token, seen: map[string]bool{}, began: s.clock.Now()}
	w.beat, w.reached = w.began, w.began
	for pause := pollLeast; ; pause = min(pause*5/4, pollMost) {
		now, done, err := w.poll(ctx)
		if done || err != nil {
			return now, w.events, err
		}
		w.still()
		if err := s.clock.Sleep(ctx, pause); err != nil {
			return nil, w.events, err
		}
	}
}

// poll looks at the stack once, and reports whether AWS is done with it. That
// AWS is out of reach for a while is no error.
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
	case cloud.Rejected(err) && !cloud.Throttled(err), w.s.clock.Since(w.reached) > patience:
		return nil, false, err
	}
	if w.s.clock.Since(w.began) > longest {
		return nil, false, errTooLong
	}
	return nil, false, nil
}

// atRest reports whether AWS is done.
func (w *watcher) atRest(now *types.Stack) bool {
	return (now == nil || !busy(now.StackStatus)) && (len(w.events) > 0 || w.blind || w.polls >= unheard)
}

// watcher follows one operation on a stack.
type watcher struct {
	s         *Stack
	id, token string // the token may be "" where it is not known
	seen      map[string]bool
	events    []Event
	blind     bool // AWS does not let us read events
	polls     int

	began, beat, reached time.Time
}

// read tells the events that are new.
func (w *watcher) read(ctx context.Context) error {
	if w.blind {
		return nil
	}
	fresh, err := w.fresh(ctx)
	switch {
	case missing(err):
		return nil // look says so
	case cloud.Denied(err):
		w.blind = true
		w.s.o.Note("what happens to the stack cannot be told: no permission for cloudformation:DescribeStackEvents")
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

// fresh returns the events of the operation that are new, the latest first.
// Pages are counted from the latest and shift while more happens: an event may
// come twice, or after an older one.
func (w *watcher) fresh(ctx context.Context) (list []*types.StackEvent, err error) {
	here := map[string]bool{}
	pages := cfn.NewDescribeStackEventsPaginator(w.s.cfn, &cfn.DescribeStackEventsInput{StackName: &w.id})
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
				return nil, nil // what came before ours: ours has not begun yet
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

// still gives a sign of life when there was none for a while.
func (w *watcher) still() {
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
	w.s.o.Still(working)
}

// history returns the events of the last operation on a stack, without telling
// anybody.
func (s *Stack) history(ctx context.Context, id string) []Event {
	quiet := *s
	quiet.o.Event, quiet.o.Note = func(Event) {}, func(string) {}
	w := &watcher{s: &quiet, id: id, seen: map[string]bool{}}
	if err := w.read(ctx); err != nil {
		return nil // that it cannot be told why something is as it is, is no failure of its own
	}
	return w.events
}

// rootCauses picks the failures that are not consequences of others.
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
