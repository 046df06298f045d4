package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/vault"
)

const (
	// perNode and perEndpoint bound what is under way at a time: one slow
	// receiver holds up nobody but itself. Slow ones together get a part of the
	// places only.
	perNode     = 64
	perEndpoint = 4
	forSlow     = perNode / 2
	slowAfter   = 2 * time.Second
	// batch is how many deliveries are read at once, enough how many of one
	// endpoint are kept in memory, and mostQueued about how many of all.
	batch      = 500
	enough     = 100
	mostQueued = 10_000
	// mostPassed is how many webhooks a read can leave out.
	mostPassed = 1_000
	// lookAnyway is when the store is looked into although nothing is expected,
	// lookAgain when it could not be read.
	lookAnyway = time.Minute
	lookAgain  = time.Second
	// farewell is how long attempts may go on when the service stops.
	farewell = 5 * time.Second
)

// Outbox knows the deliveries that are to be sent.
type Outbox interface {
	// DueDeliveries lists those whose time has come, the earliest first, without
	// those of the given webhooks.
	DueDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]Due, error)
	// NextDelivery tells when the first is due that is due after a time; nil when
	// there is none.
	NextDelivery(ctx context.Context, after time.Time) (*time.Time, error)
	// Parcel reads a delivery as it is to be sent now; nil when it is not to be
	// sent any more.
	Parcel(ctx context.Context, workspaceID, deliveryID string) (*Parcel, error)
	// ReportDelivery records an attempt with what follows from it.
	ReportDelivery(ctx context.Context, r Report) error
}

// Client calls the outside.
type Client interface {
	Do(ctx context.Context, r egress.Request) (*egress.Response, error)
}

// Opener opens signing secrets.
type Opener interface {
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Courier sends deliveries until each has got through or every attempt has
// failed. What it knows is in the store: after a restart it goes on, and what
// was under way is sent again with the same bytes. In memory it only keeps which
// deliveries are due. What is sent is read at the moment of sending, so that a
// webhook that was changed, disabled or deleted is heeded at once.
type Courier struct {
	outbox Outbox
	client Client
	vault  Opener
	log    *slog.Logger

	wake    chan struct{}
	reports chan outcome
	sending sync.WaitGroup
	counts  *counts

	// Only the goroutine of Run touches what follows.
	endpoints map[string]*endpoint // by the ids of webhooks
	waiting   map[string]*endpoint // those with something queued
	hosts     map[hostKey]*host
	known     map[string]bool // deliveries that are queued or under way
	first     map[lane]bool   // lanes with a first attempt under way
	queued    int
	flying    int
	slow      int  // of those, to slow endpoints
	stale     bool // the store has something that was not taken yet
	nextAt    time.Time
	tidyAt    time.Time
}

// NewCourier makes a courier.
func NewCourier(outbox Outbox, client Client, vault Opener, log *slog.Logger) *Courier {
	return &Courier{
		outbox: outbox, client: client, vault: vault, log: log,
		wake: make(chan struct{}, 1), reports: make(chan outcome, perNode),
		endpoints: map[string]*endpoint{}, waiting: map[string]*endpoint{}, hosts: map[hostKey]*host{},
		known: map[string]bool{}, first: map[lane]bool{}, counts: newCounts(),
	}
}

// Wake says that there may be something to send.
func (c *Courier) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run sends until the context ends. Attempts under way may then come to their
// end for a little while; those that take longer are made again after the next
// start.
func (c *Courier) Run(ctx context.Context) error {
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			limit := time.AfterFunc(farewell, cut)
			c.sending.Wait()
			limit.Stop()
			return nil
		case <-c.wake:
			c.stale = true
		case <-timer.C:
		case o := <-c.reports:
			c.ended(o)
		}
		timer.Reset(c.round(ctx, sending))
	}
}

// round takes in what has ended, takes what is due and starts what may start. It
// answers how long nothing more is to be done.
func (c *Courier) round(ctx, sending context.Context) time.Duration {
	defer func() { c.counts.queued.Store(int64(c.queued)) }()
	for range len(c.reports) {
		c.ended(<-c.reports)
	}
	for {
		now := clock.Now()
		if c.stale || !now.Before(c.nextAt) {
			c.collect(ctx, now)
		}
		wait := c.dispatch(sending, now)
		if !c.stale {
			return max(0, min(c.nextAt.Sub(now), wait))
		}
	}
}

// collect takes what is due from the store and works out when to look again.
func (c *Courier) collect(ctx context.Context, now time.Time) {
	c.stale = false
	c.nextAt = now.Add(lookAnyway)
	c.forget(now)
	for {
		passed := c.passOver(now)
		if c.queued >= mostQueued {
			break // the first of them that is empty has the store looked into again
		}
		due, err := c.outbox.DueDeliveries(ctx, now, passed, batch)
		if err != nil {
			c.unreadable(ctx, err, now)
			return
		}
		before := c.queued
		for _, d := range due {
			c.enqueue(d, now)
		}
		if len(due) < batch || c.queued == before {
			break
		}
	}
	next, err := c.outbox.NextDelivery(ctx, now)
	if err != nil {
		c.unreadable(ctx, err, now)
	} else if next != nil {
		c.lookAt(*next)
	}
}

func (c *Courier) unreadable(ctx context.Context, err error, now time.Time) {
	if ctx.Err() == nil {
		c.log.Error("cannot read the deliveries that are due", "error", err)
	}
	c.lookAt(now.Add(lookAgain))
}

// lookAt makes sure that the store is looked into by that time.
func (c *Courier) lookAt(at time.Time) {
	if at.Before(c.nextAt) {
		c.nextAt = at
	}
}

// passOver lists the webhooks of which something is in memory, or which are not
// tried for a while. So what is read is new, but for what is under way, and no
// endpoint with much to send hides the others.
func (c *Courier) passOver(now time.Time) []string {
	var ids []string
	for id, e := range c.endpoints {
		switch {
		case e.closed(now):
			c.lookAt(e.openAt)
		case len(e.queue) > 0:
			e.more = true
		default:
			continue
		}
		if len(ids) < mostPassed {
			ids = append(ids, id)
		}
	}
	return ids
}

// enqueue takes a delivery in, unless enough of its endpoint is there.
func (c *Courier) enqueue(d Due, now time.Time) {
	e := c.endpoint(d.WebhookID)
	switch {
	case c.known[d.DeliveryID], e.closed(now):
	case len(e.queue) >= enough:
		e.more = true
	default:
		c.known[d.DeliveryID] = true
		e.host = d.host()
		e.queue = append(e.queue, d)
		c.waiting[d.WebhookID] = e
		c.queued++
	}
}

// forget keeps the memory of those that have failed small.
func (c *Courier) forget(now time.Time) {
	if now.Before(c.tidyAt) {
		return
	}
	c.tidyAt = now.Add(lookAnyway)
	for id, e := range c.endpoints {
		if e.forgettable(now) {
			delete(c.endpoints, id)
		}
	}
	for key, h := range c.hosts {
		if h.forgettable(now) {
			delete(c.hosts, key)
		}
	}
}

func (c *Courier) endpoint(webhookID string) *endpoint {
	e := c.endpoints[webhookID]
	if e == nil {
		e = &endpoint{}
		c.endpoints[webhookID] = e
	}
	return e
}

func (c *Courier) host(key hostKey) *host {
	h := c.hosts[key]
	if h == nil {
		h = &host{health: 1}
		c.hosts[key] = h
	}
	return h
}
