package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// maxGroup bounds how many transactions share a commit: if one of them fails after it has
	// written something, all have to be run again one by one.
	maxGroup = 64
	// maxConcurrentGroups bounds how many groups are in flight at a time. With two, the database
	// works on the beginning of one while the other ends; more would mostly wait for each other's
	// locks.
	maxConcurrentGroups = 2
	// overlapDelay is how long a group runs before the next one may start.
	// Meanwhile further transactions queue up, and the database then has time for
	// their first statements. With other nodes, whose groups compete for the
	// locks of workspaces, the delay is longer: groups of this node overlap only
	// if one is slow.
	overlapDelay, clusterOverlapDelay = 2 * time.Millisecond, 10 * time.Millisecond
	// queueLength bounds the queue. Callers beyond it block, so that a slow database slows its
	// clients down instead of filling the memory.
	queueLength = 4096
)

// groups commits transactions of many runs together. The transactions of a group
// run concurrently, and statements that are ready at the same time are sent in
// one round trip, so a group takes about as long as a single transaction. If one
// of them fails, the group is rolled back and each is run on its own.
type groups struct {
	db         *DB
	queue      chan *groupedTx
	startToken chan struct{} // its holder starts the next group
	done       chan struct{}
	solo       sync.WaitGroup // transactions that are run on their own
	// multiNode is set if there are other nodes.
	multiNode atomic.Bool
}

type groupedTx struct {
	ctx    context.Context
	runID  string
	fn     func(database.Conn) error
	result chan error
	// recorded holds the statements of a transaction that needs no results while
	// it runs.
	recorded *conn

	conn    *conn
	ready   []*statement // to be sent in the next round
	resume  chan error   // nil for a recorded transaction, which does not run
	final   []*statement // to be sent with the COMMIT
	ended   bool
	outcome error
}

// errNeedsResult means that a transaction needs a result and cannot be recorded.
var errNeedsResult = errors.New("the transaction needs a result")

// record runs fn without a database to record its statements. A transaction that
// needs a result has to run in the group instead.
func (m *groupedTx) record() error {
	needsResult := false
	c := &conn{send: func([]*statement) error {
		needsResult = true
		return errNeedsResult
	}}
	err := call(m.fn, c)
	if needsResult {
		return nil
	}
	m.recorded = c
	return err
}

// WriteRun implements store.Driver.
func (db *DB) WriteRun(ctx context.Context, runID string, fn func(database.Conn) error) error {
	if ctx.Err() != nil { // select would choose at random
		return canceledError(ctx)
	}
	m := &groupedTx{ctx: ctx, runID: runID, fn: fn, result: make(chan error, 1)}
	if err := m.record(); err != nil {
		return err
	}
	select {
	case db.groups.queue <- m:
	case <-ctx.Done():
		return canceledError(ctx)
	case <-db.groups.done:
		return closedError()
	}
	select {
	case err := <-m.result:
		return err
	case <-db.groups.done:
		select {
		case err := <-m.result:
			return err
		default:
			return closedError()
		}
	}
}

func closedError() error {
	return fault.New(fault.Unavailable, "the service is shutting down").After(time.Second)
}

// run commits groups until the context ends and the queue is empty.
func (g *groups) run(ctx context.Context) error {
	defer close(g.done)
	var workers sync.WaitGroup
	for range maxConcurrentGroups {
		workers.Go(func() { g.work(ctx) })
	}
	workers.Wait()
	g.solo.Wait()
	return nil
}

func (g *groups) work(ctx context.Context) {
	for {
		g.startToken <- struct{}{}
		releaseToken := sync.OnceFunc(func() { <-g.startToken })
		m := g.first(ctx)
		if m == nil {
			releaseToken()
			return
		}
		timer := time.AfterFunc(g.overlapAfter(), releaseToken)
		g.commit(g.gather(m))
		timer.Stop()
		releaseToken()
	}
}

func (g *groups) overlapAfter() time.Duration {
	if g.multiNode.Load() {
		return clusterOverlapDelay
	}
	return overlapDelay
}

// SetSingleNode sets whether this is the only node.
func (db *DB) SetSingleNode(single bool) { db.groups.multiNode.Store(!single) }

// first waits for a transaction. It returns nil when the context has ended and
// the queue is empty.
func (g *groups) first(ctx context.Context) *groupedTx {
	select {
	case m := <-g.queue:
		return m
	default:
	}
	select {
	case m := <-g.queue:
		return m
	case <-ctx.Done():
		return nil
	}
}

// gather takes what is queued without waiting for more. A group contains one
// transaction per run: two would not be isolated from each other.
func (g *groups) gather(first *groupedTx) []*groupedTx {
	group, runs := []*groupedTx{first}, map[string]bool{first.runID: true}
	for len(group) < maxGroup {
		select {
		case m := <-g.queue:
			if runs[m.runID] {
				g.solo.Go(func() { g.runSolo(m) })
				continue
			}
			runs[m.runID] = true
			group = append(group, m)
		default:
			return group
		}
	}
	return group
}

func (g *groups) runSolo(m *groupedTx) { m.result <- g.db.Write(m.ctx, m.fn) }

// commit runs a group and returns the result to each caller.
func (g *groups) commit(group []*groupedTx) {
	if len(group) == 1 && group[0].recorded == nil {
		g.runSolo(group[0])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.db.limits.transaction)
	defer cancel()
	if err := g.runGroup(ctx, group); err != nil {
		if k := classify(err); k != other { // the transaction's own error will occur again
			g.db.counts.failed(k, err)
		}
		for _, m := range group {
			_, isUnknown := errors.AsType[*unknownOutcomeError](err)
			switch {
			case isUnknown:
				g.db.counts.transaction(unknown, err)
				m.result <- explain(err, unknown)
			case len(group) == 1 && m.outcome != nil: // on its own it would fail the same way
				g.db.counts.transaction(other, m.outcome)
				m.result <- m.outcome
			default:
				g.solo.Go(func() { g.runSolo(m) })
			}
		}
		return
	}
	for _, m := range group {
		g.db.counts.transaction(other, m.outcome)
		m.result <- m.outcome
	}
}

// errSplitGroup means that the transactions of a group have to be run one by one.
var errSplitGroup = errors.New("the transactions of the group have to run one by one")

// runGroup runs a group in one database transaction.
func (g *groups) runGroup(ctx context.Context, group []*groupedTx) error {
	pooled, err := g.db.acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	begun := clock.Monotonic()
	t := g.db.newTransaction(pooled, g.db.begin)
	slices.SortFunc(group, func(a, b *groupedTx) int { return cmp.Compare(a.runID, b.runID) })
	final, err := runInterleaved(ctx, t, group)
	if err != nil {
		t.rollback(ctx)
		return err
	}
	if !t.begun && len(final) == 0 {
		return nil
	}
	defer g.db.counts.commit(len(group), begun)
	if err := g.db.finish(ctx, t, final); err != nil {
		return err
	}
	for _, m := range group {
		m.conn.runOnCommit()
	}
	return nil
}
