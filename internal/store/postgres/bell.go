package postgres

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/clock"
)

const (
	channel = "stepmill"
	// ringEvery bounds how often a node rings.
	ringEvery = 100 * time.Millisecond
	// most is of how many of a kind a ring tells: of all kinds that fits into one.
	most = 24
	// lookEvery is how often a node that hears nothing looks at what somebody here
	// may wait for. Every so many times it looks for what there is to send, and at
	// all the rest: who makes other work has it done, and when that one is gone
	// others look at once.
	lookEvery, lookForDeliveries, lookAround = time.Second, 2, 15
	// listenAgain is when a lost connection is made anew.
	listenAgain = time.Second
	// stillThere is how often a quiet connection is asked whether it is alive, and
	// how long it has to answer.
	stillThere = 5 * time.Second
)

// News is something that nodes tell each other.
type News struct {
	// Kind says what it is about, Everything stands for any of them.
	Kind byte
	// ID is that of what it is about; empty, it is about any of its kind.
	ID string
}

// Kinds of news.
const (
	Everything      byte = '*'
	RunChanged      byte = 'r'
	RunEnded        byte = 'e'
	RunCancelled    byte = 'c'
	RunStirred      byte = 's'
	EventRecorded   byte = 'w'
	Deliverable     byte = 'd'
	Scheduled       byte = 't'
	WorkflowDeleted byte = 'x'
)

// Bell carries news between nodes. Nothing depends on it but time: what is not
// heard is found a little later by looking.
type Bell struct {
	db     *DB
	node   string
	listen *pgx.ConnConfig // nil: this node cannot listen
	hear   func(News)
	log    *slog.Logger

	alone atomic.Bool
	deaf  atomic.Bool

	mu      sync.Mutex
	waiting map[byte]map[string]bool
	ring    chan struct{}
}

// NewBell makes the bell of a node. Its address for listening is a direct one;
// without one, or while the connection is lost, hear is told of Everything now
// and then, and of what others may wait for every second.
func NewBell(db *DB, node string, listen *pgx.ConnConfig, hear func(News), log *slog.Logger) *Bell {
	b := &Bell{db: db, node: node, listen: listen, hear: hear, log: log, waiting: map[byte]map[string]bool{}, ring: make(chan struct{}, 1)}
	b.deaf.Store(true)
	return b
}

// Deaf tells that news of others is not heard at the moment.
func (b *Bell) Deaf() bool { return b.deaf.Load() }

// Alone says whether there are other nodes: without them nobody is told. Who
// has just come is told of Everything.
func (b *Bell) Alone(alone bool) {
	if b.alone.Swap(alone) && !alone {
		b.Tell(Everything, "")
	}
}

// Tell tells the other nodes, soon.
func (b *Bell) Tell(kind byte, id string) {
	if !b.alone.Load() {
		b.add(News{kind, id})
	}
}

// add keeps something to tell. Of what there is too much, it is kept that there is.
func (b *Bell) add(n News) {
	b.mu.Lock()
	first := len(b.waiting) == 0
	switch ids := b.waiting[n.Kind]; {
	case ids[""]:
	case n.ID == "" || ids == nil || len(ids) == most:
		if ids != nil {
			n.ID = ""
		}
		b.waiting[n.Kind] = map[string]bool{n.ID: true}
	default:
		ids[n.ID] = true
	}
	b.mu.Unlock()
	if first {
		select {
		case b.ring <- struct{}{}:
		default:
		}
	}
}

// Run rings and listens until the context ends. The first ring tells the others
// that there is one more, who would hear of it with their next heartbeat only.
func (b *Bell) Run(ctx context.Context) error {
	b.add(News{Kind: Everything})
	var parts sync.WaitGroup
	parts.Go(func() { b.ringOut(ctx) })
	parts.Go(func() { b.look(ctx) })
	if b.listen != nil {
		b.listenOn(ctx)
	}
	parts.Wait()
	return nil
}

// ringOut tells what has gathered, ten times a second at most.
func (b *Bell) ringOut(ctx context.Context) {
	for {
		select {
		case <-b.ring:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			b.ringLast(ctx)
			return
		}
		pause := ringEvery
		if err := b.notify(ctx, b.gathered()); err != nil {
			b.log.Debug("cannot tell other nodes what happened; trying again", "error", err)
			b.Tell(Everything, "") // they cannot know what they have missed
			pause = listenAgain
		}
		clock.Sleep(ctx, pause)
	}
}

// ringLast tells what has happened just before the end.
func (b *Bell) ringLast(ctx context.Context) {
	b.mu.Lock()
	anything := len(b.waiting) > 0
	b.mu.Unlock()
	if anything {
		_ = b.notify(context.WithoutCancel(ctx), b.gathered())
	}
}

func (b *Bell) notify(ctx context.Context, text string) error {
	limit, cancel := context.WithTimeout(ctx, stillThere)
	defer cancel()
	_, err := b.db.reserve.Exec(limit, `SELECT pg_notify($1, $2)`, channel, text)
	return err
}

// gathered is what there is to tell.
func (b *Bell) gathered() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var text strings.Builder
	text.WriteString(b.node)
	for kind, ids := range b.waiting {
		for id := range ids {
			text.WriteString("\n" + string(kind) + id)
		}
	}
	clear(b.waiting)
	return text.String()
}

// look takes the place of hearing while nothing can be heard.
func (b *Bell) look(ctx context.Context) {
	for n := 1; clock.Sleep(ctx, lookEvery); n++ {
		switch {
		case !b.Deaf() || b.alone.Load():
		case n%lookAround == 0:
			b.hear(News{Kind: Everything})
		default:
			b.hear(News{Kind: RunEnded})
			b.hear(News{Kind: EventRecorded})
			if n%lookForDeliveries == 0 {
				b.hear(News{Kind: Deliverable})
			}
		}
	}
}

func (b *Bell) listenOn(ctx context.Context) {
	told := false // of what lasts it is told once
	for ctx.Err() == nil {
		err := b.listenOnce(ctx)
		if heard := !b.deaf.Swap(true); heard || !told {
			told = true
			if ctx.Err() == nil {
				b.log.Warn("cannot listen to other nodes; looking instead", "error", err)
			}
		}
		if !clock.Sleep(ctx, listenAgain) {
			return
		}
	}
}

func (b *Bell) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, b.listen)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	b.deaf.Store(false)
	b.hear(News{Kind: Everything}) // something may have been missed
	for {
		quiet, cancel := context.WithTimeout(ctx, stillThere)
		note, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			b.heard(note.Payload)
		case ctx.Err() != nil || quiet.Err() == nil:
			return err
		default:
			if err := answers(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// answers asks a connection whether it is alive.
func answers(ctx context.Context, conn *pgx.Conn) error {
	limit, cancel := context.WithTimeout(ctx, stillThere)
	defer cancel()
	return conn.Ping(limit)
}

func (b *Bell) heard(payload string) {
	from, rest, _ := strings.Cut(payload, "\n")
	if from == b.node {
		return
	}
	b.alone.Store(false)
	for line := range strings.SplitSeq(rest, "\n") {
		if line != "" {
			b.hear(News{Kind: line[0], ID: line[1:]})
		}
	}
}
