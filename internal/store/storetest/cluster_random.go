package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// testRandomCluster lets several nodes operate concurrently and in random order,
// while some of them die. Whenever all pause, every run must be in a state from
// which it can continue, and the counts must match the queue. In the end all runs
// must be able to finish.
func testRandomCluster(t *testing.T, tm *cluster) {
	const rounds, steps = 12, 25
	seed := lane.Seed()
	t.Logf("seed %d", seed)
	g := &simulation{cluster: tm, limit: 3, runs: map[string]run.Run{}}
	tm.limit.Store(int64(g.limit))
	for range 2 {
		g.workflows = append(g.workflows, tm.workflow(t, tm.workspace(t).ID))
	}
	for i, m := range tm.nodes {
		g.simNodes = append(g.simNodes, &simulatedNode{
			sim: g, clusterNode: m, random: rand.New(rand.NewPCG(seed, uint64(i))), owned: map[string]run.Lease{}, timers: map[string]run.Wake{},
		})
	}
	for range rounds {
		var running sync.WaitGroup
		for _, p := range g.simNodes {
			running.Go(func() {
				for range steps {
					p.step(t)
				}
			})
		}
		running.Wait()
		g.quiesce(t)
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

type simulation struct {
	*cluster
	limit     int
	simNodes  []*simulatedNode
	workflows []workflow.Workflow

	mu   sync.Mutex
	runs map[string]run.Run
}

// simulatedNode is a node that knows which runs it owns and which it has timers
// for.
type simulatedNode struct {
	*clusterNode
	sim    *simulation
	random *rand.Rand

	owned  map[string]run.Lease
	timers map[string]run.Wake
}

func (p *simulatedNode) step(t *testing.T) {
	p.receive()
	switch n := p.random.IntN(20); {
	case n < 5:
		p.startRun(t)
	case n < 8:
		p.claimAny(t)
	case n < 14:
		p.commitOne(t)
	case n < 15:
		p.cancelOne(t)
	case n < 16:
		p.answerOne(t)
	case n < 18:
		p.fireTimers(t)
	case n < 19:
		p.admit(t)
	default:
		p.die(t)
	}
}

func (p *simulatedNode) fail(t *testing.T, doing string, err error) bool {
	if err != nil {
		t.Errorf("%s: %v", doing, err)
	}
	return err != nil
}

// receive processes what the store notified this node of.
func (p *simulatedNode) receive() {
	for _, w := range p.notified.take().Wakes {
		p.accept(w)
	}
}

func (p *simulatedNode) accept(w run.Wake) {
	if w.Owned {
		delete(p.timers, w.RunID)
		p.owned[w.RunID] = run.Lease{RunID: w.RunID, Epoch: w.Epoch}
	} else {
		p.timers[w.RunID] = w
	}
}

func (p *simulatedNode) startRun(t *testing.T) {
	start := newStart(t, p.sim.workflows[p.random.IntN(len(p.sim.workflows))], "")
	if p.random.IntN(2) == 0 {
		start.Node = p.node
	}
	if p.random.IntN(3) == 0 {
		start.Run.ConcurrencyKey, start.Concurrency = "k", &workflow.ConcurrencyLimit{Limit: 1, OnLimit: workflow.Queue}
	}
	p.sim.mu.Lock()
	p.sim.runs[start.Run.ID] = start.Run
	p.sim.mu.Unlock()
	ok, err := p.Runs.StartRun(t.Context(), start)
	if !p.fail(t, "start", err) && !ok {
		t.Error("a start was rejected")
	}
}

// claimAny claims the run of a random job.
func (p *simulatedNode) claimAny(t *testing.T) {
	jobs := p.sim.jobs(t)
	if len(jobs) == 0 {
		return
	}
	p.claimJob(t, jobs[p.random.IntN(len(jobs))])
}

func (p *simulatedNode) claimJob(t *testing.T, j job) {
	wake, outcome, err := p.claim(t.Context(), j)
	if !p.fail(t, "claim", err) && (outcome == run.ClaimOwned || outcome == run.ClaimLocalTimer) {
		p.accept(wake)
	}
}

// commitOne commits a random decision about a run that this node owns.
func (p *simulatedNode) commitOne(t *testing.T) {
	for id, lease := range p.owned {
		p.sim.mu.Lock()
		r := p.sim.runs[id]
		p.sim.mu.Unlock()
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
		committed, err := p.Commit(t.Context(), lease, r, d)
		if p.fail(t, "commit", err) {
			return
		}
		if !committed || d.Release || d.Finish != nil {
			delete(p.owned, id)
		}
		if committed && p.random.IntN(4) == 0 { // as if the response was lost
			_, err := p.Commit(t.Context(), lease, r, d)
			p.fail(t, "commit again", err)
		}
		p.receive()
		return
	}
}

func (p *simulatedNode) randomRun() (run.Run, bool) {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	for _, r := range p.sim.runs {
		return r, true
	}
	return run.Run{}, false
}

func (p *simulatedNode) cancelOne(t *testing.T) {
	if r, ok := p.randomRun(); ok {
		_, err := p.Runs.CancelRun(t.Context(), newCancellation(t, r))
		p.fail(t, "cancel", err)
	}
}

func (p *simulatedNode) answerOne(t *testing.T) {
	if r, ok := p.randomRun(); ok {
		_, err := p.Runs.AnswerStep(t.Context(), newAnswer(r, "a", `1`))
		p.fail(t, "answer", err)
	}
}

// fireTimers makes the runs due for which this node has a timer.
func (p *simulatedNode) fireTimers(t *testing.T) {
	for id, wake := range p.timers {
		err := p.rows.Write(t.Context(), func(c database.Conn) error {
			return c.Do(`UPDATE run_queue SET wake_at = 1 WHERE run_id = $1 AND node = $2 AND NOT slot`, id, p.node)
		})
		if p.fail(t, "let time pass", err) {
			return
		}
		delete(p.timers, id)
		p.claimJob(t, job{wake: wake})
	}
}

func (p *simulatedNode) admit(t *testing.T) {
	for _, id := range p.takeFreed() {
		more, err := p.AdmitThrottled(t.Context(), id)
		if p.fail(t, "admit", err); more {
			p.slotFreed(id)
		}
	}
	p.receive()
}

// die makes the node forget everything, and another one takes over.
func (p *simulatedNode) die(t *testing.T) {
	clear(p.owned)
	clear(p.timers)
	p.sim.setDead(t, p.node, true)
	defer p.sim.setDead(t, p.node, false)
	other := p.sim.simNodes[p.random.IntN(len(p.sim.simNodes))]
	for more := true; more; {
		var err error
		if _, more, err = other.TakeOver(t.Context(), p.node, p.random.IntN(2) == 0); p.fail(t, "take over", err) {
			return
		}
	}
	p.receive() // earlier notifications are stale: the epochs have changed
}

// quiesce delivers all notifications and admits throttled runs until nothing
// changes.
func (g *simulation) quiesce(t *testing.T) {
	t.Helper()
	for busy := true; busy; {
		busy = false
		for _, p := range g.simNodes {
			p.receive()
			for _, id := range p.takeFreed() {
				busy = true
				if _, err := p.AdmitThrottled(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			p.receive()
		}
	}
}

// queueState is the state of a run in the queue.
type queueState struct {
	run.OwnedRun
	node                      string
	slot, throttled, admitted bool
}

func (g *simulation) check(t *testing.T) {
	t.Helper()
	for _, wf := range g.workflows {
		running, throttled := g.load(t, wf.WorkspaceID)
		g.checkLoad(t, wf.WorkspaceID, running, throttled)
		if running > g.limit || running < 0 || throttled < 0 || throttled > 0 && running < g.limit {
			t.Errorf("INVARIANT: %d running, %d throttled, limit %d", running, throttled, g.limit)
		}
	}
	jobs := map[run.Lease]bool{}
	for _, j := range g.jobs(t) {
		jobs[run.Lease{RunID: j.wake.RunID, Epoch: j.wake.Epoch}] = true
	}
	for _, at := range collect(t, g.harness, `SELECT run_id, epoch, COALESCE(node, ''), slot, throttled, admitted FROM run_queue`, nil,
		func(r database.Row) (p queueState, err error) {
			err = r.Scan(&p.RunID, &p.Epoch, &p.node, &p.slot, &p.throttled, &p.admitted)
			return p, err
		}) {
		if !g.canProgress(at, jobs) {
			t.Errorf("INVARIANT: a run is stuck: %+v", at)
		}
	}
}

// canProgress reports whether a run is owned, enqueued or otherwise able to
// continue.
func (g *simulation) canProgress(at queueState, jobs map[run.Lease]bool) bool {
	lease := run.Lease{RunID: at.RunID, Epoch: at.Epoch}
	if at.slot && at.throttled || !at.admitted && (at.slot || at.throttled) {
		return false
	}
	switch {
	case !at.admitted || at.throttled:
		return at.node == ""
	case at.node == "":
		return jobs[lease]
	}
	for _, p := range g.simNodes {
		if p.node == at.node && at.slot {
			return p.owned[at.RunID] == lease
		}
		if _, ok := p.timers[at.RunID]; p.node == at.node && ok {
			return true
		}
	}
	return false
}

// drain finishes every run.
func (g *simulation) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := g.simNodes[0]
	for g.count(t, `SELECT count(*) FROM run_queue`) > 0 {
		if ctx.Err() != nil {
			t.Fatal(errors.New("not all runs finished"))
		}
		g.exec(t, `UPDATE run_queue SET wake_at = 1 WHERE wake_at IS NOT NULL`)
		for _, j := range g.jobs(t) {
			last.claimJob(t, j)
		}
		for _, p := range g.simNodes {
			p.fireTimers(t)
			for id, lease := range p.owned {
				_, err := p.Commit(ctx, lease, g.runs[id], newFinish(t, g.runs[id], run.Succeeded))
				p.fail(t, "finish", err)
				delete(p.owned, id)
			}
		}
		g.quiesce(t)
		g.check(t)
		if t.Failed() {
			return
		}
	}
	equal(t, "runs that did not end once", g.count(t, `SELECT count(*) FROM runs r WHERE status = 'running'
		OR (SELECT count(*) FROM events e WHERE e.run_id = r.id AND e.type <> 'run.started') <> 1`), 0)
	for _, wf := range g.workflows {
		g.checkLoad(t, wf.WorkspaceID, 0, 0)
	}
}
