//go:build linux

// Package scripts_test lets a real server run scripts and expressions, good and
// hostile side by side, and checks that the hostile ones harm nobody but
// themselves.
package scripts_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// hostile are scripts with the code that their runs must fail with.
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
	Status string
	Error  *struct{ Code, Message string }
	Steps  []struct{ Output map[string]any }
}

// prepare makes an active workflow of one script.
func prepare(t *testing.T, c *harness.Client, code string) string {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "script"}).Decode(t, &made)
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active", "steps": []any{
		map[string]any{"id": "js", "uses": "code.js", "timeout": "2s", "with": map[string]any{"code": code, "input": "${{ trigger.payload }}"}},
	}})
	return made.ID
}

// finish runs a workflow to its end.
func finish(t *testing.T, c *harness.Client, workflow string, payload any) runBody {
	t.Helper()
	var run runBody
	c.Expect(t, http.StatusOK, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": payload}, "Prefer", "wait=60").Decode(t, &run)
	return run
}

func TestHostileScripts(t *testing.T) {
	s := harness.Start(t, t.TempDir(), "--js-processes", "3")
	good := prepare(t, s.Client, "return {n: input.n + 1, clean: typeof kept === 'undefined' && ({}).kept === undefined, set: (kept = Object.prototype.kept = 1)}")
	finish(t, s.Client, good, map[string]any{"n": 0})
	before := s.Memory(t)

	var bad, fine sync.WaitGroup
	done := make(chan struct{})
	for code, want := range hostile {
		workflow := prepare(t, s.Client, code)
		bad.Go(func() {
			if run := finish(t, s.Client, workflow, map[string]any{}); run.Status != "failed" || run.Error == nil || run.Error.Code != want {
				t.Errorf("%s\nended %s, %+v, want %s", code, run.Status, run.Error, want)
			}
		})
	}
	// One that does the same again and again while the others are under way.
	fine.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			// A script that had to wait too long for its turn is tried again.
			run := finish(t, s.Client, good, map[string]any{"n": n})
			if got := fmt.Sprint(run.Steps[0].Output); run.Status != "succeeded" || got != fmt.Sprintf("map[clean:true n:%d set:1]", n+1) {
				t.Errorf("run %d: %s, %s, %+v", n, run.Status, got, run.Error)
			}
			s.Expect(t, http.StatusOK, "GET", "/readyz", nil)
		}
	})
	bad.Wait()
	close(done)
	fine.Wait()

	if grown := s.Memory(t) - before; grown > 256<<20 {
		t.Errorf("the server has grown by %d MiB", grown>>20)
	}
	s.Stop(t)
}

// A crash of the server takes its children with it, also in the middle of a
// script, and the run goes on with the next server.
func TestChildrenDieWithTheServer(t *testing.T) {
	s := harness.Start(t, t.TempDir(), "--js-processes", "2")
	slow := prepare(t, s.Client, "for (;;) {}")
	var started struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+slow+"/runs", map[string]any{}).Decode(t, &started)
	var pids []int
	within(t, "a script runs", func() bool {
		pids = children(t, s.Pid())
		return len(pids) > 0
	})
	for _, pid := range pids {
		if env := environ(t, pid); env != "" {
			t.Errorf("child %d has the environment %q", pid, env)
		}
	}
	s.Kill(t)
	within(t, "the children are gone", func() bool {
		return !slices.ContainsFunc(pids, alive)
	})

	next, err := harness.Launch(t.Context(), harness.Options{Dir: s.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close(t) })
	next.Key = s.Key
	within(t, "the run has ended", func() bool {
		var run runBody
		next.Expect(t, http.StatusOK, "GET", "/v1/runs/"+started.ID, nil).Decode(t, &run)
		return run.Status == "failed" && run.Error.Code == "script_timeout"
	})
	next.Stop(t)
}

// A run is cancelled in the middle of a script. The child that runs it is killed
// at once, and the next script has its place.
func TestCancelKillsTheScript(t *testing.T) {
	s := harness.Start(t, t.TempDir(), "--js-processes", "2")
	quick := prepare(t, s.Client, "return {n: input.n}")
	var endless struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "endless"}).Decode(t, &endless)
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+endless.ID, map[string]any{"state": "active", "steps": []any{
		map[string]any{"id": "js", "uses": "code.js", "timeout": "5m", "with": map[string]any{"code": "for (;;) {}"}},
	}})
	for n := range 5 {
		var runs []string
		for range 2 { // as many as may run
			var started struct{ ID string }
			s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+endless.ID+"/runs", nil).Decode(t, &started)
			runs = append(runs, started.ID)
		}
		var pids []int
		within(t, "both scripts run", func() bool {
			pids = slices.DeleteFunc(children(t, s.Pid()), func(pid int) bool { return !busy(pid) })
			return len(pids) == 2
		})
		for _, id := range runs {
			s.Expect(t, http.StatusOK, "POST", "/v1/runs/"+id+"/cancel", nil)
		}
		cancelled := time.Now()
		within(t, "the children are gone", func() bool { return !slices.ContainsFunc(pids, alive) })
		if took := time.Since(cancelled); took > time.Second {
			t.Errorf("the children were gone %v after the cancel", took)
		}
		if run := finish(t, s.Client, quick, map[string]any{"n": n}); run.Status != "succeeded" {
			t.Errorf("the next script: %s %+v", run.Status, run.Error)
		}
	}
	s.Stop(t)
}

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 20 seconds it is not true that %s", what)
		}
	}
}
