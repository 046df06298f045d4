// Package store owns the tables. It holds every SQL statement that both databases
// understand, written once in PostgreSQL's dialect, on top of package database. Each
// exported method is one transaction. Business rules live in the packages above; the
// store only checks the conditions it is given.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/txn"
)

// Notify holds callbacks that the store calls after a commit. They must not
// block.
type Notify struct {
	// Wake passes on a run that has work to do.
	Wake func(run.Wake)
	// AnswerArrived is called when an answer arrived for a run that this or
	// another node is executing.
	AnswerArrived func(runID string)
	// Changed is called when steps of a run were written.
	Changed func(runID string)
	// HeldBack is called when a new run waits for its concurrency limit.
	HeldBack func(runID string)
	// Started and Ended are called when a run starts and ends.
	Started func(workspaceID string)
	Ended   func(run.Completion)
	// Recorded is called when an event of a workspace was written.
	Recorded func(workspaceID string)
	// Deliverable is called when there is a delivery to send to a webhook.
	Deliverable func()
	// Scheduled is called when a trigger of the given type was scheduled,
	// possibly earlier than all others.
	Scheduled func(kind string, at time.Time)
	// SubscriptionDue is called when there is something to do for a subscription at a
	// service.
	SubscriptionDue func(at time.Time)
	// AppCalled is called when calls for OAuth apps are to be handed out at a time.
	AppCalled func(at time.Time)
	// EventPending is called when there is an event for a trigger to fire on.
	EventPending func(at time.Time)
	// WorkflowDeleted is called when the runs of a workflow became void.
	WorkflowDeleted func(workflowID string)
	// WorkspaceCreated is called when a workspace after the first was created.
	WorkspaceCreated func()
}

// Store implements the Store interfaces of the domain packages.
type Store struct {
	driver database.Driver
	notify Notify
	queue  runqueue.Queue

	subscribers  subscriberCache
	workflowRefs workflowRefs
}

// New returns a store on top of a driver. Functions of notify may be nil.
func New(driver database.Driver, notify Notify) *Store {
	if notify.Wake == nil {
		notify.Wake = func(run.Wake) {}
	}
	if notify.AnswerArrived == nil {
		notify.AnswerArrived = func(string) {}
	}
	if notify.Changed == nil {
		notify.Changed = func(string) {}
	}
	if notify.HeldBack == nil {
		notify.HeldBack = func(string) {}
	}
	if notify.Started == nil {
		notify.Started = func(string) {}
	}
	if notify.Ended == nil {
		notify.Ended = func(run.Completion) {}
	}
	if notify.Recorded == nil {
		notify.Recorded = func(string) {}
	}
	if notify.Deliverable == nil {
		notify.Deliverable = func() {}
	}
	if notify.AppCalled == nil {
		notify.AppCalled = func(time.Time) {}
	}
	if notify.SubscriptionDue == nil {
		notify.SubscriptionDue = func(time.Time) {}
	}
	if notify.Scheduled == nil {
		notify.Scheduled = func(string, time.Time) {}
	}
	if notify.EventPending == nil {
		notify.EventPending = func(time.Time) {}
	}
	if notify.WorkflowDeleted == nil {
		notify.WorkflowDeleted = func(string) {}
	}
	if notify.WorkspaceCreated == nil {
		notify.WorkspaceCreated = func() {}
	}
	return &Store{driver: driver, notify: notify, queue: runqueue.NewLocal(notify.Wake)}
}

// SetQueue replaces the queue of a single process.
func (s *Store) SetQueue(q runqueue.Queue) { s.queue = q }

// transaction is a transaction in progress. It collects what finalize writes at its
// end, such as events and audit entries, and the callbacks to run after the commit.
type transaction struct {
	database.Conn
	queue      runqueue.Transaction
	optimistic bool // relies on cached data and is rolled back if that is stale
	events     []event.Event
	audit      []audit.Record
	after      []func()
}

// AfterCommit implements runqueue.Tx.
func (tx *transaction) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// Optimistic implements runqueue.Tx.
func (tx *transaction) Optimistic() bool { return tx.optimistic }

// Unwrap implements runqueue.Tx.
func (tx *transaction) Unwrap() database.Conn { return tx.Conn }

// WriteQueue implements runqueue.Store.
func (s *Store) WriteQueue(ctx context.Context, fn func(runqueue.Transaction) error) error {
	return s.write(ctx, func(tx *transaction) error { return fn(tx.queue) })
}

// ReadQueue implements runqueue.Store.
func (s *Store) ReadQueue(ctx context.Context, fn func(database.Conn) error) error {
	return s.read(ctx, fn)
}

// write runs fn in a transaction. If the context already carries one, fn joins
// it.
func (s *Store) write(ctx context.Context, fn func(*transaction) error) error {
	if outer, ok := txn.From(ctx).(*transaction); ok {
		return fn(outer)
	}
	return s.commit(ctx, transaction{}, fn, s.driver.Write)
}

// writeRun is write for a transaction that touches only rows of one run and what
// it has locked. It uses Expect instead of reading conditions first, and returns
// false, without having changed anything, if one of them did not hold.
func (s *Store) writeRun(ctx context.Context, runID string, fn func(*transaction) error) (bool, error) {
	err := s.commit(ctx, transaction{optimistic: true}, fn, func(ctx context.Context, body func(database.Conn) error) error {
		return s.driver.WriteRun(ctx, runID, body)
	})
	if errors.Is(err, database.ErrUnexpected) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) commit(ctx context.Context, initial transaction, fn func(*transaction) error, write func(context.Context, func(database.Conn) error) error) error {
	tx := &transaction{}
	err := write(ctx, func(c database.Conn) error {
		*tx = initial // the transaction may be retried
		tx.Conn, tx.queue = c, s.queue.Begin(tx)
		if err := fn(tx); err != nil {
			return err
		}
		return s.finalize(ctx, tx)
	})
	if err != nil {
		return err
	}
	for _, callback := range tx.after {
		callback()
	}
	return nil
}

// nested reports whether the context carries a transaction that writes would
// join.
func nested(ctx context.Context) bool { return txn.From(ctx) != nil }

// read runs fn on a consistent view. Inside a transaction, fn sees that
// transaction's writes.
func (s *Store) read(ctx context.Context, fn func(database.Conn) error) error {
	if outer, ok := txn.From(ctx).(*transaction); ok {
		return fn(outer.Conn)
	}
	return s.driver.Read(ctx, fn)
}

// readAll runs independent queries on a consistent view.
func (s *Store) readAll(ctx context.Context, queries func() []database.Query) error {
	outer, ok := txn.From(ctx).(*transaction)
	if !ok {
		return s.driver.ReadAll(ctx, queries)
	}
	for _, q := range queries() {
		if err := outer.Query(q.Statement, q.Args, q.Each); err != nil {
			return err
		}
	}
	return nil
}

// within returns a context whose nested calls join the transaction.
func within(ctx context.Context, tx *transaction) context.Context {
	return txn.With(ctx, tx)
}

// incrementUsage adds one to a workspace's counter, a column of workspaces, and
// returns false if it is already at the limit.
func incrementUsage(tx *transaction, kind, workspaceID string, atMost int) (bool, error) {
	n, err := tx.Exec(`UPDATE workspaces SET `+kind+` = `+kind+` + 1 WHERE id = $1 AND `+kind+` < $2`, workspaceID, atMost)
	return n == 1, err
}

// decrementUsage subtracts from a counter that incrementUsage raised.
func decrementUsage(tx *transaction, kind, workspaceID string, by int64) error {
	err := tx.Do(`UPDATE workspaces SET `+kind+` = `+kind+` - $1 WHERE id = $2`, by, workspaceID)
	return err
}

// before returns the position from which a descending list starts.
func before(position string) string {
	if position == "" {
		return "~" // sorts after every id
	}
	return position
}
