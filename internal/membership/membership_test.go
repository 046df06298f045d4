package membership_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/membership"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/run"
)

const life = 10 * time.Second

// world is a database and the hands of a node, as far as a member sees them.
type world struct {
	mu      sync.Mutex
	beats   int
	away    bool          // the database does not answer
	slow    time.Duration // what takes so long, but for the heartbeat
	dead    bool
	strays  []string
	held    []run.Held
	took    []string
	forgot  []string
	dropped int
	working []run.Lease
	resumed []string
	watched []string
}

func (w *world) answers(ctx context.Context) bool {
	w.mu.Lock()
	slow, away := w.slow, w.away
	w.mu.Unlock()
	if away {
		<-ctx.Done()
		return false
	}
	time.Sleep(slow)
	return true
}

func (w *world) Beat(ctx context.Context, _ node.Node, _ int, _ time.Duration) (node.Beat, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return node.Beat{}, ctx.Err()
	}
	w.beats++
	now := time.Now()
	expiry := now.Add(time.Second)
	return node.Beat{Now: now, Dead: w.dead, NextExpiry: &expiry, Capacity: 1, Nodes: 2}, nil
}

func (w *world) Expired(ctx context.Context) ([]string, error) {
	w.answers(ctx)
	return nil, nil
}

func (w *world) Strays(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.strays
	w.strays = nil
	return found, nil
}

func (w *world) Forget(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgot = append(w.forgot, id)
	return nil
}

func (w *world) Serve(context.Context, string, string, time.Duration) (bool, error) { return true, nil }

func (w *world) TakeFrom(_ context.Context, id string, _ bool) (int, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took = append(w.took, id)
	return 1, false, nil
}

func (w *world) Held(ctx context.Context, _ string) ([]run.Held, error) {
	w.answers(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held, nil
}

func (w *world) Sweep(context.Context) (int, bool, []string, error)      { return 0, false, nil, nil }
func (w *world) Recount(context.Context, string) (wrong bool, err error) { return false, nil }

func (w *world) Leases() []run.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.working
}

func (w *world) Has(string) bool { return false }
func (w *world) Abort(run.Lease) {}
func (w *world) DropAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped++
	w.working = nil
}
func (w *world) Stir(string) {}
func (w *world) TakeUp(of run.Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resumed = append(w.resumed, of.RunID)
	w.working = append(w.working, run.Lease{RunID: of.RunID, Epoch: of.Epoch})
}

func (w *world) Watch(of run.Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = append(w.watched, of.RunID)
}
func (w *world) PassOn(string) {}
func (w *world) TookOver()     {}

func (w *world) change(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

// during lets a member live while a test does something to its world.
func during(t *testing.T, w *world, do func(*membership.Member)) {
	t.Helper()
	m := membership.New(membership.Config{Node: node.Node{ID: "node_1"}, Capacity: 1, Life: life, Told: func(node.Beat) {}}, w, w, w, slog.New(slog.DiscardHandler))
	if err := m.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	do(m)
	stop()
	w.change(func() { w.away, w.slow = false, 0 })
	running.Wait()
}

// Whatever else the member waits for, the heartbeat goes on.
func TestHeartbeatWaitsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{slow: 5 * life}
		during(t, w, func(m *membership.Member) {
			for range 20 {
				time.Sleep(time.Second)
				if !m.Trusted() {
					t.Fatal("the node does not trust itself although the database hears it")
				}
			}
		})
		if w.dropped != 0 {
			t.Errorf("runs were dropped %d times", w.dropped)
		}
	})
}

// A node that was not heard of for a while lets go of everything, each time, and
// takes up again what is still its own: runs, and those whose time it watches.
func TestNodeTakesUpItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		during(t, w, func(m *membership.Member) {
			for round := range 2 {
				w.change(func() {
					w.working = []run.Lease{{RunID: "run_1", Epoch: 1}}
					w.held = []run.Held{
						{Wake: run.Wake{RunID: "run_1", Epoch: 1}},
						{Wake: run.Wake{RunID: "run_2", Epoch: 1, At: time.Now().Add(time.Hour)}, Armed: true},
					}
				})
				time.Sleep(life)
				w.change(func() { w.away, w.resumed, w.watched = true, nil, nil })
				time.Sleep(life * 8 / 10)
				if m.Trusted() {
					t.Error("a node that is not heard of trusts itself")
				}
				w.change(func() { w.away = false })
				time.Sleep(life)
				w.change(func() {
					if w.dropped != round+1 || len(w.resumed) != 1 || w.resumed[0] != "run_1" || len(w.watched) == 0 || w.watched[0] != "run_2" {
						t.Errorf("dropped %d times, taken up %v, watched %v", w.dropped, w.resumed, w.watched)
					}
				})
			}
		})
	})
}

// Runs of a node that nobody knows any more are taken from it.
func TestStraysAreTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{strays: []string{"node_gone"}}
		during(t, w, func(*membership.Member) { time.Sleep(time.Minute) })
		if len(w.took) != 1 || w.took[0] != "node_gone" || len(w.forgot) != 1 || w.forgot[0] != "node_gone" {
			t.Errorf("taken from %v, forgotten %v", w.took, w.forgot)
		}
	})
}
