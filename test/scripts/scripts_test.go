//go:build linux

// Package scripts_test runs harmless and hostile scripts and expressions side by side
// on a real server and checks that the hostile ones affect only their own runs.
package scripts_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

func TestMain(m *testing.M) {
	harness.SetParallel(4)
	harness.Main(m)
}

// hostile has scripts with the error codes that their runs must fail with.
var hostile = map[string]string{
	"for (;;) {}": "script_timeout",
	"return /^(?=a)(a+)+$/.test('a'.repeat(40) + 'b')":                      "script_timeout",
	"return {toJSON() { for (;;) {} }}":                                     "script_timeout",
	"let a = []; for (;;) a.push(new ArrayBuffer(1e6))":                     "script_memory",
	"let s = 'x'; for (;;) s += s":                                          "script_memory",
	"return new ArrayBuffer(1e10)":                                          "script_memory",
	"return JSON.parse('['.repeat(1e6))":                                    "script_memory",
	"const f = () => f() + 1; return f()":                                   "script_error",
	"return ''.constructor.constructor('return process.env')()":             "script_error",
	"return require('child_process').execSync('id')":                        "script_error",
	"return 'x'.repeat(1.5e6)":                                              "output_too_large",
	"for (let i = 0; i < 5000; i++) console.log('xxxxx'.repeat(500)); nope": "script_error",
}

type runBody struct {
	ID     string
	Status string
	Error  *struct{ Code, Message string }
	Steps  []struct{ Output map[string]any }
}

// maxHeapGrowth is how much the live heap of a server may grow. The server keeps nothing
// of finished runs; what remains are connection buffers and the like.
const maxHeapGrowth = 16 << 20

const (
	// shortTimeout is the timeout of scripts that exceed it.
	shortTimeout = "2s"
	// longTimeout is longer than any other script takes, even on a busy machine.
	longTimeout = "5m"
)

// defineScript makes an active workflow with one script. The members are pairs of name
// and value and set more of its step.
func defineScript(t *testing.T, c *harness.Client, code, timeout string, members ...any) string {
	t.Helper()
	step := map[string]any{"id": "js", "uses": "code.js", "timeout": timeout}
	for i := 0; i+1 < len(members); i += 2 {
		step[members[i].(string)] = members[i+1]
	}
	var made struct{ ID string }
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "script"}).Decode(t, &made)
	step["with"] = map[string]any{"code": code, "input": "${{ trigger.payload }}"}
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active", "steps": []any{step}})
	return made.ID
}

// execute runs a workflow and waits until the run has ended.
func execute(t *testing.T, c *harness.Client, workflow string, payload any) runBody {
	t.Helper()
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": payload}, "Prefer", "wait=60")
	if err != nil || response.Status > 201 {
		t.Fatalf("start a run: %v %d %s", err, response.Status, response.Body)
	}
	var run runBody
	response.Decode(t, &run)
	harness.Eventually(t, "the run has ended", func() bool {
		if run.Status == "running" {
			c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil).Decode(t, &run)
		}
		return run.Status != "running"
	})
	return run
}

func TestHostileScripts(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), harness.ProfilingArgs("--js-processes", "3")...)
	good := defineScript(t, s.Client, "return {n: input.n + 1, clean: typeof kept === 'undefined' && ({}).kept === undefined, set: (kept = Object.prototype.kept = 1)}", longTimeout)
	execute(t, s.Client, good, map[string]any{"n": 0})
	before := s.LiveHeap(t)

	workflows := map[string]string{}
	for code, want := range hostile {
		timeout := longTimeout
		if want == "script_timeout" {
			timeout = shortTimeout
		}
		workflows[code] = defineScript(t, s.Client, code, timeout)
	}
	var hostileRuns sync.WaitGroup
	for code, want := range hostile {
		workflow := workflows[code]
		hostileRuns.Go(func() {
			run := execute(t, s.Client, workflow, map[string]any{})
			if run.Status != "failed" || run.Error == nil {
				t.Errorf("%s\nended %s, %+v, want %s", code, run.Status, run.Error, want)
				return
			}
			if run.Error.Code != want && !(want == "script_timeout" && timedOut(run)) {
				t.Errorf("%s\nended with %+v, want %s", code, run.Error, want)
			}
		})
	}
	runUntil(t, s, good, hostileRuns.Wait, func(n int) string { return fmt.Sprintf("map[clean:true n:%d set:1]", n+1) })
	harness.Eventually(t, "the memory of the runs is released", func() bool { return s.LiveHeap(t)-before <= maxHeapGrowth })
	s.Stop(t)
}

// runUntil runs a harmless workflow again and again until wait returns. Each run
// must succeed with the output that belongs to its payload, and the server must
// stay ready.
func runUntil(t *testing.T, s *harness.Server, workflow string, wait func(), output func(n int) string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	for n := 1; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		run := execute(t, s.Client, workflow, map[string]any{"n": n})
		if got := fmt.Sprint(run.Steps[0].Output); run.Status != "succeeded" || got != output(n) {
			t.Errorf("run %d: %s, %s, %+v", n, run.Status, got, run.Error)
		}
		s.Expect(t, http.StatusOK, "GET", "/readyz", nil)
	}
}

// When the server crashes during a script, its sandbox processes die with it, and the
// run continues on the next server.
func TestSandboxProcessesDieWithServer(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), "--js-processes", "2")
	slow := defineScript(t, s.Client, "for (;;) {}", shortTimeout)
	var started struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+slow+"/runs", map[string]any{}).Decode(t, &started)
	var pids []int
	harness.Eventually(t, "a sandbox process runs", func() bool {
		pids = children(t, s.Pid())
		return len(pids) > 0
	})
	for _, pid := range pids {
		if env := environ(t, pid); env != "MALLOC_ARENA_MAX=1\x00" { // nothing of the server's
			t.Errorf("process %d has the environment %q", pid, env)
		}
	}
	s.Kill(t)
	harness.Eventually(t, "the sandbox processes have exited", func() bool {
		return !slices.ContainsFunc(pids, isRunning)
	})

	next, err := harness.Launch(t.Context(), harness.Options{Dir: s.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close(t) })
	next.Key = s.Key
	var run runBody
	harness.Eventually(t, "the run has ended", func() bool {
		next.Expect(t, http.StatusOK, "GET", "/v1/runs/"+started.ID, nil).Decode(t, &run)
		return run.Status != "running"
	})
	if !timedOut(run) {
		t.Errorf("run is %s, %+v, want a timeout", run.Status, run.Error)
	}
	next.Stop(t)
}

// timedOut reports whether a run failed because its script did not end. On a busy machine
// its step may time out first.
func timedOut(run runBody) bool {
	return run.Status == "failed" && (run.Error.Code == "script_timeout" || run.Error.Code == "timed_out")
}

// A run is cancelled during a script. Its sandbox process is killed long before the
// timeout of the script, and the next script takes its slot.
func TestCancelKillsScript(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), "--js-processes", "2")
	quick := defineScript(t, s.Client, "return {n: input.n}", longTimeout)
	endless := defineScript(t, s.Client, "for (;;) {}", "15m")
	for n := range lane.Pick(2, 5) {
		var runs []string
		for range 2 { // as many as can run at a time
			var started struct{ ID string }
			s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+endless+"/runs", nil).Decode(t, &started)
			runs = append(runs, started.ID)
		}
		var pids []int
		first := map[int]int{} // the CPU time of processes when they were first seen
		harness.Eventually(t, "both scripts run", func() bool {
			pids = slices.DeleteFunc(children(t, s.Pid()), func(pid int) bool {
				used := processorTime(pid)
				if _, seen := first[pid]; !seen {
					first[pid] = used
				}
				return used < first[pid]+20 // a fifth of a second
			})
			return len(pids) == 2
		})
		for _, id := range runs {
			s.Expect(t, http.StatusOK, "POST", "/v1/runs/"+id+"/cancel", nil)
		}
		harness.Eventually(t, "the sandbox processes have exited", func() bool { return !slices.ContainsFunc(pids, isRunning) })
		if run := execute(t, s.Client, quick, map[string]any{"n": n}); run.Status != "succeeded" {
			t.Errorf("the next script is %s, want succeeded: %+v", run.Status, run.Error)
		}
	}
	s.Stop(t)
}
