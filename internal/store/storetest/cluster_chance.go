package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testClusterByChance lets several nodes do what nodes do, at the same time and
// in any order, while some of them die. Whenever all hold still, every run is
// somewhere from where it goes on, and the counts are those of the queue; and in
// the end all runs can be brought to theirs.
func testClusterByChance(t *testing.T, tm *team) {
	const rounds, moves = 12, 25
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &game{team: tm, limit: 3, runs: map[string]run.Run{}}
	tm.limit.Store(int64(g.limit))
	for range 2 {
		g.workflows = append(g.workflows, tm.workflow(t, tm.workspace(t).ID))
	}
	for i, m := range tm.nodes {
		g.players = append(g.players, &player{
			game: g, member: m, random: rand.New(rand.NewPCG(seed, uint64(i))), owned: map[string]run.Lease{}, watched: map[string]run.Wake{},
		})
	}
	for range rounds {
		var playing sync.WaitGroup
		for _, p := range g.players {
			playing.Go(func() {
				for range moves {
					p.move(t)
				}
			})
		}
		playing.Wait()
		g.settle(t)
		g.check(t)
		if t.Failed() {
			return
		}
	}
	if len(g.runs) < 100 {
		t.Errorf("only %d runs were started", len(g.runs))
	}
	g.drain(t)
}

type game struct {
	*team
	limit     int
	players   []*player
	workflows []workflow.Workflow

	mu   sync.Mutex
	runs map[string]run.Run
}

// player is a node that knows what it works on and what it watches.
type player struct {
	*member
	game   *game
	random *rand.Rand

	owned   map[string]run.Lease
	watched map[string]run.Wake
}

func (p *player) move(t *testing.T) {
	p.hear()
	switch n := p.random.IntN(20); {
	case n < 5:
		p.begin(t)
	case n < 8:
		p.fetch(t)
	case n < 14:
		p.work(t)
	case n < 15:
		p.cancelOne(t)
	case n < 16:
		p.answerOne(t)
	case n < 18:
		p.elapse(t)
	case n < 19:
		p.pass(t)
	default:
		p.die(t)
	}
}

func (p *player) fail(t *testing.T, doing string, err error) bool {
	if err != nil {
		t.Errorf("%s: %v", doing, err)
	}
	return err != nil
}

// hear takes in what the store told this node.
func (p *player) hear() {
	for _, w := range p.told.take().Wakes {
		p.take(w)
	}
}

func (p *player) take(w run.Wake) {
	if w.Owned {
		delete(p.watched, w.RunID)
		p.owned[w.RunID] = run.Lease{RunID: w.RunID, Epoch: w.Epoch}
	} else {
		p.watched[w.RunID] = w
	}
}

func (p *player) begin(t *testing.T) {
	start := newStart(t, p.game.workflows[p.random.IntN(len(p.game.workflows))], "")
	if p.random.IntN(2) == 0 {
		start.Node = p.node
	}
	if p.random.IntN(3) == 0 {
		start.Run.ShareKey, start.Share = "k", &workflow.Share{Limit: 1, OnLimit: workflow.Queue}
	}
	p.game.mu.Lock()
	p.game.runs[start.Run.ID] = start.Run
	p.game.mu.Unlock()
	ok, err := p.StartRun(t.Context(), start)
	if !p.fail(t, "start", err) && !ok {
		t.Error("a start came to nothing")
	}
}

// fetch takes up something that is on its way.
func (p *player) fetch(t *testing.T) {
	jobs := p.game.handed(t)
	if len(jobs) == 0 {
		return
	}
	p.takeUp(t, jobs[p.random.IntN(len(jobs))])
}

func (p *player) takeUp(t *testing.T, j job) {
	wake, outcome, err := p.claim(t.Context(), j)
	if !p.fail(t, "claim", err) && (outcome == run.ClaimOwned || outcome == run.ClaimArmed) {
		p.take(wake)
	}
}

// work moves a run that this node owns.
func (p *player) work(t *testing.T) {
	for id, lease := range p.owned {
		p.game.mu.Lock()
		r := p.game.runs[id]
		p.game.mu.Unlock()
		var d run.Decision
		switch p.random.IntN(6) {
		case 0:
			d = run.Decision{Rev: 1, Release: true, WakeAt: clock.Now()}
		case 1:
			d = run.Decision{Rev: 1, Release: true, WakeAt: soon()}
		case 2:
			d = run.Decision{Rev: 1, Steps: []run.Step{waitingStep("a", 1, "answer")}, Release: true, WakeAt: later()}
		case 3:
			d = run.Decision{Rev: 1, Executing: []string{"b"}}
		default:
			d = newFinish(t, r, run.Succeeded)
		}
		held, err := p.Commit(t.Context(), lease, r, d)
		if p.fail(t, "commit", err) {
			return
		}
		if !held || d.Release || d.Finish != nil {
			delete(p.owned, id)
		}
		if held && p.random.IntN(4) == 0 { // as if nobody knew that it worked
			_, err := p.Commit(t.Context(), lease, r, d)
			p.fail(t, "commit again", err)
		}
		p.hear()
		return
	}
}

func (p *player) any() (run.Run, bool) {
	p.game.mu.Lock()
	defer p.game.mu.Unlock()
	for _, r := range p.game.runs {
		return r, true
	}
	return run.Run{}, false
}

func (p *player) cancelOne(t *testing.T) {
	if r, ok := p.any(); ok {
		_, err := p.CancelRun(t.Context(), newCancellation(t, r))
		p.fail(t, "cancel", err)
	}
}

func (p *player) answerOne(t *testing.T) {
	if r, ok := p.any(); ok {
		_, err := p.AnswerStep(t.Context(), newAnswer(r, "a", `1`))
		p.fail(t, "answer", err)
	}
}

// elapse lets the time come that runs wait for which this node watches.
func (p *player) elapse(t *testing.T) {
	for id, wake := range p.watched {
		err := p.rows.Write(t.Context(), func(c store.Conn) error {
			return c.Do(`UPDATE run_queue SET wake_at = 1 WHERE run_id = $1 AND node = $2 AND NOT slot`, id, p.node)
		})
		if p.fail(t, "let time pass", err) {
			return
		}
		delete(p.watched, id)
		p.takeUp(t, job{wake: wake})
	}
}

func (p *player) pass(t *testing.T) {
	for _, id := range p.takeFreed() {
		more, err := p.PassOn(t.Context(), id)
		if p.fail(t, "pass on", err); more {
			p.noteFreed(id)
		}
	}
	p.hear()
}

// die forgets everything, and another node takes over.
func (p *player) die(t *testing.T) {
	clear(p.owned)
	clear(p.watched)
	p.game.dead(t, p.node, true)
	defer p.game.dead(t, p.node, false)
	other := p.game.players[p.random.IntN(len(p.game.players))]
	for more := true; more; {
		var err error
		if _, more, err = other.TakeFrom(t.Context(), p.node, p.random.IntN(2) == 0); p.fail(t, "take over", err) {
			return
		}
	}
	p.hear() // what was told before it died counts for nothing: the epochs have changed
}

// settle lets everybody hear what there is to hear and pass on what is free.
func (g *game) settle(t *testing.T) {
	t.Helper()
	for busy := true; busy; {
		busy = false
		for _, p := range g.players {
			p.hear()
			for _, id := range p.takeFreed() {
				busy = true
				if _, err := p.PassOn(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			p.hear()
		}
	}
}

// place is where a run of the queue is.
type placeInQueue struct {
	run.Held
	node               string
	slot, parked, turn bool
}

func (g *game) check(t *testing.T) {
	t.Helper()
	for _, wf := range g.workflows {
		running, parked := g.load(t, wf.WorkspaceID)
		g.loaded(t, wf.WorkspaceID, running, parked)
		if running > g.limit || running < 0 || parked < 0 || parked > 0 && running < g.limit {
			t.Errorf("%d run and %d are parked, where %d may run", running, parked, g.limit)
		}
	}
	jobs := map[run.Lease]bool{}
	for _, j := range g.handed(t) {
		jobs[run.Lease{RunID: j.wake.RunID, Epoch: j.wake.Epoch}] = true
	}
	for _, at := range collect(t, g.world, `SELECT run_id, epoch, COALESCE(node, ''), slot, parked, turn FROM run_queue`, nil,
		func(r store.Row) (p placeInQueue, err error) {
			err = r.Scan(&p.RunID, &p.Epoch, &p.node, &p.slot, &p.parked, &p.turn)
			return p, err
		}) {
		if !g.findable(at, jobs) {
			t.Errorf("nobody goes on with a run: %+v", at)
		}
	}
}

// findable tells whether somebody goes on with a run.
func (g *game) findable(at placeInQueue, jobs map[run.Lease]bool) bool {
	lease := run.Lease{RunID: at.RunID, Epoch: at.Epoch}
	if at.slot && at.parked || !at.turn && (at.slot || at.parked) {
		return false
	}
	switch {
	case !at.turn || at.parked:
		return at.node == ""
	case at.node == "":
		return jobs[lease]
	}
	for _, p := range g.players {
		if p.node == at.node && at.slot {
			return p.owned[at.RunID] == lease
		}
		if _, ok := p.watched[at.RunID]; p.node == at.node && ok {
			return true
		}
	}
	return false
}

// drain brings every run to its end.
func (g *game) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := g.players[0]
	for g.count(t, `SELECT count(*) FROM run_queue`) > 0 {
		if ctx.Err() != nil {
			t.Fatal(errors.New("runs are left over"))
		}
		g.exec(t, `UPDATE run_queue SET wake_at = 1 WHERE wake_at IS NOT NULL`)
		for _, j := range g.handed(t) {
			last.takeUp(t, j)
		}
		for _, p := range g.players {
			p.elapse(t)
			for id, lease := range p.owned {
				_, err := p.Commit(ctx, lease, g.runs[id], newFinish(t, g.runs[id], run.Succeeded))
				p.fail(t, "finish", err)
				delete(p.owned, id)
			}
		}
		g.settle(t)
		g.check(t)
		if t.Failed() {
			return
		}
	}
	same(t, "runs that did not end once", g.count(t, `SELECT count(*) FROM runs r WHERE status = 'running'
		OR (SELECT count(*) FROM events e WHERE e.run_id = r.id AND e.type <> 'run.started') <> 1`), 0)
	for _, wf := range g.workflows {
		g.loaded(t, wf.WorkspaceID, 0, 0)
	}
}
