package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	// maxConcurrent limits the requests in flight, timeout the duration
	// of one.
	maxConcurrent = 64
	timeout       = 30 * time.Second
	// claimDuration is how long a node owns a poll. If the node dies, another one
	// polls after that.
	claimDuration = 2 * time.Minute
	// chunkSize is the number of runs started in one transaction if items have
	// keys.
	chunkSize = 100
	// maxDelay limits the backoff after failures, unless the interval is longer.
	maxDelay = time.Hour
	maxNote  = 1000
)

// Poller polls servers and starts a run for each new item.
type Poller struct {
	*trigger.Ticker[trigger.Trigger]
	store       trigger.Store
	programs    trigger.Programs
	runs        trigger.Batches
	values      trigger.Values
	connections trigger.Connections
	catalog     *action.Catalog
	log         *slog.Logger
	slots       chan struct{}
	polls       sync.WaitGroup
}

// NewPoller returns a poller. Among the actions is the one that sends requests.
func NewPoller(d trigger.Deps) *Poller {
	p := &Poller{
		store: d.Store, programs: d.Programs, runs: d.Runs, values: d.Values, connections: d.Connections, catalog: d.Actions, log: d.Log,
		slots: make(chan struct{}, maxConcurrent),
	}
	p.Ticker = trigger.NewTicker(trigger.OfType(d.Store, workflow.PollTrigger, clock.Steady, p.claim), d.Log)
	return p
}

// Run polls until the context ends, then waits for the polls in flight.
func (p *Poller) Run(ctx context.Context) error {
	defer p.polls.Wait()
	return p.Ticker.Run(ctx)
}

// claim takes a poll that is due and runs it in the background, because a server
// may be slow.
func (p *Poller) claim(ctx context.Context, t trigger.Trigger, now time.Time) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	until := clock.Steady().Add(claimDuration)
	claimed, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &until, Failures: t.Failures})
	if err != nil || !claimed {
		<-p.slots
		return err
	}
	due := *t.NextAt
	t.NextAt = &until
	p.polls.Go(func() {
		defer func() { <-p.slots }()
		if err := p.poll(ctx, t, due, now); err != nil && ctx.Err() == nil {
			p.log.Error("cannot poll", "workflow_id", t.WorkflowID, "trigger_id", t.ID, "error", err)
		}
	})
	return nil
}

// poll sends one request and starts runs for new items. due is the steady time at
// which the poll was due.
func (p *Poller) poll(ctx context.Context, t trigger.Trigger, due, now time.Time) error {
	compiled, err := trigger.Compiled(ctx, p.store, p.programs, t, now)
	if err != nil || compiled == nil {
		return err
	}
	every := compiled.Config.(*Config).Schedule.Interval()
	began := clock.Steady()
	next := due.Add(every)
	if !next.After(began) {
		next = began.Add(every)
	}
	before, err := parseState(t.State, compiled.Trigger)
	if err != nil {
		note := &trigger.Note{At: now, Code: trigger.CodeCorrupt, Message: "the saved state of the poll cannot be read: pause the workflow and activate it again"}
		_, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Error: note})
		return err
	}
	found, masker, err := p.fetch(ctx, *compiled, t, before.Cursor)
	switch {
	case ctx.Err() != nil: // the service stops: the next node polls immediately
		_, err := p.store.MoveTrigger(context.WithoutCancel(ctx), trigger.Move{Of: t, Next: &began, Failures: t.Failures})
		return err
	case err != nil:
		return p.recordFailure(ctx, t, every, now, masker, err)
	}
	if before.first {
		_, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &next, State: before.withSeen(found, found.items).encode()})
		return err
	}
	return p.startRuns(ctx, t, before, found, masker, next, now)
}

// startRuns starts a run for each new item. Items with keys are marked as seen
// together with their runs, one chunk at a time. Without keys it is all or nothing.
func (p *Poller) startRuns(ctx context.Context, t trigger.Trigger, was state, found result, masker *mask.Masker, next, now time.Time) error {
	unseen := was.unseen(found.items)
	for {
		part, last := unseen, true
		if found.keyed && len(unseen) > chunkSize {
			part, last = unseen[:chunkSize], false
		}
		seen := was.withSeen(found, part)
		until := next
		if !last {
			seen.Cursor, until = was.Cursor, *t.NextAt
		}
		if len(part) == 0 {
			m := trigger.Move{Of: t, Next: &next}
			if !was.equal(seen) {
				m.State = seen.encode()
			}
			_, err := p.store.MoveTrigger(ctx, m)
			return err
		}
		if more, err := p.fire(ctx, t, part, masker, seen.encode(), until, now); err != nil || !more || last {
			return err
		}
		was, unseen = seen, unseen[chunkSize:]
	}
}

// fire starts the runs of items. It returns false if the poll has to stop: another
// node owns it, or the queue is full.
func (p *Poller) fire(ctx context.Context, t trigger.Trigger, items []item, masker *mask.Masker, state []byte, next, now time.Time) (bool, error) {
	b := run.Batch{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID,
		Fire: run.Fire{At: now, Was: t.NextAt, Next: &next, State: state},
	}
	for _, i := range items {
		payload, err := i.payload()
		if err != nil {
			return false, err
		}
		b.Triggers = append(b.Triggers, run.Trigger{Type: t.Type, ID: t.ID, Payload: masker.JSON(payload)})
	}
	failpoint.Hit(failpoint.BeforePollCommit, t.ID)
	_, err := p.runs.FireAll(ctx, b)
	failpoint.Hit(failpoint.AfterPollCommit, t.ID)
	switch notFired := trigger.Rejection(err, now); {
	case trigger.Obsolete(err):
		return false, nil
	case fault.Is(err, fault.RunQueueFull):
		again := clock.Steady().Add(time.Minute)
		_, err = p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &again, NotFired: notFired})
		return false, err
	case notFired != nil: // no item can start a run
		_, err = p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &next, State: state, NotFired: notFired})
		return true, err
	}
	return true, err
}

// recordFailure records an error and schedules the next poll with exponential
// backoff.
func (p *Poller) recordFailure(ctx context.Context, t trigger.Trigger, every time.Duration, now time.Time, masker *mask.Masker, err error) error {
	failure, ok := errors.AsType[*action.Failure](err)
	if !ok {
		return p.release(ctx, t, err)
	}
	failures := t.Failures + 1
	delay := every
	for n := 1; n < failures && delay < maxDelay; n++ {
		delay *= 2
	}
	delay = max(every, min(delay, maxDelay), min(failure.RetryAfter, workflow.MaxDelay))
	next := clock.Steady().Add(delay)
	note := &trigger.Note{At: now, Code: failure.Code, Message: run.Clip(masker.Text(failure.Message), maxNote)}
	_, err = p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &next, Failures: failures, Error: note})
	return err
}

// release gives up the claim on a poll that failed because of the service.
func (p *Poller) release(ctx context.Context, t trigger.Trigger, cause error) error {
	again := clock.Steady().Add(trigger.RetryDelay)
	_, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &again, Failures: t.Failures})
	return errors.Join(cause, err)
}

// fetch sends the request and returns its items, and a masker for everything that
// is recorded. An error of the poll itself is an action.Failure.
func (p *Poller) fetch(ctx context.Context, compiled workflow.CompiledTrigger, t trigger.Trigger, cursor any) (result, *mask.Masker, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q := request{compiled: compiled, trigger: t, cursor: cursor, now: clock.Now()}
	if compiled.Vars {
		var err error
		if q.vars, err = p.values.Vars(ctx, t.WorkspaceID); err != nil {
			return result{}, nil, err
		}
	}
	var err error
	if q.secrets, err = p.values.Open(ctx, t.WorkspaceID, compiled.Secrets); err != nil {
		return result{}, nil, err
	}
	masker := q.mask(nil)
	var response any
	if name := compiled.Connection; name == "" {
		response, err = q.send(ctx, p.catalog, nil, masker)
	} else {
		err = p.connections.Use(ctx, t.WorkspaceID, name, timeout, func(ctx context.Context, c action.Connection) (err error) {
			masker = q.mask(c.Mask)
			response, err = q.send(ctx, p.catalog, &c, masker)
			return err
		})
	}
	if err != nil {
		if ctx.Err() != nil && !errors.As(err, new(*action.Failure)) {
			err = &action.Failure{Code: action.TimedOut, Message: fmt.Sprintf("there was no response within %s", timeout)}
		}
		return result{}, masker, err
	}
	found, err := q.parse(response, masker)
	return found, masker, err
}
