package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/vault"
)

const (
	// At most maxInFlight requests are in flight, at most inFlightPerEndpoint of
	// them to one endpoint and maxSlow to slow ones, so that a slow receiver delays
	// only itself.
	maxInFlight         = 64
	inFlightPerEndpoint = 4
	maxSlow             = maxInFlight / 2
	slowAfter           = 2 * time.Second
	// batch is the number of deliveries read at a time, maxPerEndpoint the number queued in memory
	// for one endpoint, so that one with much to send does not hide the others, and maxQueued
	// roughly the number queued for all.
	batch          = 500
	maxPerEndpoint = 100
	maxQueued      = 10_000
	// maxExcluded is the number of webhooks that a read can exclude: with more, the statement would
	// be too deep for the database.
	maxExcluded = 1_000
	// pollInterval is how often the store is read even if nothing is expected,
	// retryInterval how soon it is read again after an error.
	pollInterval  = time.Minute
	retryInterval = time.Second
	// shutdownGrace is how long attempts in flight may continue at shutdown.
	shutdownGrace = 5 * time.Second
)

// Outbox stores the deliveries to send.
type Outbox interface {
	// DueDeliveries returns due deliveries, earliest first, except those of the given
	// webhooks.
	DueDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]Due, error)
	// NextDelivery returns the earliest due time after the given one, or nil if there
	// is none.
	NextDelivery(ctx context.Context, after time.Time) (*time.Time, error)
	// OutgoingDelivery returns a delivery as it has to be sent now, or nil if it must
	// not be sent anymore.
	OutgoingDelivery(ctx context.Context, workspaceID, deliveryID string) (*OutgoingDelivery, error)
	// ReportDelivery records an attempt and its consequences.
	ReportDelivery(ctx context.Context, r Report) error
}

// Client sends requests to endpoints.
type Client interface {
	Do(ctx context.Context, r egress.Request) (*egress.Response, error)
}

// Opener decrypts signing secrets.
type Opener interface {
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Sender sends deliveries until each has succeeded or used up its attempts. Its
// state is in the store: after a restart it continues, and sends deliveries that
// were in flight again with the same bytes. In memory it keeps only which
// deliveries are due. It reads each delivery right before sending it, so changing,
// disabling or deleting a webhook takes effect immediately.
type Sender struct {
	outbox Outbox
	client Client
	vault  Opener
	log    *slog.Logger

	wake    chan struct{}
	reports chan outcome
	sending sync.WaitGroup
	counts  *counts

	// The fields below belong to the goroutine of Run.
	endpoints     map[string]*endpoint // by webhook id
	waiting       map[string]*endpoint // those with queued deliveries
	hosts         map[hostKey]*host
	known         map[string]bool // deliveries that are queued or in flight
	firstAttempts map[lane]bool   // lanes with a first attempt in flight
	queued        int
	inFlight      int
	slow          int  // in flight to slow endpoints
	pollNow       bool // the store may have more due deliveries
	pollAt        time.Time
	forgetAt      time.Time
}

// NewSender returns a sender.
func NewSender(outbox Outbox, client Client, vault Opener, log *slog.Logger) *Sender {
	return &Sender{
		outbox: outbox, client: client, vault: vault, log: log,
		wake: make(chan struct{}, 1), reports: make(chan outcome, maxInFlight),
		endpoints: map[string]*endpoint{}, waiting: map[string]*endpoint{}, hosts: map[hostKey]*host{},
		known: map[string]bool{}, firstAttempts: map[lane]bool{}, counts: newCounts(),
	}
}

// Wake makes the sender look for due deliveries.
func (s *Sender) Wake() {
	pubsub.Signal(s.wake)
}

// Run sends deliveries until the context ends. Attempts in flight then have
// shutdownGrace to finish; the others are repeated after the next start.
func (s *Sender) Run(ctx context.Context) error {
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			limit := time.AfterFunc(shutdownGrace, cut)
			s.sending.Wait()
			limit.Stop()
			return nil
		case <-s.wake:
			s.pollNow = true
		case <-timer.C:
		case o := <-s.reports:
			s.finished(o)
		}
		timer.Reset(s.round(ctx, sending))
	}
}

// round records finished attempts, fetches due deliveries and starts attempts. It
// returns how long to wait until the next round.
func (s *Sender) round(ctx, sending context.Context) time.Duration {
	defer func() { s.counts.queued.Store(int64(s.queued)) }()
	for range len(s.reports) {
		s.finished(<-s.reports)
	}
	for {
		now := clock.Steady()
		if s.pollNow || !now.Before(s.pollAt) {
			s.fetchDue(ctx, now)
		}
		wait := s.dispatch(sending, now)
		if !s.pollNow {
			return max(0, min(s.pollAt.Sub(now), wait))
		}
	}
}

// fetchDue queues due deliveries from the store and sets the time of the next poll.
func (s *Sender) fetchDue(ctx context.Context, now time.Time) {
	s.pollNow = false
	s.pollAt = now.Add(pollInterval)
	s.forgetHealthy(now)
	for {
		passed := s.excluded(now)
		if s.queued >= maxQueued {
			break // the store is read again when the first endpoint's queue is empty
		}
		due, err := s.outbox.DueDeliveries(ctx, now, passed, batch)
		if err != nil {
			s.readFailed(ctx, err, now)
			return
		}
		before := s.queued
		for _, d := range due {
			s.enqueue(d, now)
		}
		if len(due) < batch || s.queued == before {
			break
		}
	}
	next, err := s.outbox.NextDelivery(ctx, now)
	if err != nil {
		s.readFailed(ctx, err, now)
	} else if next != nil {
		s.pollBy(*next)
	}
}

func (s *Sender) readFailed(ctx context.Context, err error, now time.Time) {
	if ctx.Err() == nil {
		s.log.Error("cannot read due deliveries; trying again", "error", err)
	}
	s.pollBy(now.Add(retryInterval))
}

// pollBy makes sure that the store is read by the given time.
func (s *Sender) pollBy(at time.Time) {
	if at.Before(s.pollAt) {
		s.pollAt = at
	}
}

// excluded returns the webhooks that have queued deliveries or are paused. Without
// them, a read returns new deliveries, and an endpoint with a long backlog does not
// hide the others.
func (s *Sender) excluded(now time.Time) []string {
	var ids []string
	for id, e := range s.endpoints {
		switch {
		case e.paused(now):
			s.pollBy(e.pausedUntil)
		case len(e.queue) > 0:
			e.more = true
		default:
			continue
		}
		if len(ids) < maxExcluded {
			ids = append(ids, id)
		}
	}
	return ids
}

// enqueue queues a delivery unless its endpoint's queue is full.
func (s *Sender) enqueue(d Due, now time.Time) {
	e := s.endpoint(d.WebhookID)
	switch {
	case s.known[d.DeliveryID], e.paused(now):
	case len(e.queue) >= maxPerEndpoint:
		e.more = true
	default:
		s.known[d.DeliveryID] = true
		e.host = d.host()
		e.queue = append(e.queue, d)
		s.waiting[d.WebhookID] = e
		s.queued++
	}
}

// forgetHealthy drops what is no longer worth knowing about endpoints and hosts.
func (s *Sender) forgetHealthy(now time.Time) {
	if now.Before(s.forgetAt) {
		return
	}
	s.forgetAt = now.Add(pollInterval)
	for id, e := range s.endpoints {
		if e.forgettable(now) {
			delete(s.endpoints, id)
		}
	}
	for key, h := range s.hosts {
		if h.forgettable(now) {
			delete(s.hosts, key)
		}
	}
}

func (s *Sender) endpoint(webhookID string) *endpoint {
	e := s.endpoints[webhookID]
	if e == nil {
		e = &endpoint{}
		s.endpoints[webhookID] = e
	}
	return e
}

func (s *Sender) host(key hostKey) *host {
	h := s.hosts[key]
	if h == nil {
		h = &host{health: 1}
		s.hosts[key] = h
	}
	return h
}
