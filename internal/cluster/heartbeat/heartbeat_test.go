package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/heartbeat"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/run"
)

const life = 10 * time.Second

// database is a registry and a queue in memory. Its clock is that of the synctest bubble.
type database struct {
	mu         sync.Mutex
	down       bool
	slow       time.Duration // duration of reads of the queue
	hanging    atomic.Int64  // heartbeats without a response
	expires    map[string]time.Time
	dead       map[string]bool
	held       map[string][]run.OwnedRun
	unknown    []string
	taken      []string
	terminated []string
	forgotten  []string
	beats      int
}

var errDown = errors.New("the database is down")

func newDatabase() *database {
	return &database{expires: map[string]time.Time{}, dead: map[string]bool{}, held: map[string][]run.OwnedRun{}}
}

func (d *database) Heartbeat(ctx context.Context, n node.Node, capacity int, life time.Duration, _ clock.Record) (node.Heartbeat, error) {
	if d.hanging.Add(-1) >= 0 {
		<-ctx.Done()
		return node.Heartbeat{}, fmt.Errorf("timeout: %w", ctx.Err())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return node.Heartbeat{}, errDown
	}
	d.beats++
	b := node.Heartbeat{Now: time.Now(), Dead: d.dead[n.ID], Capacity: capacity, Nodes: len(d.expires)}
	if !b.Dead {
		d.expires[n.ID] = time.Now().Add(life)
	}
	for id, at := range d.expires {
		if id != n.ID && (b.NextExpiry == nil || at.Before(*b.NextExpiry)) {
			b.NextExpiry = &at
		}
	}
	return b, nil
}

func (d *database) Expired(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return nil, errDown
	}
	var expired []string
	for id, at := range d.expires {
		if at.Before(time.Now()) {
			d.dead[id] = true
			expired = append(expired, id)
		}
	}
	return expired, nil
}

func (d *database) Forget(_ context.Context, id string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.expires[id]; known && !d.dead[id] {
		return false, nil
	}
	delete(d.expires, id)
	delete(d.dead, id)
	d.forgotten = append(d.forgotten, id)
	return true, nil
}

func (d *database) TerminateSessions(_ context.Context, id string) error {
	d.set(func() { d.terminated = append(d.terminated, id) })
	return nil
}

func (d *database) Retire(_ context.Context, id string) error {
	d.set(func() { d.dead[id] = true })
	return nil
}

func (d *database) TryLead(context.Context, string, string, time.Duration) (bool, error) {
	return true, nil
}

func (d *database) TakeOver(_ context.Context, id string, _ bool) (int, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.expires[id]; known && !d.dead[id] {
		return 0, false, nil
	}
	d.taken = append(d.taken, id)
	n := len(d.held[id])
	delete(d.held, id)
	return n, false, nil
}

func (d *database) OwnedRuns(_ context.Context, id string) ([]run.OwnedRun, error) {
	time.Sleep(d.delay())
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.held[id]), nil
}

func (d *database) delay() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow
}

func (d *database) Sweep(context.Context) (int, bool, []string, error) { return 0, false, nil, nil }

func (d *database) UnknownNodes(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.unknown), nil
}

func (d *database) Recount(context.Context, string) (bool, error) { return false, nil }

func (d *database) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// fakeExecutor is a dispatcher and an executor that records its calls.
type fakeExecutor struct {
	mu      sync.Mutex
	leases  []run.Lease
	has     map[string]bool
	aborted []run.Lease
	nudged  []string
	resumed []string
	watched []string
	dropped []time.Time
}

func (h *fakeExecutor) Leases() []run.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.leases)
}

func (h *fakeExecutor) Has(id string) bool { return h.has[id] }

func (h *fakeExecutor) AbortLease(l run.Lease) { h.note(func() { h.aborted = append(h.aborted, l) }) }

func (h *fakeExecutor) AbortAll() {
	h.note(func() { h.dropped, h.leases = append(h.dropped, time.Now()), nil })
}

func (h *fakeExecutor) Nudge(id string) { h.note(func() { h.nudged = append(h.nudged, id) }) }

func (h *fakeExecutor) Resume(w run.Wake) {
	h.note(func() {
		h.resumed = append(h.resumed, w.RunID)
		h.leases = append(h.leases, run.Lease{RunID: w.RunID, Epoch: w.Epoch})
	})
}

func (h *fakeExecutor) Watch(w run.Wake) { h.note(func() { h.watched = append(h.watched, w.RunID) }) }

func (h *fakeExecutor) DeleteStaleJobs(context.Context) error { return nil }
func (h *fakeExecutor) SlotFreed(string)                      {}
func (h *fakeExecutor) Forget()                               {}

func (h *fakeExecutor) OnTakeover() {}

func (h *fakeExecutor) note(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func newKeeper(d *database, h *fakeExecutor, id string) *heartbeat.Keeper {
	config := heartbeat.Config{Node: node.Node{ID: id}, Capacity: 1, TTL: life, OnHeartbeat: func(node.Heartbeat) {}, OnClockJump: func() {}}
	return heartbeat.New(config, d, d, h, h, slog.New(slog.DiscardHandler))
}

// keeper starts a keeper that runs until the end of the test.
func keeper(t *testing.T, d *database, h *fakeExecutor, id string) *heartbeat.Keeper {
	t.Helper()
	k := newKeeper(d, h, id)
	if err := k.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return k
}

func held(id string, epoch int64) run.OwnedRun {
	return run.OwnedRun{Wake: run.Wake{RunID: id, Epoch: epoch}}
}

// after lets time pass. It takes the locks so that the race detector sees that the
// reads of the test happened before.
func after(d *database, h *fakeExecutor, pause time.Duration) {
	d.set(func() {})
	h.note(func() {})
	time.Sleep(pause)
	synctest.Wait()
}

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestNoLeaseBeforeTheFirstHeartbeat(t *testing.T) {
	t.Parallel()
	if newKeeper(newDatabase(), &fakeExecutor{}, "a").HoldsLease() {
		t.Error("a node without a heartbeat owns runs")
	}
}

// The lease ends before other nodes may take over the runs, runs are dropped once, and
// runs that the node still owns are resumed after the next heartbeat.
func TestLeaseEndsBeforeExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{}
		k := keeper(t, d, h, "a")
		after(d, h, 4*life)
		if !k.HoldsLease() || len(h.dropped) > 0 {
			t.Fatal("a node with heartbeats is not trusted")
		}
		d.set(func() { d.down, d.held["a"] = true, []run.OwnedRun{held("r", 1)} })
		after(d, h, 2*life)
		d.mu.Lock()
		expiry := d.expires["a"]
		d.mu.Unlock()
		if k.HoldsLease() || len(h.dropped) != 1 || !h.dropped[0].Before(expiry.Add(-life/10)) {
			t.Fatalf("dropped at %v; the node expires at %v", h.dropped, expiry)
		}
		d.set(func() { d.down = false })
		after(d, h, life/2)
		if !k.HoldsLease() {
			t.Error("a node is not trusted after a new heartbeat")
		}
		same(t, "resumed immediately", h.resumed, []string{"r"})
		d.set(func() { d.down = true })
		after(d, h, 2*life)
		if len(h.dropped) != 2 || k.Stats().Lost != 2 {
			t.Errorf("dropped %v, lost %d", h.dropped, k.Stats().Lost)
		}
	})
}

func TestTrustLostAgainBeforeReconciling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{}
		keeper(t, d, h, "a")
		d.set(func() { d.slow = time.Hour })
		for n := 1; n <= 3; n++ {
			d.set(func() { d.down = true })
			after(d, h, 2*life)
			d.set(func() { d.down = false })
			after(d, h, life/2)
			if len(h.dropped) != n {
				t.Fatalf("dropped %d times, want %d", len(h.dropped), n)
			}
		}
		d.set(func() { d.slow = 0 })
		after(d, h, 2*time.Hour)
	})
}

func TestSlowQueueDoesNotDelayHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{}
		k := keeper(t, d, h, "a")
		d.set(func() { d.slow = 3 * life })
		after(d, h, 10*life)
		if !k.HoldsLease() || len(h.dropped) > 0 || d.beats < 30 {
			t.Errorf("holds its lease: %t, dropped %v, %d heartbeats", k.HoldsLease(), h.dropped, d.beats)
		}
		d.set(func() { d.slow = 0 })
		after(d, h, 4*life)
	})
}

// Reconciling on request aborts invalid leases but resumes no runs, because they may
// just be passed between goroutines.
func TestReconcileOnRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{leases: []run.Lease{{RunID: "r", Epoch: 1}}}
		k := keeper(t, d, h, "a")
		timed := held("timed", 1)
		timed.LocalTimer = true
		d.set(func() { d.held["a"] = []run.OwnedRun{held("r", 2), held("s", 1), timed} })
		for range 3 {
			k.Reconcile()
			after(d, h, time.Millisecond)
		}
		same(t, "watched", slices.Compact(h.watched), []string{"timed"})
		same(t, "aborted", slices.Compact(h.aborted), []run.Lease{{RunID: "r", Epoch: 1}})
		same(t, "resumed", h.resumed, nil)
	})
}

// The runs of a dead node are taken over soon after it expires, and the node is
// removed.
func TestTakeoverAfterNodeDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{}
		keeper(t, d, h, "a")
		keeper(t, d, &fakeExecutor{}, "b")
		d.set(func() { d.expires["c"], d.held["c"] = time.Now().Add(life), []run.OwnedRun{held("r", 1), held("s", 1)} })
		after(d, h, life-time.Second)
		same(t, "taken over too early", d.taken, nil)
		after(d, h, 3*time.Second)
		if !slices.Contains(d.taken, "c") || !slices.Contains(d.forgotten, "c") || len(d.held["c"]) > 0 {
			t.Errorf("taken over from %v, forgotten %v", d.taken, d.forgotten)
		}
		if !slices.Contains(d.terminated, "c") || slices.Contains(d.terminated, "a") || slices.Contains(d.terminated, "b") {
			t.Errorf("terminated the sessions of %v", d.terminated)
		}
		if slices.Contains(d.taken, "a") || slices.Contains(d.taken, "b") {
			t.Errorf("taken over from live nodes: %v", d.taken)
		}
	})
}

// A node that was declared dead drops its runs and registers again.
func TestExpiredNodeDropsItsRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{leases: []run.Lease{{RunID: "r", Epoch: 1}}}
		k := keeper(t, d, h, "a")
		d.set(func() { d.dead["a"], d.expires["a"] = true, time.Now().Add(-time.Second) })
		after(d, h, life/2)
		if len(h.dropped) != 1 || !slices.Contains(d.forgotten, "a") {
			t.Errorf("dropped %v, forgotten %v", h.dropped, d.forgotten)
		}
		after(d, h, life)
		if !k.HoldsLease() {
			t.Error("a node that registered again is not trusted")
		}
	})
}

// Runs of unknown nodes are taken over if the nodes are unknown twice in a row.
func TestTakeoverFromUnknownNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{}
		keeper(t, d, h, "a")
		after(d, h, time.Second)
		d.set(func() { d.unknown = []string{"x", "y"} })
		after(d, h, life)
		same(t, "taken over at first sight", d.taken, nil)
		d.set(func() { d.unknown = []string{"x"} }) // y sent a heartbeat
		after(d, h, life)
		same(t, "taken over from", d.taken, []string{"x"})
		same(t, "forgotten", d.forgotten, []string{"x"})
	})
}

func TestReconcileAfterHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		h := &fakeExecutor{
			has:    map[string]bool{"queued": true},
			leases: []run.Lease{{RunID: "mine", Epoch: 3}, {RunID: "answered", Epoch: 1}, {RunID: "old", Epoch: 1}, {RunID: "lost", Epoch: 1}, {RunID: "starting"}},
		}
		answered, timed := held("answered", 1), held("timed", 1)
		answered.AnswerArrived, timed.LocalTimer = true, true
		d.set(func() {
			d.held["a"] = []run.OwnedRun{held("mine", 3), answered, held("old", 2), held("queued", 1), held("idle", 1), timed}
		})
		keeper(t, d, h, "a")
		after(d, h, life*3/10+time.Second)
		same(t, "aborted", h.aborted, []run.Lease{{RunID: "old", Epoch: 1}, {RunID: "lost", Epoch: 1}})
		same(t, "nudged", h.nudged, []string{"answered"})
		same(t, "watched", h.watched, []string{"timed"})
		same(t, "resumed at first sight", h.resumed, nil)
		after(d, h, life*3/10)
		same(t, "resumed", h.resumed, []string{"idle"})
	})
}

// A node that leaves requeues its runs and sends no more heartbeats.
func TestLeaveRequeuesRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &fakeExecutor{}
		k := keeper(t, d, h, "a")
		d.set(func() { d.held["a"] = []run.OwnedRun{held("r", 1)} })
		if err := k.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(d, h, 3*life)
		if _, known := d.expires["a"]; known || len(d.held["a"]) > 0 {
			t.Errorf("registered %t, owns %v", known, d.held["a"])
		}
	})
}

// A database that takes long to respond at startup does not keep a node from
// starting.
func TestJoinRetriesHeartbeats(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hanging int64
		joins   bool
	}{
		"a few time out":   {3, true},
		"all of them hang": {1 << 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDatabase()
				d.hanging.Store(test.hanging)
				began := time.Now()
				err := newKeeper(d, &fakeExecutor{}, "node_a").Join(t.Context())
				if (err == nil) != test.joins {
					t.Errorf("join: %v", err)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
