// Package peer passes messages between nodes that share a PostgreSQL database. They say
// what has changed; what it changed to is in the database.
package peer

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/pubsub"
)

const (
	channel = "stepmill"
	// sendEvery bounds how often a node sends.
	sendEvery = 100 * time.Millisecond
	// maxPending bounds the ids of one kind, so that a notification of all kinds
	// fits into one payload.
	maxPending = 24
	// pollInterval is how often a node that cannot listen checks for what its
	// clients may wait for. Every deliveriesEvery ticks it also checks for
	// deliveries, and every everythingEvery ticks for everything else: the node
	// that creates other work also executes it, and if that node dies the others
	// check at once.
	pollInterval, deliveriesEvery, everythingEvery = time.Second, 2, 15
	// reconnectDelay is how long the listener waits before it reconnects.
	reconnectDelay = time.Second
	// pingInterval is how often a quiet connection is pinged.
	pingInterval = 5 * time.Second
)

// Message is a notification between nodes.
type Message struct {
	// Kind is the kind of change. Everything stands for all of them.
	Kind byte
	// ID identifies what changed. If it is empty, anything of the kind may have
	// changed.
	ID string
}

// Kinds of messages.
const (
	Everything      byte = '*'
	RunChanged      byte = 'r'
	RunEnded        byte = 'e'
	RunCancelled    byte = 'c'
	AnswerArrived   byte = 's'
	EventRecorded   byte = 'w'
	Deliverable     byte = 'd'
	Scheduled       byte = 't'
	WorkflowDeleted byte = 'x'
)

// Notifier passes messages between nodes. Messages only save time: a node that
// misses one finds the change by polling.
type Notifier struct {
	Config
	log *slog.Logger

	singleNode atomic.Bool
	polling    atomic.Bool

	mu      sync.Mutex
	pending map[byte]map[string]bool
	wake    chan struct{}
}

// Config configures a notifier.
type Config struct {
	Node string
	Pool *pgxpool.Pool
	// Listen is the connection for listening, which must be direct. It is nil if this
	// node cannot listen.
	Listen *pgx.ConnConfig
	// Timeout bounds the sending of a message, and how long the connection that listens
	// may take to respond.
	Timeout time.Duration
	// OnMessage is called for messages of other nodes. While this node does not listen,
	// it is called periodically with Everything, and about every second with the kinds
	// that clients may wait for.
	OnMessage func(Message)
}

// NewNotifier returns the notifier of a node.
func NewNotifier(config Config, log *slog.Logger) *Notifier {
	n := &Notifier{Config: config, log: log, pending: map[byte]map[string]bool{}, wake: make(chan struct{}, 1)}
	n.polling.Store(true)
	return n
}

// Polling reports whether the node polls because it does not receive messages at
// the moment.
func (n *Notifier) Polling() bool { return n.polling.Load() }

// SetSingleNode sets whether this is the only node, in which case nothing is
// sent. When another node joins, it is sent Everything.
func (n *Notifier) SetSingleNode(single bool) {
	if n.singleNode.Swap(single) && !single {
		n.Publish(Everything, "")
	}
}

// Publish queues a message to the other nodes.
func (n *Notifier) Publish(kind byte, id string) {
	if !n.singleNode.Load() {
		n.add(Message{kind, id})
	}
}

// add queues a message. If there are too many of a kind, one message for the
// whole kind replaces them.
func (n *Notifier) add(msg Message) {
	n.mu.Lock()
	first := len(n.pending) == 0
	switch ids := n.pending[msg.Kind]; {
	case ids[""]:
	case msg.ID == "" || ids == nil || len(ids) == maxPending:
		if ids != nil {
			msg.ID = ""
		}
		n.pending[msg.Kind] = map[string]bool{msg.ID: true}
	default:
		ids[msg.ID] = true
	}
	n.mu.Unlock()
	if first {
		pubsub.Signal(n.wake)
	}
}

// Run sends and listens until the context ends. The first message announces this
// node to the others, which would otherwise learn of it with their next
// heartbeat.
func (n *Notifier) Run(ctx context.Context) error {
	n.add(Message{Kind: Everything})
	var parts sync.WaitGroup
	parts.Go(func() { n.sendLoop(ctx) })
	parts.Go(func() { n.poll(ctx) })
	if n.Listen != nil {
		n.listenLoop(ctx)
	}
	parts.Wait()
	return nil
}

// sendLoop sends pending messages, at most ten times a second.
func (n *Notifier) sendLoop(ctx context.Context) {
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			n.sendLast(ctx)
			return
		}
		pause := sendEvery
		if err := n.notify(ctx, n.takePending()); err != nil {
			n.log.Debug("cannot notify other nodes; retrying", "error", err)
			n.Publish(Everything, "") // they cannot know what they missed
			pause = reconnectDelay
		}
		clock.Sleep(ctx, pause)
	}
}

func (n *Notifier) sendLast(ctx context.Context) {
	n.mu.Lock()
	pending := len(n.pending) > 0
	n.mu.Unlock()
	if pending {
		_ = n.notify(context.WithoutCancel(ctx), n.takePending())
	}
}

func (n *Notifier) notify(ctx context.Context, text string) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	_, err := n.Pool.Exec(timeoutCtx, `SELECT pg_notify($1, $2)`, channel, text)
	return err
}

// takePending encodes and clears the pending messages.
func (n *Notifier) takePending() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var text strings.Builder
	text.WriteString(n.Node)
	for kind, ids := range n.pending {
		for id := range ids {
			text.WriteString("\n" + string(kind) + id)
		}
	}
	clear(n.pending)
	return text.String()
}

// poll replaces messages while the node cannot listen.
func (n *Notifier) poll(ctx context.Context) {
	for tick := 1; clock.Sleep(ctx, pollInterval); tick++ {
		switch {
		case !n.Polling() || n.singleNode.Load():
		case tick%everythingEvery == 0:
			n.OnMessage(Message{Kind: Everything})
		default:
			n.OnMessage(Message{Kind: RunEnded})
			n.OnMessage(Message{Kind: EventRecorded})
			if tick%deliveriesEvery == 0 {
				n.OnMessage(Message{Kind: Deliverable})
			}
		}
	}
}

func (n *Notifier) listenLoop(ctx context.Context) {
	logged := false // a lasting failure is logged once
	for ctx.Err() == nil {
		err := n.listenOnce(ctx)
		if wasListening := !n.polling.Swap(true); wasListening || !logged {
			logged = true
			if ctx.Err() == nil {
				n.log.Warn("cannot listen for messages of other nodes; polling instead", "error", err)
			}
		}
		if !clock.Sleep(ctx, reconnectDelay) {
			return
		}
	}
}

func (n *Notifier) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, n.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	n.polling.Store(false)
	n.OnMessage(Message{Kind: Everything}) // messages may have been missed
	for {
		waitCtx, cancel := context.WithTimeout(ctx, pingInterval)
		notification, err := conn.WaitForNotification(waitCtx)
		cancel()
		switch {
		case err == nil:
			n.receive(notification.Payload)
		case ctx.Err() != nil || waitCtx.Err() == nil:
			return err
		default:
			if err := n.ping(ctx, conn); err != nil {
				return err
			}
		}
	}
}

func (n *Notifier) ping(ctx context.Context, conn *pgx.Conn) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	return conn.Ping(timeoutCtx)
}

// AnnounceTakeover tells the other nodes, in a transaction that removes a dead one, that
// deliveries of that node wait for another.
func AnnounceTakeover(ctx context.Context, tx pgx.Tx, node string) error {
	_, err := tx.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, node+"\n"+string(Deliverable))
	return err
}

func (n *Notifier) receive(payload string) {
	from, rest, _ := strings.Cut(payload, "\n")
	if from == n.Node {
		return
	}
	n.singleNode.Store(false)
	for line := range strings.SplitSeq(rest, "\n") {
		if line != "" {
			n.OnMessage(Message{Kind: line[0], ID: line[1:]})
		}
	}
}
