package cluster_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// The database crashes again and again under load. Meanwhile the service says
// that it is unavailable; nobody crashes with it, and the work goes on as soon
// as it is back.
func TestDatabaseCrashesUnderLoad(t *testing.T) {
	c := newCluster(t, options{nodes: 3, lease: lease, errors: databaseAway})
	random := harness.Random(c.seed, 0)
	l := newLoad(c, 12)
	l.begin()
	for i := range rounds(6) {
		time.Sleep(time.Duration(1000+random.IntN(2000)) * time.Millisecond)
		// Now and then for longer than nodes trust themselves, or live.
		away := time.Duration(random.IntN(1000)) * time.Millisecond
		if i%3 == 2 {
			away = lease + time.Duration(random.IntN(int(lease)))
		}
		after := l.crash(away)
		t.Logf("the database was away for %v; the next run was started %v after it was back", away, after.Round(time.Millisecond))
		if after > 5*time.Second {
			t.Errorf("the first run was started %v after the database was back", after)
		}
	}
	l.end()
	for _, m := range c.nodes {
		select {
		case <-m.Gone():
			t.Errorf("node %s is gone", m.name)
		default:
		}
	}
	if l.counts.unavailable == 0 {
		t.Error("nobody was told that the service is unavailable")
	}
	t.Logf("%d requests were answered while the database was away, the slowest after %v", l.counts.amid, l.slowestAmid.Round(time.Millisecond))
	if l.slowestAmid > 3*time.Second*slack {
		t.Errorf("while the database was away a request was answered after %v", l.slowestAmid)
	}
	if l.counts.lost > 0 || l.counts.amid < 2*rounds(6) {
		t.Errorf("while the database was away %d requests were answered; %d were not at all", l.counts.amid, l.counts.lost)
	}
	l.verify(false)
}

// crash ends the database for a while. It answers how long after its return the
// next step was executed.
func (l *load) crash(away time.Duration) time.Duration {
	l.t.Helper()
	over := l.c.suffer()
	defer over()
	l.c.pg.StopImmediate()
	time.Sleep(away)
	l.c.pg.Start()
	back := time.Now()
	before := len(l.sink.Counted())
	for len(l.sink.Counted()) == before { // a new key: a step that was not begun before
		if time.Since(back) > settleTime {
			l.t.Fatal("nothing happens although the database is back")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(back)
}
