package clusterload_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stepmill/stepmill/test/harness"
)

// asked is what a client asks about a run, told what it is told.
type asked struct {
	run    int
	cancel bool
}

// told is the status of the run, or "refused" for a cancel that came too late.
type told string

// Cancels race the ends of runs on two nodes while others look. For each run
// there is an order of all that was asked and answered in which it ends once.
func TestCancelRacesCompletionOnTwoNodes(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	const runs, callers = 400, 4
	c := start(t, 2)
	workflows := []string{
		define(t, c.nodes[0].Client, sets("one"), sets("two")),
		define(t, c.nodes[0].Client, sets("one"), map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "20ms"}}, sets("two")),
		define(t, c.nodes[0].Client, map[string]any{"id": "script", "uses": "code.js", "with": map[string]any{"code": "return 1"}}, sets("two")),
	}
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		group   sync.WaitGroup
		begun   = time.Now()
		counts  = map[told]int{}
	)
	slots := make(chan struct{}, 8)
	for i := range runs {
		random := harness.Random(seed, i)
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			id := begin(t, c.nodes[i%2].Client, workflows[i%len(workflows)]).ID
			var asking sync.WaitGroup
			for caller := range callers {
				delay, node := time.Duration(random.Int64N(int64(40*time.Millisecond))), c.nodes[random.IntN(2)]
				cancel := caller < 2
				asking.Go(func() {
					time.Sleep(delay)
					call := time.Since(begun)
					answer := ask(t, node.Client, id, cancel)
					op := porcupine.Operation{ClientId: caller, Input: asked{i, cancel}, Call: call.Nanoseconds(), Output: answer, Return: time.Since(begun).Nanoseconds()}
					mu.Lock()
					defer mu.Unlock()
					history = append(history, op)
					counts[answer]++
				})
			}
			asking.Wait()
		})
	}
	group.Wait()
	t.Logf("%d questions about %d runs were answered with %v", len(history), runs, counts)
	if counts["refused"] < runs/10 || c.number(`SELECT count(*) FROM runs WHERE status = 'cancelled'`) < runs/20 || c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`) < runs/20 {
		t.Errorf("one side almost never won: this was no race")
	}
	model := onceEnded()
	if result := porcupine.CheckOperationsTimeout(model.ToModel(), history, time.Minute); result != porcupine.Ok {
		t.Errorf("the answers cannot be put into an order: %v", result)
	}
	c.settle()
}

func ask(t *testing.T, api *harness.Client, id string, cancel bool) told {
	t.Helper()
	method, path := "GET", "/v1/runs/"+id
	if cancel {
		method, path = "POST", path+"/cancel"
	}
	answer, err := api.Do(t.Context(), method, path, nil)
	var r run
	switch {
	case err != nil:
		t.Error(err)
	case cancel && answer.Status == 409 && code(answer) == "run_not_running":
		return "refused"
	case answer.Status != 200 || json.Unmarshal(answer.Body, &r) != nil:
		t.Errorf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return told(r.Status)
}

// onceEnded is a run that succeeds at a moment of its own, if it is not
// cancelled before.
func onceEnded() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byRun := map[int][]porcupine.Operation{}
			for _, op := range history {
				of := op.Input.(asked).run
				byRun[of] = append(byRun[of], op)
			}
			var out [][]porcupine.Operation
			for _, ops := range byRun {
				out = append(out, ops)
			}
			return out
		},
		Init: func() []any { return []any{told("running")} },
		Step: func(state, input, output any) []any {
			var next []any
			now, answer := state.(told), output.(told)
			possible := []told{now}
			if now == "running" {
				possible = append(possible, "succeeded") // just before
			}
			for _, s := range possible {
				switch {
				case !input.(asked).cancel && answer == s:
					next = append(next, s)
				case input.(asked).cancel && answer == "cancelled" && s == "running":
					next = append(next, told("cancelled"))
				case input.(asked).cancel && answer == "refused" && s != "running":
					next = append(next, s)
				}
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}
