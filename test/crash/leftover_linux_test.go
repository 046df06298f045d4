package crash_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// After a load a server is as it was: neither connections nor memory are left
// over, however much it has done.
func TestLoadLeavesNothingBehind(t *testing.T) {
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	l := newCalling(t, s, outside)
	hang := define(t, s.Client, nil, calls("hangs", outside.URL+"?hang"))
	round := func() (memory int64, files int) {
		var left atomic.Int64
		left.Store(150)
		l.work(s, func() bool { return left.Add(-1) < 0 })
		for n := range int64(30) { // and some that are cancelled in the middle
			run := startRun(t, s.Client, hang, n).ID
			outside.Await(t, "the call is under way", 1, func(c *sink.Call) bool { return c.Run() == run })
			cancelRun(t, s.Client, run)
		}
		outside.Quiet(t)
		return s.Memory(t), s.OpenFiles(t)
	}
	memory, files := round()
	var lastMemory int64
	var lastFiles int
	for range 3 {
		lastMemory, lastFiles = round()
	}
	t.Logf("%d MiB and %d files after the first round, %d MiB and %d files after the last", memory>>20, files, lastMemory>>20, lastFiles)
	if lastFiles > files*6/5 {
		t.Errorf("open files have grown from %d to %d", files, lastFiles)
	}
	// What nothing refers to any more is looked for every two minutes at the latest.
	for deadline := time.Now().Add(4 * time.Minute); lastMemory > memory*3/2+32<<20; lastMemory = s.Memory(t) {
		if time.Now().After(deadline) {
			t.Errorf("memory has grown from %d to %d MiB", memory>>20, lastMemory>>20)
			break
		}
		time.Sleep(time.Second)
	}
	s.Stop(t)
}
