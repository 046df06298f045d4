package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// outcome is an attempt that has ended.
type outcome struct {
	due Due
	// report is nil when nothing was sent: the delivery is not to be sent any
	// more, or, with an error, it could not be read.
	report *Report
	err    error
	slow   bool // as the endpoint was counted when it began
}

// dispatch starts as many attempts as may be under way, in turns between the
// endpoints. It answers how long to wait for what is held back for a moment.
func (c *Courier) dispatch(ctx context.Context, now time.Time) time.Duration {
	wait := lookAnyway
	for progress := true; progress; {
		progress = false
		for id, e := range c.waiting {
			if c.flying == perNode {
				return wait
			}
			d, pause, ok := c.pick(e, now)
			wait = min(wait, pause)
			if !ok {
				continue
			}
			progress = true
			c.launch(ctx, d, e)
			if len(e.queue) == 0 {
				delete(c.waiting, id)
				c.stale = c.stale || e.more
				e.more = false
			}
		}
	}
	return wait
}

// pick takes the next delivery of an endpoint that may be sent now.
func (c *Courier) pick(e *endpoint, now time.Time) (Due, time.Duration, bool) {
	if e.flying >= e.most() || e.slow && c.slow >= forSlow {
		return Due{}, lookAnyway, false
	}
	for i, d := range e.queue {
		key, ordered := d.lane()
		if ordered && c.first[key] {
			continue
		}
		if wait := c.host(e.host).reserve(now); wait > 0 {
			return Due{}, wait, false
		}
		e.queue = slices.Delete(e.queue, i, i+1)
		c.queued--
		if ordered {
			c.first[key] = true
		}
		return d, lookAnyway, true
	}
	return Due{}, lookAnyway, false
}

func (c *Courier) launch(ctx context.Context, d Due, e *endpoint) {
	o := outcome{due: d, slow: e.slow}
	c.flying++
	e.flying++
	if o.slow {
		c.slow++
	}
	c.counts.inFlight.Add(1)
	c.sending.Go(func() {
		defer c.counts.inFlight.Add(-1)
		if o.report, o.err = c.deliver(ctx, d); ctx.Err() == nil {
			c.reports <- o // it has room for all that are under way
		}
	})
}

// deliver makes one attempt and records it.
func (c *Courier) deliver(ctx context.Context, d Due) (*Report, error) {
	parcel, err := c.outbox.Parcel(ctx, d.WorkspaceID, d.DeliveryID)
	if err != nil || parcel == nil {
		return nil, err
	}
	report, err := c.attempt(ctx, *parcel)
	if err != nil {
		return nil, err
	}
	c.counts.attempt(report)
	c.record(ctx, report)
	return &report, nil
}

// record writes what came of an attempt, again and again while the store does
// not answer.
func (c *Courier) record(ctx context.Context, report Report) {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		// What the receiver has got is written also while the service stops.
		err := c.outbox.ReportDelivery(context.WithoutCancel(ctx), report)
		if err == nil {
			return
		}
		c.log.Error("cannot record a delivery; trying again", "delivery_id", report.Parcel.DeliveryID, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// ended takes note of an attempt that is over.
func (c *Courier) ended(o outcome) {
	now := clock.Now()
	e := c.endpoint(o.due.WebhookID)
	c.flying--
	e.flying--
	if o.slow {
		c.slow--
	}
	delete(c.known, o.due.DeliveryID)
	if key, ordered := o.due.lane(); ordered {
		delete(c.first, key)
	}
	switch {
	case o.err != nil:
		c.log.Error("cannot read a delivery that is due", "delivery_id", o.due.DeliveryID, "error", o.err)
		c.lookAt(now.Add(lookAgain))
	case o.report != nil:
		c.learn(e, o, now)
	}
	if e.forgettable(now) {
		delete(c.endpoints, o.due.WebhookID)
	}
}

// learn takes in how the endpoint did.
func (c *Courier) learn(e *endpoint, o outcome, now time.Time) {
	ok, wasClosed := o.report.Status == Delivered, e.closed(now)
	e.note(ok, o.report.Attempt.Duration, now)
	c.host(e.host).note(ok, now)
	switch closed := e.closed(now); {
	case closed:
		// What is queued would be stale when it opens.
		for _, d := range e.queue {
			delete(c.known, d.DeliveryID)
		}
		c.queued -= len(e.queue)
		e.queue, e.more = nil, false
		delete(c.waiting, o.due.WebhookID)
		c.lookAt(e.openAt)
	case wasClosed:
		c.stale = true
	}
	if o.report.NextAt != nil {
		c.lookAt(*o.report.NextAt)
	}
}
