package cluster_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
)

// The database crashes under load. Meanwhile every request gets a response, a 503. No
// node crashes with it, and runs continue once it is back.
func TestDatabaseCrashUnderLoad(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: shortLease, timeout: outageTimeout, server: &postgres.Options{}})
	random := harness.Random(c.seed, 0)
	l := newLoad(c)
	l.startClients()
	for i := range lane.Pick(2, 9) {
		l.awaitMore(5 + random.IntN(15))
		downtime := time.Duration(random.IntN(1000)) * time.Millisecond
		if i%3 == 1 { // longer than a lease
			downtime += c.options.lease
		}
		l.crashDatabase(downtime)
	}
	l.awaitMore(10)
	l.stopClients()
	for _, m := range c.nodes {
		if m.Exited() {
			t.Errorf("node %s has exited", m.name)
		}
	}
	if l.counts.lost > 0 {
		t.Errorf("%d requests got no response", l.counts.lost)
	}
	l.verify(false)
}

// crashDatabase stops the database for at least that long, and until clients got
// errors. It returns once steps are executed again.
func (l *load) crashDatabase(downtime time.Duration) {
	l.t.Helper()
	endFault := l.c.recordFault("")
	before := l.unavailable()
	l.c.pg.StopImmediate()
	time.Sleep(downtime)
	harness.Eventually(l.t, "clients get a 503", func() bool { return l.unavailable() >= before+2 })
	l.c.pg.Start()
	back, before := time.Now(), len(l.sink.Counts())
	harness.Eventually(l.t, "a step is executed after the database is back", func() bool { return len(l.sink.Counts()) > before })
	endFault()
	l.t.Logf("the database was down for %v; the next step was executed %v after it was back", downtime, time.Since(back).Round(time.Millisecond))
}
