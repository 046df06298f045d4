package membership_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/membership"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/run"
)

const life = 10 * time.Second

// database is a registry and a queue in memory. Its clock is that of the bubble.
type database struct {
	mu      sync.Mutex
	away    bool
	slow    time.Duration // how long reads of the queue take
	expires map[string]time.Time
	dead    map[string]bool
	held    map[string][]run.Held
	strays  []string
	taken   []string
	severed []string
	forgot  []string
	beats   int
}

var errAway = errors.New("away")

func newDatabase() *database {
	return &database{expires: map[string]time.Time{}, dead: map[string]bool{}, held: map[string][]run.Held{}}
}

func (d *database) Beat(_ context.Context, n node.Node, capacity int, life time.Duration) (node.Beat, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return node.Beat{}, errAway
	}
	d.beats++
	b := node.Beat{Now: time.Now(), Dead: d.dead[n.ID], Capacity: capacity, Nodes: len(d.expires)}
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
	if d.away {
		return nil, errAway
	}
	var gone []string
	for id, at := range d.expires {
		if at.Before(time.Now()) {
			d.dead[id] = true
			gone = append(gone, id)
		}
	}
	return gone, nil
}

func (d *database) Forget(_ context.Context, id string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.expires[id]; known && !d.dead[id] {
		return false, nil
	}
	delete(d.expires, id)
	delete(d.dead, id)
	d.forgot = append(d.forgot, id)
	return true, nil
}

func (d *database) Sever(_ context.Context, id string) error {
	d.set(func() { d.severed = append(d.severed, id) })
	return nil
}

func (d *database) Retire(_ context.Context, id string) error {
	d.set(func() { d.dead[id] = true })
	return nil
}

func (d *database) Tidy(context.Context) error { return nil }

func (d *database) Serve(context.Context, string, string, time.Duration) (bool, error) {
	return true, nil
}

func (d *database) TakeFrom(_ context.Context, id string, _ bool) (int, bool, error) {
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

func (d *database) Held(_ context.Context, id string) ([]run.Held, error) {
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

func (d *database) Strays(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.strays), nil
}

func (d *database) Recount(context.Context, string) (bool, error) { return false, nil }

func (d *database) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// hands note what they are told.
type hands struct {
	mu      sync.Mutex
	leases  []run.Lease
	has     map[string]bool
	aborted []run.Lease
	stirred []string
	taken   []string
	watched []string
	dropped []time.Time
}

func (h *hands) Leases() []run.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.leases)
}

func (h *hands) Has(id string) bool { return h.has[id] }

func (h *hands) Abort(l run.Lease) { h.note(func() { h.aborted = append(h.aborted, l) }) }

func (h *hands) DropAll() {
	h.note(func() { h.dropped, h.leases = append(h.dropped, time.Now()), nil })
}

func (h *hands) Stir(id string) { h.note(func() { h.stirred = append(h.stirred, id) }) }

func (h *hands) TakeUp(w run.Wake) {
	h.note(func() {
		h.taken = append(h.taken, w.RunID)
		h.leases = append(h.leases, run.Lease{RunID: w.RunID, Epoch: w.Epoch})
	})
}

func (h *hands) Watch(w run.Wake) { h.note(func() { h.watched = append(h.watched, w.RunID) }) }

func (h *hands) PassOn(string) {}

func (h *hands) TookOver() {}

func (h *hands) note(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// member joins and lives until the end of the test.
func member(t *testing.T, d *database, h *hands, id string) *membership.Member {
	t.Helper()
	m := membership.New(membership.Config{Node: node.Node{ID: id}, Capacity: 1, Life: life, Told: func(node.Beat) {}}, d, d, h, slog.New(slog.DiscardHandler))
	if err := m.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

func held(id string, epoch int64) run.Held { return run.Held{Wake: run.Wake{RunID: id, Epoch: epoch}} }

// after lets time pass. What the test has read until then is read before what
// happens now.
func after(d *database, h *hands, pause time.Duration) {
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

// Trust ends before others may take the runs, all work is dropped once, and what
// is still ours is taken up again when the node is seen again.
func TestTrust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{}
		m := member(t, d, h, "a")
		after(d, h, 4*life)
		if !m.Trusted() || len(h.dropped) > 0 {
			t.Fatal("a node that is seen is not trusted")
		}
		d.set(func() { d.away, d.held["a"] = true, []run.Held{held("r", 1)} })
		after(d, h, 2*life)
		d.mu.Lock()
		expiry := d.expires["a"]
		d.mu.Unlock()
		if m.Trusted() || len(h.dropped) != 1 || !h.dropped[0].Before(expiry.Add(-life/10)) {
			t.Fatalf("dropped at %v; the node expires at %v", h.dropped, expiry)
		}
		d.set(func() { d.away = false })
		after(d, h, life/2)
		if !m.Trusted() {
			t.Error("a node that is seen again is not trusted")
		}
		same(t, "taken up at once", h.taken, []string{"r"})
		d.set(func() { d.away = true })
		after(d, h, 2*life)
		if len(h.dropped) != 2 || m.Stats().Lost != 2 {
			t.Errorf("dropped %v, lost %d", h.dropped, m.Stats().Lost)
		}
	})
}

// A node that loses trust again before it could look at its runs drops them
// again.
func TestTrustLostTwiceWithoutALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{}
		member(t, d, h, "a")
		d.set(func() { d.slow = time.Hour })
		for n := 1; n <= 3; n++ {
			d.set(func() { d.away = true })
			after(d, h, 2*life)
			d.set(func() { d.away = false })
			after(d, h, life/2)
			if len(h.dropped) != n {
				t.Fatalf("dropped %d times, want %d", len(h.dropped), n)
			}
		}
		d.set(func() { d.slow = 0 })
		after(d, h, 2*time.Hour)
	})
}

// Heartbeats do not wait for anything else.
func TestASlowQueueDoesNotEndTrust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{}
		m := member(t, d, h, "a")
		d.set(func() { d.slow = 3 * life })
		after(d, h, 10*life)
		if !m.Trusted() || len(h.dropped) > 0 || d.beats < 30 {
			t.Errorf("trusted %t, dropped %v, %d heartbeats", m.Trusted(), h.dropped, d.beats)
		}
		d.set(func() { d.slow = 0 })
		after(d, h, 4*life)
	})
}

// Who is asked to look finds what is void, and takes nothing up: that may be on
// its way.
func TestLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{leases: []run.Lease{{RunID: "r", Epoch: 1}}}
		m := member(t, d, h, "a")
		armed := held("armed", 1)
		armed.Armed = true
		d.set(func() { d.held["a"] = []run.Held{held("r", 2), held("s", 1), armed} })
		for range 3 {
			m.Look()
			after(d, h, time.Millisecond)
		}
		same(t, "watched", slices.Compact(h.watched), []string{"armed"})
		same(t, "aborted", slices.Compact(h.aborted), []run.Lease{{RunID: "r", Epoch: 1}})
		same(t, "taken up", h.taken, nil)
	})
}

// The runs of a node that is gone are taken within the promised time, and it is
// forgotten.
func TestReap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{}
		member(t, d, h, "a")
		member(t, d, &hands{}, "b")
		d.set(func() { d.expires["c"], d.held["c"] = time.Now().Add(life), []run.Held{held("r", 1), held("s", 1)} })
		after(d, h, life-time.Second)
		same(t, "taken from too early", d.taken, nil)
		after(d, h, 3*time.Second)
		if !slices.Contains(d.taken, "c") || !slices.Contains(d.forgot, "c") || len(d.held["c"]) > 0 {
			t.Errorf("taken from %v, forgotten %v", d.taken, d.forgot)
		}
		if !slices.Contains(d.severed, "c") || slices.Contains(d.severed, "a") || slices.Contains(d.severed, "b") {
			t.Errorf("severed: %v", d.severed)
		}
		if slices.Contains(d.taken, "a") || slices.Contains(d.taken, "b") {
			t.Errorf("taken from the living: %v", d.taken)
		}
	})
}

// One that was taken for dead lets go of everything and comes back with nothing.
func TestDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{leases: []run.Lease{{RunID: "r", Epoch: 1}}}
		m := member(t, d, h, "a")
		d.set(func() { d.dead["a"], d.expires["a"] = true, time.Now().Add(-time.Second) })
		after(d, h, life/2)
		if len(h.dropped) != 1 || !slices.Contains(d.forgot, "a") {
			t.Errorf("dropped %v, forgotten %v", h.dropped, d.forgot)
		}
		after(d, h, life)
		if !m.Trusted() {
			t.Error("a node that is known again is not trusted")
		}
	})
}

// What unknown nodes hold is taken when they are unknown for longer than the
// living are.
func TestStrays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{}
		member(t, d, h, "a")
		after(d, h, time.Second)
		d.set(func() { d.strays = []string{"x", "y"} })
		after(d, h, life)
		same(t, "taken from at first sight", d.taken, nil)
		d.set(func() { d.strays = []string{"x"} }) // y was seen again
		after(d, h, life)
		same(t, "taken from", d.taken, []string{"x"})
		same(t, "forgotten", d.forgot, []string{"x"})
	})
}

// What a node works on is held against what it has with every heartbeat.
func TestCompare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		h := &hands{
			has:    map[string]bool{"queued": true},
			leases: []run.Lease{{RunID: "mine", Epoch: 3}, {RunID: "news", Epoch: 1}, {RunID: "old", Epoch: 1}, {RunID: "gone", Epoch: 1}, {RunID: "begins"}},
		}
		news, armed := held("news", 1), held("armed", 1)
		news.News, armed.Armed = true, true
		d.set(func() {
			d.held["a"] = []run.Held{held("mine", 3), news, held("old", 2), held("queued", 1), held("lies about", 1), armed}
		})
		member(t, d, h, "a")
		after(d, h, life*3/10+time.Second)
		same(t, "aborted", h.aborted, []run.Lease{{RunID: "old", Epoch: 1}, {RunID: "gone", Epoch: 1}})
		same(t, "stirred", h.stirred, []string{"news"})
		same(t, "watched", h.watched, []string{"armed"})
		same(t, "taken up at first sight", h.taken, nil)
		after(d, h, life*3/10)
		same(t, "taken up", h.taken, []string{"lies about"})
	})
}

// Who leaves hands over what it has and is not seen again.
func TestLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := newDatabase(), &hands{}
		m := member(t, d, h, "a")
		d.set(func() { d.held["a"] = []run.Held{held("r", 1)} })
		if err := m.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(d, h, 3*life)
		if _, known := d.expires["a"]; known || len(d.held["a"]) > 0 {
			t.Errorf("known %t, holds %v", known, d.held["a"])
		}
	})
}
