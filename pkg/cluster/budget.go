package cluster

import "sync"

// Budget is what the runs of several clusters share that go on at the same time: the number and the rate of
// their calls, for each account and region as AWS counts them. The zero value is ready for use.
type Budget struct {
	mu sync.Mutex
	by map[string]any
}

// Of returns the part for an account and region, which the first caller makes.
func (b *Budget) Of(key string, first func() any) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[string]any{}
	}
	part, ok := b.by[key]
	if !ok {
		part = first()
		b.by[key] = part
	}
	return part
}
