package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	// maxConcurrent limits the polls of a family that are in progress.
	maxConcurrent = 64
	// claimDuration is how long a node owns a poll. If the node dies, another one polls after that.
	// It is longer than any poll may take, so that a slow service is not asked twice.
	claimDuration = 2 * time.Minute
	// chunkSize is the number of runs started in one transaction if items have
	// keys.
	chunkSize = 100
	// maxDelay limits the backoff after failures, unless the interval is longer.
	maxDelay = time.Hour
	maxNote  = 1000
	// morePause is the time between polls while there is more to read, and before a poll
	// starts over.
	morePause = time.Second
)

// Codes of polls whose position does not help: the service does not know it, or it stays
// the same.
const (
	CodePositionLost = "position_lost"
	CodeStuck        = "position_unchanged"
)

// Poller polls servers and starts a run for each new item.
type Poller struct {
	*trigger.Ticker[trigger.Trigger]
	reader   Reader
	timeout  time.Duration
	store    trigger.Store
	programs trigger.Programs
	runs     trigger.Batches
	log      *slog.Logger
	slots    chan struct{}
	polls    sync.WaitGroup
}

// NewPoller returns a poller of the triggers of a family. The timeout is that of one poll.
func NewPoller(d trigger.Deps, family string, reader Reader, timeout time.Duration) *Poller {
	p := &Poller{
		reader: reader, timeout: timeout, store: d.Store, programs: d.Programs, runs: d.Runs, log: d.Log,
		slots: make(chan struct{}, maxConcurrent),
	}
	p.Ticker = trigger.NewTicker(trigger.OfType(d.Store, family, clock.Steady, p.claim), d.Log)
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
	claimed, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &until, Claims: true, Failures: t.Failures})
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

// poll looks for new items once and starts runs for them. due is the steady time at which
// the poll was due.
func (p *Poller) poll(ctx context.Context, t trigger.Trigger, due, now time.Time) error {
	compiled, err := trigger.Compiled(ctx, p.store, p.programs, t, now)
	if err != nil || compiled == nil {
		return err
	}
	if p.reader.IsCalled(*compiled) {
		// It may have been called in the meantime.
		defer func() { p.Wake(clock.Steady().Add(morePause)) }()
	}
	every := p.reader.Interval(*compiled)
	began := clock.Steady()
	next := due.Add(every)
	if !next.After(began) {
		next = began.Add(every)
	}
	before, err := parseState(t.State, p.reader.Source(compiled.Trigger))
	if err != nil {
		note := &trigger.Note{At: now, Code: trigger.CodeCorrupt, Message: "the saved state of the poll cannot be read: pause the workflow and activate it again"}
		_, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Error: note})
		return err
	}
	found, masker, err := p.read(ctx, Query{Compiled: *compiled, Trigger: t, Cursor: before.Cursor, Starting: before.starting, Now: clock.Now()})
	switch {
	case ctx.Err() != nil: // the service stops: the next node polls immediately
		_, err := p.store.MoveTrigger(context.WithoutCancel(ctx), trigger.Move{Of: t, Next: &began, Failures: t.Failures})
		return err
	case err != nil:
		return p.recordFailure(ctx, t, every, now, masker, err)
	case found.PositionLost:
		return p.startOver(ctx, t, before.Source, now)
	}
	if found.More {
		next = clock.Steady().Add(morePause)
	}
	if before.starting {
		_, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &next, State: before.withSeen(found, found.Items).encode()})
		return err
	}
	return p.startRuns(ctx, firing{t, compiled.Type, masker, next, now}, before, found)
}

// read reads what there is, in bounded time.
func (p *Poller) read(ctx context.Context, q Query) (Found, *mask.Masker, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	found, masker, err := p.reader.Read(ctx, q)
	if err != nil && ctx.Err() != nil && !errors.As(err, new(*action.Failure)) {
		err = &action.Failure{Code: action.TimedOut, Message: fmt.Sprintf("there was no response within %s", p.timeout)}
	}
	if err == nil && found.More && (found.Cursor == nil || sameCursor(found.Cursor, q.Cursor)) {
		err = &action.Failure{Code: CodeStuck, Message: "the service says that there is more, but at the same position"}
	}
	found.Items = unique(found.Items)
	return found, masker, err
}

// unique returns the items without those whose key an earlier one has.
func unique(items []Item) []Item {
	seen := map[Key]bool{}
	return slices.DeleteFunc(items, func(i Item) bool {
		twice := i.Key != (Key{}) && seen[i.Key]
		seen[i.Key] = true
		return twice
	})
}

// startOver begins a poll anew, because the service no longer knows how far it had come.
func (p *Poller) startOver(ctx context.Context, t trigger.Trigger, source []byte, now time.Time) error {
	at := clock.Steady().Add(morePause)
	note := &trigger.Note{At: now, Code: CodePositionLost, Message: "the service no longer knows where the last poll ended: what was new since then has started no runs"}
	_, err := p.store.MoveTrigger(ctx, trigger.Move{Of: t, Next: &at, State: state{Source: source, starting: true}.encode(), NotFired: note})
	return err
}

// firing is what the runs of one poll have in common.
type firing struct {
	trigger     trigger.Trigger
	triggerType string
	masker      *mask.Masker
	next        time.Time // when the next poll is due
	now         time.Time
}

// startRuns starts a run for each new item. Items with keys are marked as seen
// together with their runs, one chunk at a time. Without keys it is all or nothing.
func (p *Poller) startRuns(ctx context.Context, f firing, was state, found Found) error {
	unseen := was.unseen(found.Items)
	for {
		part, last := unseen, true
		if found.Keyed && len(unseen) > chunkSize {
			part, last = unseen[:chunkSize], false
		}
		seen := was.withSeen(found, part)
		until := f.next
		if !last {
			seen.Cursor, until = was.Cursor, *f.trigger.NextAt
		}
		if len(part) == 0 {
			m := trigger.Move{Of: f.trigger, Next: &f.next}
			if !was.equal(seen) {
				m.State = seen.encode()
			}
			_, err := p.store.MoveTrigger(ctx, m)
			return err
		}
		if more, err := p.fire(ctx, f, part, seen.encode(), until); err != nil || !more || last {
			return err
		}
		was, unseen = seen, unseen[chunkSize:]
	}
}

// fire starts the runs of items. It returns false if the poll has to stop: another
// node owns it, or the queue is full.
func (p *Poller) fire(ctx context.Context, f firing, items []Item, state []byte, next time.Time) (bool, error) {
	t := f.trigger
	b := run.Batch{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID,
		Fire: run.Fire{At: f.now, Was: t.NextAt, Next: &next, State: state},
	}
	for _, i := range items {
		payload, err := i.payload()
		if err != nil {
			return false, err
		}
		b.Triggers = append(b.Triggers, run.Trigger{Type: f.triggerType, ID: t.ID, Payload: f.masker.JSON(payload)})
	}
	failpoint.Hit(failpoint.BeforePollCommit, t.ID)
	_, err := p.runs.FireAll(ctx, b)
	failpoint.Hit(failpoint.AfterPollCommit, t.ID)
	switch notFired := trigger.Rejection(err, f.now); {
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
