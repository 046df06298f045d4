package webhook

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/vault"
)

const (
	// perNode and perEndpoint bound what is under way at a time: one slow
	// receiver holds up nobody but itself.
	perNode     = 64
	perEndpoint = 4
	// batch is how many deliveries are read at once, enough how many of one
	// endpoint are kept in memory.
	batch  = 500
	enough = 200
	// lookAnyway is when the store is looked into although nothing is expected.
	lookAnyway = time.Hour
	lookAgain  = 5 * time.Second
)

// Outbox knows the deliveries that are to be sent.
type Outbox interface {
	// DueDeliveries lists those whose time has come, the earliest first, without
	// those of the given webhooks.
	DueDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]Parcel, error)
	// NextDelivery tells when the first is due that is due after a time; nil when
	// there is none.
	NextDelivery(ctx context.Context, after time.Time) (*time.Time, error)
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
// was under way is sent again with the same bytes.
type Courier struct {
	outbox Outbox
	client Client
	vault  Opener
	log    *slog.Logger

	wake    chan struct{}
	reports chan outcome
	sending sync.WaitGroup

	// Only the goroutine of Run touches what follows.
	endpoints map[string]*endpoint
	hosts     map[hostKey]*host
	known     map[string]bool // deliveries that are queued or under way
	first     map[lane]bool   // lanes with a first attempt under way
	flying    int
	queued    int
	more      bool // the store has more that is due than was taken
	nextAt    time.Time
}

// outcome is an attempt that has ended.
type outcome struct {
	parcel Parcel
	ok     bool
	nextAt *time.Time
}

// NewCourier makes a courier.
func NewCourier(outbox Outbox, client Client, vault Opener, log *slog.Logger) *Courier {
	return &Courier{
		outbox: outbox, client: client, vault: vault, log: log,
		wake: make(chan struct{}, 1), reports: make(chan outcome, perNode),
		endpoints: map[string]*endpoint{}, hosts: map[hostKey]*host{}, known: map[string]bool{}, first: map[lane]bool{},
	}
}

// Wake says that there may be something to send.
func (c *Courier) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run sends until the context ends. Attempts under way are then ended: they are
// made again after the next start.
func (c *Courier) Run(ctx context.Context) error {
	defer c.sending.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
			c.collect(ctx)
		case <-timer.C:
			c.collect(ctx)
		case o := <-c.reports:
			c.ended(o)
			if c.more && c.queued < batch/2 {
				c.collect(ctx)
			}
		}
		timer.Reset(max(0, min(time.Until(c.nextAt), c.dispatch(ctx))))
	}
}

// collect takes what is due from the store and works out when to look again.
func (c *Courier) collect(ctx context.Context) {
	now := clock.Now()
	due, err := c.outbox.DueDeliveries(ctx, now, c.passOver(now), batch)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Error("cannot read the deliveries that are due", "error", err)
		}
		c.nextAt = now.Add(time.Second)
		return
	}
	for _, p := range due {
		if !c.known[p.DeliveryID] {
			c.known[p.DeliveryID] = true
			e := c.endpoint(p.WebhookID)
			e.queue = append(e.queue, p)
			c.queued++
		}
	}
	c.more = len(due) == batch
	c.nextAt = now.Add(lookAnyway)
	if next, err := c.outbox.NextDelivery(ctx, now); err != nil {
		c.nextAt = now.Add(lookAgain)
	} else if next != nil && next.Before(c.nextAt) {
		c.nextAt = *next
	}
}

// passOver lists the webhooks of which enough is in memory, or which are not
// tried for a while.
func (c *Courier) passOver(now time.Time) []string {
	var ids []string
	for id, e := range c.endpoints {
		if len(e.queue) >= enough || e.closed(now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// dispatch starts as many attempts as may be under way, in turns between the
// endpoints. It answers how long to wait for what is held back for a moment.
func (c *Courier) dispatch(ctx context.Context) time.Duration {
	now := clock.Now()
	wait := lookAnyway
	for progress := true; progress; {
		progress = false
		for id, e := range c.endpoints {
			if c.flying >= perNode {
				return wait
			}
			p, again, ok := c.pick(e, now)
			wait = min(wait, again)
			if ok {
				c.launch(ctx, p)
				progress = true
			}
			if e.idle(now) {
				delete(c.endpoints, id)
			}
		}
	}
	return wait
}

// pick takes the next delivery of an endpoint that may be sent now.
func (c *Courier) pick(e *endpoint, now time.Time) (Parcel, time.Duration, bool) {
	if e.closed(now) {
		// What is in memory may be stale by then.
		for _, p := range e.queue {
			delete(c.known, p.DeliveryID)
		}
		c.queued -= len(e.queue)
		e.queue = nil
		return Parcel{}, e.openAt.Sub(now), false
	}
	if e.flying >= e.most() {
		return Parcel{}, lookAnyway, false
	}
	for i, p := range e.queue {
		key, ordered := p.lane()
		if ordered && c.first[key] {
			continue
		}
		if wait := c.host(p).reserve(now); wait > 0 {
			return Parcel{}, wait, false
		}
		e.queue = append(e.queue[:i], e.queue[i+1:]...)
		c.queued--
		if ordered {
			c.first[key] = true
		}
		return p, lookAnyway, true
	}
	return Parcel{}, lookAnyway, false
}

func (c *Courier) launch(ctx context.Context, p Parcel) {
	c.flying++
	c.endpoint(p.WebhookID).flying++
	c.sending.Go(func() {
		report, counts := c.attempt(ctx, p)
		if !counts || !c.record(ctx, report) {
			return // the service stops
		}
		select {
		case c.reports <- outcome{p, report.Status == Delivered, report.NextAt}:
		case <-ctx.Done():
		}
	})
}

// record writes what came of an attempt, again and again while the store does
// not answer.
func (c *Courier) record(ctx context.Context, report Report) bool {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		// What the receiver was told is written also while the service stops.
		err := c.outbox.ReportDelivery(context.WithoutCancel(ctx), report)
		if err == nil {
			return true
		}
		c.log.Error("cannot record a delivery; trying again", "delivery_id", report.Parcel.DeliveryID, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// ended takes note of an attempt that is over.
func (c *Courier) ended(o outcome) {
	c.flying--
	delete(c.known, o.parcel.DeliveryID)
	if key, ordered := o.parcel.lane(); ordered {
		delete(c.first, key)
	}
	now := clock.Now()
	e := c.endpoint(o.parcel.WebhookID)
	e.flying--
	e.note(o.ok, now)
	c.host(o.parcel).note(o.ok)
	if e.closed(now) {
		c.lookAt(e.openAt)
	}
	if o.nextAt != nil {
		c.lookAt(*o.nextAt)
	}
}

// lookAt makes sure that the store is looked into by that time.
func (c *Courier) lookAt(at time.Time) {
	if at.Before(c.nextAt) {
		c.nextAt = at
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

// hostKey is a host as one workspace reaches it.
type hostKey struct{ workspaceID, name string }

func (c *Courier) host(p Parcel) *host {
	key := hostKey{workspaceID: p.WorkspaceID}
	if u, err := url.Parse(p.URL); err == nil {
		key.name = u.Host
	}
	h := c.hosts[key]
	if h == nil {
		c.forgetHosts()
		h = &host{health: 1}
		c.hosts[key] = h
	}
	return h
}

// forgetHosts keeps the memory of hosts small.
func (c *Courier) forgetHosts() {
	const most = 10_000
	if len(c.hosts) < most {
		return
	}
	for key, h := range c.hosts {
		if h.healthy() {
			delete(c.hosts, key)
		}
	}
}
