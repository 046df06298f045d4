package peer_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/lane"
)

// recorder records the messages that a notifier receives, and what it logs.
type recorder struct {
	mu       sync.Mutex
	received map[peer.Message]int
	log      bytes.Buffer
}

// Write implements io.Writer for the log.
func (e *recorder) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Write(line)
}

func (e *recorder) logged(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Contains(e.log.String(), text)
}

func (e *recorder) record(n peer.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.received == nil {
		e.received = map[peer.Message]int{}
	}
	e.received[n]++
}

func (e *recorder) count(kind byte, id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.received[peer.Message{Kind: kind, ID: id}]
}

func (e *recorder) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.received)
}

// startNotifier runs a notifier until the test ends. It first sends the given messages,
// all at once.
func startNotifier(t *testing.T, opts postgres.Options, node string, listen *pgx.ConnConfig, messages ...peer.Message) (*peer.Notifier, *recorder) {
	t.Helper()
	db, e := postgrestest.Open(t, opts), &recorder{}
	config := peer.Config{Node: node, Pool: db.Reserved(), Listen: listen, Timeout: opts.Timeout / 2, OnMessage: e.record}
	notifier := peer.NewNotifier(config, slog.New(slog.NewTextHandler(e, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, msg := range messages {
		notifier.Publish(msg.Kind, msg.ID)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = notifier.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return notifier, e
}

// proxied returns the options for the same database behind a proxy.
func proxied(t *testing.T, opts postgres.Options) (postgres.Options, *faultproxy.Proxy) {
	t.Helper()
	at, err := url.Parse(opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.Start(t, faultproxy.Options{Target: at.Host})
	at.Host = proxy.Addr()
	opts.URL = at.String()
	return opts, proxy
}

// sendFailed is what a notifier logs when it could not send.
const sendFailed = "cannot notify other nodes"

func TestNotifier(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	a, receivedByA := startNotifier(t, opts, "a", postgrestest.ListenConfig(t, opts))
	far, proxy := proxied(t, opts)
	b, receivedByB := startNotifier(t, opts, "b", postgrestest.ListenConfig(t, far))
	postgrestest.Eventually(t, "both listen", func() bool { return !a.Polling() && !b.Polling() })
	a.Publish(peer.RunCancelled, "run_1")
	a.Publish(peer.Deliverable, "")
	postgrestest.Eventually(t, "b is notified of a run", func() bool { return receivedByB.count(peer.RunCancelled, "run_1") == 1 })
	postgrestest.Eventually(t, "b is notified of a delivery", func() bool { return receivedByB.count(peer.Deliverable, "") == 1 })
	if receivedByA.count(peer.RunCancelled, "run_1") > 0 {
		t.Error("a receives its own message")
	}

	t.Run("too much for one message", func(t *testing.T) {
		receivedByB.reset()
		a.Publish(peer.RunCancelled, "run_3")
		for _, kind := range []byte{peer.RunChanged, peer.RunEnded} {
			for range 2000 {
				a.Publish(kind, uid.New(uid.Run))
			}
		}
		postgrestest.Eventually(t, "b is notified that runs changed", func() bool { return receivedByB.count(peer.RunChanged, "") > 0 })
		postgrestest.Eventually(t, "b is notified that runs ended", func() bool { return receivedByB.count(peer.RunEnded, "") > 0 })
		postgrestest.Eventually(t, "b is notified which run was cancelled", func() bool { return receivedByB.count(peer.RunCancelled, "run_3") == 1 })
		if receivedByB.count(peer.Everything, "") > 0 {
			t.Error("b receives Everything")
		}
	})
	t.Run("as much as fits", func(t *testing.T) {
		receivedByB.reset()
		kinds := []byte{
			peer.RunChanged, peer.RunEnded, peer.RunCancelled, peer.AnswerArrived, peer.EventRecorded, peer.WorkflowDeleted,
			peer.Deliverable, peer.Scheduled,
		}
		var sent []peer.Message
		for _, kind := range kinds {
			for range 24 {
				sent = append(sent, peer.Message{Kind: kind, ID: uid.New(uid.Run)})
			}
		}
		_, receivedByC := startNotifier(t, opts, "c", nil, sent...)
		for _, msg := range sent {
			postgrestest.Eventually(t, "b receives all messages", func() bool { return receivedByB.count(msg.Kind, msg.ID) == 1 })
		}
		if receivedByC.logged(sendFailed) {
			t.Error("the messages did not fit into one payload")
		}
	})
	t.Run("a single node sends nothing", func(t *testing.T) {
		// A message of b would tell a that it is not alone.
		b.Publish(peer.RunChanged, "last")
		postgrestest.Eventually(t, "b has sent everything", func() bool { return receivedByA.count(peer.RunChanged, "last") == 1 })
		a.SetSingleNode(true)
		receivedByB.reset()
		a.Publish(peer.RunChanged, "quiet")
		a.SetSingleNode(false)
		postgrestest.Eventually(t, "b receives Everything", func() bool { return receivedByB.count(peer.Everything, "") > 0 })
		if receivedByB.count(peer.RunChanged, "quiet") > 0 {
			t.Error("a single node sent a message")
		}
	})
	t.Run("after the connection was lost", func(t *testing.T) {
		receivedByB.reset()
		proxy.Cut()
		postgrestest.Eventually(t, "b listens again and takes nothing for granted", func() bool { return receivedByB.count(peer.Everything, "") > 0 })
		postgrestest.Eventually(t, "b listens again", func() bool { return !b.Polling() })
		a.Publish(peer.RunEnded, "run_2")
		postgrestest.Eventually(t, "b receives messages again", func() bool { return receivedByB.count(peer.RunEnded, "run_2") == 1 })
	})
}

// TestNotifierPollsWithoutListening checks that a node polls if it cannot listen.
func TestNotifierPollsWithoutListening(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	notifier, received := startNotifier(t, postgrestest.New(t), "a", nil)
	for _, kind := range []byte{peer.RunEnded, peer.EventRecorded, peer.Deliverable, peer.Everything} {
		postgrestest.Eventually(t, "it polls for "+string(kind), func() bool { return received.count(kind, "") >= 1 })
	}
	if !notifier.Polling() {
		t.Error("a node that cannot listen does not poll")
	}
}

// TestNotifierAfterFailedSend checks that after a failed send other nodes are
// told to check everything.
func TestNotifierAfterFailedSend(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	direct := postgrestest.New(t)
	far, proxy := proxied(t, direct)
	a, sent := startNotifier(t, far, "a", nil)
	b, received := startNotifier(t, direct, "b", postgrestest.ListenConfig(t, direct))
	postgrestest.Eventually(t, "b listens", func() bool { return !b.Polling() && received.count(peer.Everything, "") > 0 })
	proxy.Refuse(true)
	proxy.Cut()
	a.Publish(peer.RunCancelled, "run_1")
	postgrestest.Eventually(t, "the send fails", func() bool { return sent.logged(sendFailed) })
	received.reset()
	proxy.Refuse(false)
	postgrestest.Eventually(t, "b is notified of it, or of Everything", func() bool {
		return received.count(peer.RunCancelled, "run_1")+received.count(peer.Everything, "") > 0
	})
}

// TestNotifierDetectsSilentConnection checks that a connection without any
// traffic is detected as lost.
func TestNotifierDetectsSilentConnection(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	far, proxy := proxied(t, opts)
	opts.Timeout = postgrestest.ShortTimeout
	notifier, _ := startNotifier(t, opts, "a", postgrestest.ListenConfig(t, far))
	postgrestest.Eventually(t, "it listens", func() bool { return !notifier.Polling() })
	proxy.BlackHole(true)
	postgrestest.Eventually(t, "it notices", notifier.Polling)
	proxy.BlackHole(false)
	postgrestest.Eventually(t, "it listens again", func() bool { return !notifier.Polling() })
}
