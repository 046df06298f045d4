package trigger

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
	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	// asking is how many servers are asked at a time, askTime how long one has to
	// answer.
	asking  = 64
	askTime = 30 * time.Second
	// claimTime is how long a poll belongs to the node that asks. If that is gone,
	// another one asks after it.
	claimTime = 2 * time.Minute
	// chunk is how many runs are started in one unit where items can be told
	// apart.
	chunk = 100
	// mostDelay bounds the time between attempts that fail, unless the interval is
	// longer.
	mostDelay = time.Hour
	maxNote   = 1000
)

// Values are what the request of a poll and the verification of a call can refer
// to.
type Values interface {
	// Open opens the named secrets; those that do not exist are left out.
	Open(ctx context.Context, workspaceID string, names []string) (map[string]string, error)
	Variables(ctx context.Context, workspaceID string) (map[string]any, error)
}

// Batches starts runs together.
type Batches interface {
	FireAll(ctx context.Context, b run.Batch) (started []string, err error)
}

// Poller asks servers and starts a run for each new item.
type Poller struct {
	*Ticker[Trigger]
	store   Store
	plans   Plans
	runs    Batches
	values  Values
	catalog *action.Catalog
	places  chan struct{}
	polls   sync.WaitGroup
}

// NewPoller makes a poller on a store; the catalog has the action that asks.
func NewPoller(store Store, plans Plans, runs Batches, values Values, catalog *action.Catalog, log *slog.Logger) *Poller {
	p := &Poller{store: store, plans: plans, runs: runs, values: values, catalog: catalog, places: make(chan struct{}, asking)}
	p.Ticker = newTicker(ofType(store, workflow.PollTrigger, p.claim), log)
	return p
}

// Run polls until the context ends, and lets what is under way come to its end.
func (p *Poller) Run(ctx context.Context) error {
	defer p.polls.Wait()
	return p.Ticker.Run(ctx)
}

// claim takes a poll that is due. A server may take its time to answer, so that
// goes on by itself.
func (p *Poller) claim(ctx context.Context, t Trigger, now time.Time) error {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	until := clock.Now().Add(claimTime)
	claimed, err := p.store.MoveTrigger(ctx, Move{Of: t, Next: &until, Failures: t.Failures})
	if err != nil || !claimed {
		<-p.places
		return err
	}
	due := *t.NextAt
	t.NextAt = &until
	p.polls.Go(func() {
		defer func() { <-p.places }()
		if err := p.poll(ctx, t, due, now); err != nil && ctx.Err() == nil {
			p.log.Error("cannot poll", "workflow_id", t.WorkflowID, "trigger_id", t.ID, "error", err)
		}
	})
	return nil
}

// poll asks once and does what follows from the answer. due is when it was to
// ask.
func (p *Poller) poll(ctx context.Context, t Trigger, due, now time.Time) error {
	planned, err := planned(ctx, p.store, p.plans, t, now)
	if err != nil || planned == nil {
		return err
	}
	every := planned.Schedule.Interval()
	next := due.Add(every)
	if !next.After(now) {
		next = now.Add(every)
	}
	before, err := parseState(t.State, planned.Trigger)
	if err != nil {
		note := &Note{At: now, Code: CodeCorrupt, Message: "how far it has come cannot be read: pause the workflow and activate it again"}
		_, err := p.store.MoveTrigger(ctx, Move{Of: t, Error: note})
		return err
	}
	found, hide, err := p.ask(ctx, *planned, t, before.Cursor)
	switch {
	case ctx.Err() != nil: // the service stops: whoever comes next asks at once
		_, err := p.store.MoveTrigger(context.WithoutCancel(ctx), Move{Of: t, Next: &now, Failures: t.Failures})
		return err
	case err != nil:
		return p.failed(ctx, t, every, now, hide, err)
	}
	if before.first {
		_, err := p.store.MoveTrigger(ctx, Move{Of: t, Next: &next, State: before.after(found, found.items).encode()})
		return err
	}
	return p.start(ctx, t, before, found, hide, next, now)
}

// start starts a run for each new item. Items that can be told apart are seen
// with their runs, a part at a time; else it is all or nothing.
func (p *Poller) start(ctx context.Context, t Trigger, was state, found answer, hide *mask.Masker, next, now time.Time) error {
	fresh := was.fresh(found.items)
	for {
		part, last := fresh, true
		if found.keyed && len(fresh) > chunk {
			part, last = fresh[:chunk], false
		}
		seen := was.after(found, part)
		until := next
		if !last {
			seen.Cursor, until = was.Cursor, *t.NextAt
		}
		if len(part) == 0 {
			m := Move{Of: t, Next: &next}
			if !was.same(seen) {
				m.State = seen.encode()
			}
			_, err := p.store.MoveTrigger(ctx, m)
			return err
		}
		if more, err := p.fire(ctx, t, part, hide, seen.encode(), until, now); err != nil || !more || last {
			return err
		}
		was, fresh = seen, fresh[chunk:]
	}
}

// fire starts the runs of items. It answers false when it is over: somebody else
// has the poll, or there is no room for more runs.
func (p *Poller) fire(ctx context.Context, t Trigger, items []item, hide *mask.Masker, state []byte, next, now time.Time) (bool, error) {
	b := run.Batch{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID,
		Fire: run.Fire{At: now, Was: t.NextAt, Next: &next, State: state},
	}
	for _, i := range items {
		payload, err := i.payload()
		if err != nil {
			return false, err
		}
		b.Triggers = append(b.Triggers, run.Trigger{Type: t.Type, ID: t.ID, Payload: hide.JSON(payload)})
	}
	failpoint.Hit(failpoint.BeforePollCommit, t.ID)
	_, err := p.runs.FireAll(ctx, b)
	failpoint.Hit(failpoint.AfterPollCommit, t.ID)
	switch idle := refusal(err, now); {
	case lost(err):
		return false, nil
	case fault.Is(err, fault.RunQueueFull):
		again := now.Add(time.Minute)
		_, err = p.store.MoveTrigger(ctx, Move{Of: t, Next: &again, Idle: idle})
		return false, err
	case idle != nil: // none of them can start a run
		_, err = p.store.MoveTrigger(ctx, Move{Of: t, Next: &next, State: state, Idle: idle})
		return true, err
	}
	return true, err
}

// failed records what went wrong and asks again later: the more often it went
// wrong in a row, the later.
func (p *Poller) failed(ctx context.Context, t Trigger, every time.Duration, now time.Time, hide *mask.Masker, err error) error {
	failure, ok := errors.AsType[*action.Failure](err)
	if !ok {
		return p.release(ctx, t, now, err)
	}
	failures := t.Failures + 1
	delay := every
	for n := 1; n < failures && delay < mostDelay; n++ {
		delay *= 2
	}
	delay = max(every, min(delay, mostDelay), min(failure.RetryAfter, workflow.MaxDelay))
	next := now.Add(delay)
	note := &Note{At: now, Code: failure.Code, Message: run.Clip(hide.Text(failure.Message), maxNote)}
	_, err = p.store.MoveTrigger(ctx, Move{Of: t, Next: &next, Failures: failures, Error: note})
	return err
}

// release gives a poll back that failed through no fault of its own.
func (p *Poller) release(ctx context.Context, t Trigger, now time.Time, cause error) error {
	again := now.Add(lookAgain)
	_, err := p.store.MoveTrigger(ctx, Move{Of: t, Next: &again, Failures: t.Failures})
	return errors.Join(cause, err)
}

// ask gets the items of the answer. What is recorded of it goes through the
// mask. An error that is the poll's own is an action.Failure.
func (p *Poller) ask(ctx context.Context, planned workflow.PlannedTrigger, t Trigger, cursor any) (answer, *mask.Masker, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	q := question{planned: planned, of: t, cursor: cursor, now: clock.Now()}
	if planned.Vars {
		var err error
		if q.vars, err = p.values.Variables(ctx, t.WorkspaceID); err != nil {
			return answer{}, nil, err
		}
	}
	var err error
	if q.secrets, err = p.values.Open(ctx, t.WorkspaceID, planned.Secrets); err != nil {
		return answer{}, nil, err
	}
	hide := q.mask()
	response, err := q.call(ctx, p.catalog)
	if err != nil {
		if ctx.Err() != nil && !errors.As(err, new(*action.Failure)) {
			err = &action.Failure{Code: action.TimedOut, Message: fmt.Sprintf("there was no answer within %s", askTime)}
		}
		return answer{}, hide, err
	}
	found, err := q.read(response)
	return found, hide, err
}
