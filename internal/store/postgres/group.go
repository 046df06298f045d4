package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	if len(group) == 1 {
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
			if _, open := errors.AsType[*unknownError](err); open {
				g.db.counts.unit(unknown, err)
				m.answer <- explain(err, unknown)
				continue
			}
			g.apart.Go(func() { g.alone(m) })
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
	begun := time.Now()
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

// rounds lets the units of a group run until each has ended, sending what all of
// them wait for at a time. It returns what is left to be sent at the end.
func rounds(ctx context.Context, t *transaction, group []*member) (last []*statement, err error) {
	posted := make(chan *member)
	running, waiting := len(group), 0
	for _, m := range group {
		if m.begin(t, posted); m.resume == nil {
			waiting++
		}
	}
	defer func() {
		for _, m := range group {
			for m.resume != nil && !m.ended { // it waits for what will not come
				m.resume <- errApart
				<-posted
			}
		}
	}()
	for running > 0 {
		for waiting < running {
			if m := <-posted; m.ended {
				running--
			} else {
				waiting++
			}
		}
		if failed(group) {
			return nil, errApart
		}
		batch := next(group)
		parts := make([][]*statement, len(batch))
		for i, m := range batch {
			parts[i] = m.ready
		}
		if err := t.send(ctx, arrange(group, parts)); err != nil {
			return nil, errors.Join(errApart, err)
		}
		for _, m := range batch {
			waiting--
			if m.resume != nil {
				m.ready = nil
				m.resume <- nil
				continue
			}
			running--
			m.end()
		}
	}
	if failed(group) {
		return nil, errApart
	}
	parts := make([][]*statement, len(group))
	for i, m := range group {
		parts[i] = m.last
	}
	return arrange(group, parts), nil
}

// begin lets a unit run until it has something to send, or has ended. One that is
// written only has something to send.
func (m *member) begin(t *transaction, posted chan<- *member) {
	if m.written != nil {
		m.conn = m.written
		m.conn.raw, m.conn.wrote = t.conn, true
		m.ready, m.last = m.conn.split()
		return
	}
	m.resume, m.ended, m.outcome, m.ready, m.last = make(chan error), false, nil, nil, nil
	m.conn = &conn{raw: t.conn, exchange: func(s []*statement) error {
		m.ready = s
		posted <- m
		return <-m.resume
	}}
	go func() {
		if m.outcome = call(m.fn, m.conn); m.outcome == nil {
			m.last, m.outcome = m.conn.last()
		}
		m.ended = true
		posted <- m
	}()
}

// end ends a unit that is written, when what it expected is known.
func (m *member) end() {
	if slices.ContainsFunc(m.ready, (*statement).disappoints) {
		m.outcome = store.ErrUnexpected
	}
	m.ready, m.ended = nil, true
}

// failed tells whether a unit has ended with an error and left something in the
// transaction.
func failed(group []*member) bool {
	return slices.ContainsFunc(group, func(m *member) bool { return m.ended && m.outcome != nil && m.conn.wrote })
}

// next are the units whose statements are sent now. Those that take a lock for
// their end wait until all others are as far: locks that are held for the rest
// of the transaction are taken last.
func next(group []*member) []*member {
	var now, end []*member
	for _, m := range group {
		switch {
		case m.ended || m.resume != nil && m.ready == nil:
		case endLock(m.ready) < len(m.ready):
			end = append(end, m)
		default:
			now = append(now, m)
		}
	}
	if len(now) > 0 {
		return now
	}
	return end
}

// arrange puts what several units send into one order: first what each has to do
// before it takes a lock for its end. Then come such locks, those of the whole
// group at once, so that all groups take them in one order.
func arrange(group []*member, parts [][]*statement) []*statement {
	rest := make([][]*statement, len(parts))
	for i, part := range parts {
		cut := endLock(part)
		parts[i], rest[i] = part[:cut], part[cut:]
	}
	all, end := weave(parts), weave(rest)
	if len(end) == 0 {
		return all
	}
	var locks []*statement
	for _, m := range group {
		for _, s := range slices.Concat(m.ready, m.last) {
			if s.last {
				locks = append(locks, s)
			}
		}
	}
	slices.SortFunc(locks, byNumber)
	return slices.Concat(all, locks, end)
}
