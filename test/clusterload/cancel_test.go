package clusterload_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// operation is a request about a run. Its output is a result.
type operation struct {
	run    int
	cancel bool
}

// result is the status of the run, or "rejected" for a cancel that came too late.
type result string

// Cancels race the ends of runs on two nodes while other clients read the runs. The
// responses for each run are linearizable: in some order of them the run ends once.
func TestCancelRacesCompletionOnTwoNodes(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	minRuns := lane.Pick(60, 400)
	c := startCluster(t, 2)
	r := &race{t: t, c: c, started: time.Now(), workflows: []string{
		flow.Define(t, c.nodes[0].Client, flow.Set("one", 1), flow.Set("two", 1)),
		flow.Define(t, c.nodes[0].Client, flow.Set("one", 1), flow.Wait("wait", "20ms"), flow.Set("two", 1)),
		flow.Define(t, c.nodes[0].Client, map[string]any{"id": "script", "uses": "code.js", "with": map[string]any{"code": "return 1"}}, flow.Set("two", 1)),
	}}
	succeeded, cancelled, runs := 0, 0, 0
	for runs < minRuns || min(succeeded, cancelled) < minRuns/20 {
		if runs >= 10*minRuns {
			t.Logf("inconclusive: %d runs, %d cancelled, %d succeeded", runs, cancelled, succeeded)
			break
		}
		r.run(seed, runs, 20)
		runs += 20
		succeeded = c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`)
		cancelled = c.number(`SELECT count(*) FROM runs WHERE status = 'cancelled'`)
	}
	t.Logf("%d requests about %d runs; %d were cancelled", len(r.history), runs, cancelled)
	model := runModel()
	switch porcupine.CheckOperationsTimeout(model.ToModel(), r.history, harness.Timeout) {
	case porcupine.Illegal:
		t.Error("the responses are not linearizable")
	case porcupine.Unknown:
		t.Logf("inconclusive: the responses could not be checked within %v", harness.Timeout)
	case porcupine.Ok:
	}
	c.awaitIdle()
}

// race collects the requests about runs with their responses.
type race struct {
	t         *testing.T
	c         *cluster
	workflows []string
	started   time.Time

	mu      sync.Mutex
	history []porcupine.Operation
}

// run starts runs, eight at a time, with numbers from the given one on. Four clients
// send a request about each run; two of them cancel it.
func (r *race) run(seed uint64, from, runs int) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := from; i < from+runs; i++ {
		random := harness.Random(seed, i)
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			id := startRun(r.t, r.c.nodes[i%2].Client, r.workflows[i%len(r.workflows)]).ID
			var requests sync.WaitGroup
			for client := range 4 {
				delay, node := time.Duration(random.Int64N(int64(40*time.Millisecond))), r.c.nodes[random.IntN(2)]
				cancel := client < 2
				requests.Go(func() {
					time.Sleep(delay)
					call := time.Since(r.started)
					response := send(r.t, node.Client, id, cancel)
					op := porcupine.Operation{ClientId: client, Input: operation{i, cancel}, Call: call.Nanoseconds(), Output: response, Return: time.Since(r.started).Nanoseconds()}
					r.mu.Lock()
					defer r.mu.Unlock()
					r.history = append(r.history, op)
				})
			}
			requests.Wait()
		})
	}
	group.Wait()
}

func send(t *testing.T, api *harness.Client, id string, cancel bool) result {
	t.Helper()
	method, path := "GET", "/v1/runs/"+id
	if cancel {
		method, path = "POST", path+"/cancel"
	}
	response, err := do(t, api, method, path, nil)
	var r run
	switch {
	case err != nil:
		t.Error(err)
	case cancel && response.Status == 409 && flow.ErrorCode(response) == "run_not_running":
		return "rejected"
	case response.Status != 200 || json.Unmarshal(response.Body, &r) != nil:
		t.Errorf("%s %s: %d %s", method, path, response.Status, response.Body)
	}
	return result(r.Status)
}

// runModel models a run that succeeds at some moment unless it is cancelled before.
func runModel() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byRun := map[int][]porcupine.Operation{}
			for _, op := range history {
				of := op.Input.(operation).run
				byRun[of] = append(byRun[of], op)
			}
			var out [][]porcupine.Operation
			for _, ops := range byRun {
				out = append(out, ops)
			}
			return out
		},
		Init: func() []any { return []any{result("running")} },
		Step: func(state, input, output any) []any {
			var next []any
			now, response := state.(result), output.(result)
			possible := []result{now}
			if now == "running" {
				possible = append(possible, "succeeded") // just before the request
			}
			for _, s := range possible {
				switch {
				case !input.(operation).cancel && response == s:
					next = append(next, s)
				case input.(operation).cancel && response == "cancelled" && s == "running":
					next = append(next, result("cancelled"))
				case input.(operation).cancel && response == "rejected" && s != "running":
					next = append(next, s)
				}
			}
			return next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}
