package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

type outcome struct {
	due Due
	// report is nil if nothing was sent: the delivery must not be sent anymore or,
	// with an error, could not be read.
	report *Report
	err    error
	slow   bool // whether the endpoint counted as slow when the attempt began
}

// dispatch starts as many attempts as the limits allow, round robin over the
// endpoints. It returns how long to wait for an endpoint that is throttled.
func (s *Sender) dispatch(ctx context.Context, now time.Time) time.Duration {
	wait := pollInterval
	for progress := true; progress; {
		progress = false
		for id, e := range s.waiting {
			if s.inFlight == maxInFlight {
				return wait
			}
			d, pause, ok := s.pick(e, now)
			wait = min(wait, pause)
			if !ok {
				continue
			}
			progress = true
			s.start(ctx, d, e)
			if len(e.queue) == 0 {
				delete(s.waiting, id)
				s.pollNow = s.pollNow || e.more
				e.more = false
			}
		}
	}
	return wait
}

// pick dequeues the endpoint's next delivery that may be sent now.
func (s *Sender) pick(e *endpoint, now time.Time) (Due, time.Duration, bool) {
	if e.inFlight >= e.limit() || e.slow && s.slow >= maxSlow {
		return Due{}, pollInterval, false
	}
	for i, d := range e.queue {
		key, ordered := d.lane()
		if ordered && s.firstAttempts[key] {
			continue
		}
		if wait := s.host(e.host).reserve(now); wait > 0 {
			return Due{}, wait, false
		}
		e.queue = slices.Delete(e.queue, i, i+1)
		s.queued--
		if ordered {
			s.firstAttempts[key] = true
		}
		return d, pollInterval, true
	}
	return Due{}, pollInterval, false
}

func (s *Sender) start(ctx context.Context, d Due, e *endpoint) {
	o := outcome{due: d, slow: e.slow}
	s.inFlight++
	e.inFlight++
	if o.slow {
		s.slow++
	}
	s.counts.inFlight.Add(1)
	s.sending.Go(func() {
		defer s.counts.inFlight.Add(-1)
		if o.report, o.err = s.deliver(ctx, d); ctx.Err() == nil {
			s.reports <- o // the buffer has room for every attempt in flight
		}
	})
}

func (s *Sender) deliver(ctx context.Context, d Due) (*Report, error) {
	delivery, err := s.outbox.OutgoingDelivery(ctx, d.WorkspaceID, d.DeliveryID)
	if err != nil || delivery == nil {
		return nil, err
	}
	report, err := s.attempt(ctx, *delivery)
	if err != nil {
		return nil, err
	}
	s.counts.attempt(report)
	s.record(ctx, report)
	return &report, nil
}

// record stores the result of an attempt and retries until the store accepts it.
func (s *Sender) record(ctx context.Context, report Report) {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		// A result is recorded even during a shutdown: the receiver has the event.
		err := s.outbox.ReportDelivery(context.WithoutCancel(ctx), report)
		if err == nil {
			return
		}
		s.log.Error("cannot record a delivery attempt; trying again", "delivery_id", report.OutgoingDelivery.DeliveryID, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (s *Sender) finished(o outcome) {
	now := clock.Steady()
	e := s.endpoint(o.due.WebhookID)
	s.inFlight--
	e.inFlight--
	if o.slow {
		s.slow--
	}
	delete(s.known, o.due.DeliveryID)
	if key, ordered := o.due.lane(); ordered {
		delete(s.firstAttempts, key)
	}
	switch {
	case o.err != nil:
		s.log.Error("cannot read a due delivery; trying again", "delivery_id", o.due.DeliveryID, "error", o.err)
		s.pollBy(now.Add(retryInterval))
	case o.report != nil:
		s.recordHealth(e, o, now)
	}
	if e.forgettable(now) {
		delete(s.endpoints, o.due.WebhookID)
	}
}

func (s *Sender) recordHealth(e *endpoint, o outcome, now time.Time) {
	ok, wasPaused := o.report.Status == Delivered, e.paused(now)
	e.record(ok, o.report.Attempt.Duration, now)
	s.host(e.host).record(ok, now)
	switch {
	case e.paused(now):
		// The queue would be stale by the time the endpoint is tried again.
		for _, d := range e.queue {
			delete(s.known, d.DeliveryID)
		}
		s.queued -= len(e.queue)
		e.queue, e.more = nil, false
		delete(s.waiting, o.due.WebhookID)
		s.pollBy(e.pausedUntil)
	case wasPaused:
		s.pollNow = true
	}
	if o.report.NextAt != nil {
		s.pollBy(*o.report.NextAt)
	}
}
