package crash_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// jumpingClock is the clock of a server, which a test can set: the machine's clock, or on
// PostgreSQL the clock of the database. libfaketime cannot set the former, because Go
// reads it without the C library; test/cluster sets the latter with it.
type jumpingClock struct {
	env  string
	set  func(time.Duration)
	skew time.Duration
}

// newJumpingClock returns a clock for a server that has been started before.
func newJumpingClock(t *testing.T, dir string) *jumpingClock {
	t.Helper()
	if harness.OnPostgres() {
		db := openShared(t, dir)
		tables.Exec(t, db, `CREATE TABLE test_skew AS SELECT interval '0' AS skew`)
		tables.Exec(t, db, `CREATE FUNCTION test_clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT clock_timestamp() + skew FROM public.test_skew'`)
		return &jumpingClock{env: "FP_DATABASE_CLOCK=public.test_clock", set: func(skew time.Duration) {
			tables.Exec(t, db, `UPDATE test_skew SET skew = $1::bigint * interval '1 microsecond'`, skew.Microseconds())
		}}
	}
	path := filepath.Join(t.TempDir(), "skew")
	return &jumpingClock{env: "FP_CLOCK_FILE=" + path, set: func(skew time.Duration) {
		next := path + ".next"
		if err := os.WriteFile(next, []byte(skew.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}}
}

func (c *jumpingClock) jump(by time.Duration) {
	c.skew += by
	c.set(c.skew)
}

func (c *jumpingClock) now() time.Time { return time.Now().Add(c.skew) }

// start starts a server with the clock.
func (c *jumpingClock) start(t *testing.T, was *harness.Server) *harness.Server {
	t.Helper()
	s := harness.StartWith(t, harness.Options{Dir: was.Dir, Args: []string{egress}, Failpoint: "at_start@nobody:exit", Env: []string{c.env}})
	s.Key = was.Key
	return s
}

// The clock jumps forward and back while runs work, wait and pause before a retry, alone
// and together with a kill of the server. No run fails, and waits for a duration neither
// end early nor wait for the clock. Waits until a time follow the clock.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), egress)
	s.Stop(t)
	c := newJumpingClock(t, s.Dir)
	s = c.start(t, s)
	w := newClockWorkflows(t, s)
	for _, jump := range lane.Pick([]time.Duration{time.Hour}, []time.Duration{time.Hour, 24 * time.Hour, 90 * time.Second}) {
		for _, disturb := range []struct {
			name string
			jump func(by time.Duration)
		}{
			{"while it runs", c.jump},
			{"before a kill", func(by time.Duration) {
				c.jump(by)
				s.Kill(t)
				s = c.start(t, s)
			}},
			{"while it is down", func(by time.Duration) {
				s.Kill(t)
				c.jump(by)
				s = c.start(t, s)
			}},
		} {
			for _, by := range []time.Duration{jump, -jump} {
				t.Logf("the clock jumps by %s %s", by, disturb.name)
				r := w.begin(t, s, c, by)
				disturb.jump(by)
				r.check(t, s)
			}
		}
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// waitLength is the length of a wait during which the clock jumps.
const waitLength = 4 * time.Second

// clockWorkflows are workflows whose runs take some time.
type clockWorkflows struct {
	target                        *sink.Sink
	works, waits, retries, untils string
}

func newClockWorkflows(t *testing.T, s *harness.Server) *clockWorkflows {
	t.Helper()
	w := &clockWorkflows{target: sink.New(t)}
	w.works = flow.DefineWith(t, s.Client, map[string]any{"timeout": "10m"}, flow.HTTP("call", w.target.URL+"/work?ms=2000"))
	w.waits = flow.Define(t, s.Client, flow.Wait("wait", waitLength.String()), flow.HTTP("after", w.target.URL+"/after"))
	w.retries = flow.Define(t, s.Client, flow.HTTP("call", w.target.URL+"/fail?status=503", "retry", map[string]any{"max_attempts": 2, "initial": "4s"}))
	w.untils = flow.Define(t, s.Client, map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"until": "${{ trigger.payload.until }}"}})
	return w
}

// clockRuns are runs during which the clock jumps.
type clockRuns struct {
	*clockWorkflows
	jump                       time.Duration
	work, wait, retried, until string
	started                    time.Time // before the wait
}

// begin starts runs and waits until they are executing or waiting. One of them waits
// until a time that the clock has passed after a jump forward, and has not after one back.
func (w *clockWorkflows) begin(t *testing.T, s *harness.Server, c *jumpingClock, jump time.Duration) *clockRuns {
	t.Helper()
	r := &clockRuns{clockWorkflows: w, jump: jump, started: time.Now()}
	var until runBody
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+w.untils+"/runs",
		map[string]any{"payload": map[string]any{"until": c.now().Add(jump.Abs() / 2).UTC().Format(time.RFC3339)}}).Decode(t, &until)
	r.until = until.ID
	r.work, r.wait, r.retried = startRun(t, s.Client, w.works, 1).ID, startRun(t, s.Client, w.waits, 1).ID, startRun(t, s.Client, w.retries, 1).ID
	awaitReason(t, s.Client, r.until, "until")
	w.target.Await(t, "the call of a run", 1, func(c *sink.Call) bool { return c.Run() == r.work })
	w.target.Await(t, "the call that fails", 1, func(c *sink.Call) bool { return c.Run() == r.retried })
	return r
}

// check waits for the ends of the runs, which come long before the clock has caught up.
func (r *clockRuns) check(t *testing.T, s *harness.Server) {
	t.Helper()
	if end := awaitEnd(t, s.Client, r.work); end.Status != succeeded {
		t.Errorf("the run that worked for 2 s is %s: %+v", end.Status, end.Error)
	}
	if end := awaitEnd(t, s.Client, r.wait); end.Status != succeeded {
		t.Errorf("the run that waited is %s: %+v", end.Status, end.Error)
	}
	for _, call := range r.target.Calls(func(c *sink.Call) bool { return c.Run() == r.wait }) {
		if took := call.At.Sub(r.started); took < waitLength-100*time.Millisecond {
			t.Errorf("the wait of %s ended after %s", waitLength, took)
		}
	}
	if end := awaitEnd(t, s.Client, r.retried); end.Status != failed || len(r.target.CallsOf(r.retried)) < 2 {
		t.Errorf("the run whose call fails is %s after %d calls: %+v", end.Status, len(r.target.CallsOf(r.retried)), end.Error)
	}
	if r.jump > 0 {
		if end := awaitEnd(t, s.Client, r.until); end.Status != succeeded {
			t.Errorf("the run that waited until a time is %s: %+v", end.Status, end.Error)
		}
		return
	}
	if now := getRun(t, s.Client, r.until); now.Status != running {
		t.Errorf("the run that waits until a time is %s although the clock was set back: %+v", now.Status, now.Error)
	}
	s.Expect(t, http.StatusOK, "POST", "/v1/runs/"+r.until+"/cancel", nil)
}
