package cost

import (
	"context"
	"errors"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
)

// List is the price list of a region. It asks for each price once, all at the same time.
type List struct {
	c     *cloud.Clients
	cache *Cache

	mu      sync.Mutex
	answers map[Product]*answer
	running crash.Group
}

// answer is a price, or why there is none.
type answer struct {
	price Price
	err   error
	stale error // why a price from the cache, which is too old, could not be asked for again
}

// NewList returns the price list of the region of the clients.
func NewList(c *cloud.Clients, cache *Cache) *List {
	return &List{c: c, cache: cache, answers: map[Product]*answer{}}
}

// ask starts to ask for the prices of items, unless it has done so before.
func (l *List) ask(ctx context.Context, items []Item) {
	for _, i := range items {
		if i.NotCounted {
			continue
		}
		l.mu.Lock()
		known := l.answers[i.Product] != nil
		if !known {
			l.answers[i.Product] = &answer{}
		}
		a := l.answers[i.Product]
		l.mu.Unlock()
		if !known {
			l.running.Go(func() { a.find(ctx, l, i.Product) })
		}
	}
}

// find finds a price in the cache or in AWS's list.
func (a *answer) find(ctx context.Context, l *List, p Product) {
	old, found, isFresh := l.cache.get(p)
	if isFresh {
		if a.price = old.Price; old.None {
			a.err = errNoPrice
		}
		return
	}
	source := fetch
	if p.Spot != "" {
		source = fetchSpot
	}
	a.price, a.err = source(ctx, l.c, p)
	if ctx.Err() != nil && a.err != nil {
		a.err = context.Cause(ctx)
	}
	switch {
	case a.err == nil || errors.Is(a.err, errNoPrice):
		if !a.price.AtMost {
			l.cache.put(p, a.price, a.err != nil)
		}
	case found && !old.None:
		a.price, a.err, a.stale = old.Price, nil, a.err
	}
}

// wait waits for all prices.
func (l *List) wait() {
	l.running.Wait()
	l.cache.save()
}

// answer returns the price of a product. It is called after wait.
func (l *List) answer(p Product) *answer { return l.answers[p] }
