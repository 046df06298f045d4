package cluster_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// A node is paused for longer than its lease and then goes on where it was: a
// zombie. Others have its runs by then, and nothing that it still writes counts.
// Nor does what it had sent before, when that arrives only now.
func TestPauseNodeUnderLoad(t *testing.T) {
	c := newCluster(t, options{nodes: 3, lease: lease, proxied: true, errors: databaseAway})
	random := harness.Random(c.seed, 0)
	l := newLoad(c, 16)
	apart := l.newTenant() // of whose runs it is known where they are
	apart.workflows["late"] = define(t, c.nodes[0].With(apart.key), l.calls("one", 1200),
		map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "50ms"}}, l.calls("three", 20))
	l.begin()
	hit, taken := 0, 0
	for i := range rounds(4) {
		time.Sleep(time.Duration(500+random.IntN(1000)) * time.Millisecond)
		m := c.nodes[random.IntN(len(c.nodes))]
		sends := apart
		if i%2 == 1 {
			sends = nil
		}
		held := l.pause(m, sends)
		if taken += held; held > 0 {
			hit++
		}
	}
	l.end()
	l.verify(true)
	l.verifyLate()
	t.Logf("%d runs were taken from nodes that were paused; %d times a node noticed; %d late writes were refused",
		taken, c.noticed(letGo), c.noticed(lostLease))
	if hit < rounds(4)/2 || c.noticed(letGo) < hit {
		t.Errorf("%d of the pauses hit a node that held runs, %d were noticed", hit, c.noticed(letGo))
	}
	l.verifyZombies()
}

// pause stops a node for twice as long as it is waited for; or, with results of a
// tenant's runs on their way, until others do the same again. It answers how many
// runs it held.
func (l *load) pause(m *member, sends *tenant) (held int) {
	c := l.c
	c.t.Helper()
	id := c.nodeID(m.name)
	m.leave(true)
	over := c.suffer()
	defer over()
	var late map[string]bool
	if sends != nil {
		late = l.delay(m, sends)
	}
	m.Signal(c.t, syscall.SIGSTOP)
	stopped := time.Now()
	held = number(c.t, c.tables, `SELECT count(*) FROM run_queue WHERE node = $1`, id)
	c.awaitForgotten(id)
	if took := time.Since(stopped); took > c.options.lease+2*time.Second {
		c.t.Errorf("the runs of a node that was paused were taken after %v", took)
	}
	if left := number(c.t, c.tables, `SELECT count(*) FROM run_queue WHERE node = $1`, id); left > 0 {
		c.t.Errorf("a node that is gone still holds %d runs", left)
	}
	if sends != nil {
		l.sink.Await(c.t, "others execute what it had executed", 2*len(late), func(call *sink.Call) bool { return late[call.Run()] })
		m.proxy.BlackHole(false)
	} else {
		time.Sleep(2*c.options.lease - time.Since(stopped))
	}
	m.Signal(c.t, syscall.SIGCONT)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // it is one of them again
		if number(c.t, c.tables, `SELECT count(*) FROM nodes WHERE id = $1`, id) == 1 {
			break
		}
		if time.Since(began) > settleTime {
			c.t.Fatal("a node that was paused does not come back")
		}
	}
	m.leave(false)
	// Whoever is paused next, it does not have them.
	l.sink.Await(c.t, "they have gone on", len(late), func(call *sink.Call) bool { return late[call.Run()] && call.Path == "/three" })
	return held
}

// delay has runs of a node come to the end of a step when nothing that the node
// sends arrives any more, until its proxy lets it. It answers which runs.
func (l *load) delay(m *member, of *tenant) map[string]bool {
	l.t.Helper()
	late := map[string]bool{}
	for range 4 {
		late[l.startOn(m, of, "late").id] = true
	}
	calls := l.sink.Await(l.t, "steps are under way", len(late), func(call *sink.Call) bool { return late[call.Run()] })
	// The node must not be cut off for so long that it notices.
	time.Sleep(700*time.Millisecond - time.Since(calls[0].At))
	m.proxy.BlackHole(true)
	for _, call := range l.sink.Seen(func(call *sink.Call) bool { return late[call.Run()] && !call.Ended.IsZero() }) {
		delete(late, call.Run()) // its result may have arrived
	}
	l.sink.Await(l.t, "steps have ended", len(late), func(call *sink.Call) bool { return late[call.Run()] && !call.Ended.IsZero() })
	time.Sleep(lease / 10) // their results are sent
	return late
}

// verifyLate holds runs against it that nothing of them counts which arrived when
// others had them: the result of the step is that of the second call.
func (l *load) verifyLate() {
	l.t.Helper()
	late := 0
	for _, e := range l.runs {
		calls := len(l.sink.Seen(func(call *sink.Call) bool { return call.Key == e.id+"/one" }))
		if e.kind != "late" || calls < 2 {
			continue
		}
		late++
		if l.counted(e, "one", calls) == 1 {
			l.t.Errorf("run %s went on with what a node wrote that had lost it", e.id)
		}
	}
	if late == 0 || l.c.noticed(lostLease) == 0 {
		l.t.Errorf("of %d runs results came too late, %d writes were refused: nobody knows what would become of them", late, l.c.noticed(lostLease))
	}
}

// verifyZombies counts steps that were begun three times: by the node that was
// paused, by the one that took over, and by the first again. A node does not
// begin what it cannot be sure of, but for what had passed that check already.
func (l *load) verifyZombies() {
	l.t.Helper()
	thrice := 0
	for key, n := range l.sink.Counted() {
		if n > 2 {
			l.t.Logf("%s was called %d times", key, n)
			thrice++
		}
	}
	if thrice > len(l.c.faults) {
		l.t.Errorf("%d steps were begun by nodes that had lost their runs", thrice)
	}
}
