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
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
)

const (
	// maxGroup bounds how many units share a transaction.
	maxGroup = 64
	// groupsAtOnce is how many such transactions can be under way at a time.
	groupsAtOnce = 2
	// patience is how long a transaction is the only one of this node. While it is,
	// the next units gather; then the database has time for their first statements.
	// Beside other nodes, whose transactions are under way too and meet it at the
	// locks of workspaces, it is the only one unless it takes long.
	patience, patienceBeside = 2 * time.Millisecond, 10 * time.Millisecond
	// queueLength bounds how many units wait; more wait at the door.
	queueLength = 4096
)

// groups commit units of many runs together. The units of a group run side by
// side, and statements that are ready at the same time travel in one round
// trip: a group takes about as long as one unit alone. A unit that fails takes
// the transaction with it; then each is run again by itself.
type groups struct {
	db    *DB
	queue chan *member
	turn  chan struct{} // whoever has it begins the next transaction
	done  chan struct{}
	apart sync.WaitGroup // units that are run by themselves
	// beside says that there are other nodes.
	beside atomic.Bool
}

// member is a unit of a group.
type member struct {
	ctx    context.Context
	runID  string
	fn     func(store.Conn) error
	answer chan error
	// written is what the unit does, if it asks for nothing on the way.
	written *conn

	conn    *conn
	ready   []*statement // waits to be sent
	resume  chan error   // nil: the unit does not run, it is written
	last    []*statement // wait to be sent with the end of the transaction
	ended   bool
	outcome error
}

// errAsks says that a unit wants to know something.
var errAsks = errors.New("the unit asks")

// write has a unit write down what it does. One that asks for something on the
// way has to run in its transaction.
func (m *member) write() error {
	asks := false
	c := &conn{exchange: func([]*statement) error {
		asks = true
		return errAsks
	}}
	err := call(m.fn, c)
	if asks {
		return nil
	}
	m.written = c
	return err
}

func newGroups(db *DB) *groups {
	return &groups{db: db, queue: make(chan *member, queueLength), turn: make(chan struct{}, 1), done: make(chan struct{})}
}

// WriteRun implements store.Driver.
func (db *DB) WriteRun(ctx context.Context, runID string, fn func(store.Conn) error) error {
	if ctx.Err() != nil { // select would choose at random
		return givenUp(ctx)
	}
	m := &member{ctx: ctx, runID: runID, fn: fn, answer: make(chan error, 1)}
	if err := m.write(); err != nil {
		return err
	}
	select {
	case db.groups.queue <- m:
	case <-ctx.Done():
		return givenUp(ctx)
	case <-db.groups.done:
		return closed()
	}
	select {
	case err := <-m.answer:
		return err
	case <-db.groups.done:
		select {
		case err := <-m.answer:
			return err
		default:
			return closed()
		}
	}
}

func closed() error {
	return fault.New(fault.Unavailable, "the service is shutting down").After(time.Second)
}

// run commits groups until the context ends and nothing is queued.
func (g *groups) run(ctx context.Context) error {
	defer close(g.done)
	var workers sync.WaitGroup
	for range groupsAtOnce {
		workers.Go(func() { g.work(ctx) })
	}
	workers.Wait()
	g.apart.Wait()
	return nil
}

func (g *groups) work(ctx context.Context) {
	for {
		g.turn <- struct{}{}
		pass := sync.OnceFunc(func() { <-g.turn })
		m := g.first(ctx)
		if m == nil {
			pass()
			return
		}
		late := time.AfterFunc(g.patience(), pass)
		g.commit(g.gather(m))
		late.Stop()
		pass()
	}
}

func (g *groups) patience() time.Duration {
	if g.beside.Load() {
		return patienceBeside
	}
	return patience
}

// Alone says whether this is the only node.
func (db *DB) Alone(is bool) { db.groups.beside.Store(!is) }

// first waits for a unit. There is none when the context has ended and nothing
// is queued.
func (g *groups) first(ctx context.Context) *member {
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

// gather takes whatever queued meanwhile, without waiting for more. A run has
// one unit in a group: they would not see each other as units should.
func (g *groups) gather(first *member) []*member {
	group, runs := []*member{first}, map[string]bool{first.runID: true}
	for len(group) < maxGroup {
		select {
		case m := <-g.queue:
			if runs[m.runID] {
				g.apart.Go(func() { g.alone(m) })
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

// alone runs a unit by itself.
func (g *groups) alone(m *member) { m.answer <- g.db.Write(m.ctx, m.fn) }

// commit runs a group and answers each of its callers.
func (g *groups) commit(group []*member) {
	if len(group) == 1 && group[0].written == nil {
		g.alone(group[0])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unitTime)
	defer cancel()
	if err := g.together(ctx, group); err != nil {
		if k := classify(err); k != other { // what a unit met by itself it meets again
			g.db.counts.failed(k, err)
		}
		for _, m := range group {
			_, open := errors.AsType[*unknownError](err)
			switch {
			case open:
				g.db.counts.unit(unknown, err)
				m.answer <- explain(err, unknown)
			case len(group) == 1 && m.outcome != nil: // by itself it would meet the same
				g.db.counts.unit(other, m.outcome)
				m.answer <- m.outcome
			default:
				g.apart.Go(func() { g.alone(m) })
			}
		}
		return
	}
	for _, m := range group {
		g.db.counts.unit(other, m.outcome)
		m.answer <- m.outcome
	}
}

// errApart says that the units of a group have to be run one by one.
var errApart = errors.New("the units of a group are run one by one")

// together runs a group in one transaction.
func (g *groups) together(ctx context.Context, group []*member) error {
	lent, err := g.db.acquire(ctx)
	if err != nil {
		return err
	}
	defer lent.Release()
	begun := clock.Mark()
	t := g.db.newTransaction(lent)
	slices.SortFunc(group, func(a, b *member) int { return cmp.Compare(a.runID, b.runID) })
	last, err := rounds(ctx, t, group)
	if err != nil {
		t.abandon(ctx)
		return err
	}
	if !t.begun && len(last) == 0 {
		return nil
	}
	defer g.db.counts.commit(len(group), begun)
	if err := g.db.finish(ctx, t, last); err != nil {
		return err
	}
	for _, m := range group {
		m.conn.learn()
	}
	return nil
}
