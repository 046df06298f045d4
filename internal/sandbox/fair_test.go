package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// One workspace has more endless scripts than there are slots. The scripts of
// another run without waiting for any of them to end.
func TestEndlessScriptsLeaveRoomForOtherWorkspaces(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 2})
	pool.Share()
	ctx, cancel := context.WithCancel(t.Context())
	var endless sync.WaitGroup
	for range 20 {
		endless.Go(func() {
			release, err := pool.Acquire(ctx, "endless")
			if err != nil {
				return // cancelled
			}
			defer release()
			_, _ = pool.Run(ctx, sandbox.Script{Code: endlessLoop})
		})
	}
	awaitStats(t, pool, func(s sandbox.Stats) bool { return s.Scripts == 1 && s.Waiting == 19 })
	for range 3 {
		release, err := pool.Acquire(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := pool.Run(t.Context(), sandbox.Script{Code: "return 1", Limit: 2 * time.Minute})
		if err != nil || string(outcome.Output) != "1" {
			t.Errorf("the script of another workspace: %s, %v", outcome.Output, err)
		}
		release()
	}
	if s := pool.Stats(); s.Scripts != 1 || s.Waiting != 19 {
		t.Errorf("%d endless scripts run and %d wait", s.Scripts, s.Waiting)
	}
	cancel()
	endless.Wait()
	awaitStats(t, pool, func(s sandbox.Stats) bool { return s.Scripts == 0 && s.Waiting == 0 })
}

// A workspace that does not share the pool can use all slots.
func TestSingleWorkspaceUsesAllSlots(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{Size: 3})
	for range 3 {
		release, err := pool.Acquire(t.Context(), "ws")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
	}
	if s := pool.Stats(); s.Scripts != 3 {
		t.Errorf("%d slots are used", s.Scripts)
	}
}

func awaitStats(t *testing.T, pool *sandbox.Pool, holds func(sandbox.Stats) bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(pool.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still %+v", pool.Stats())
		}
	}
}

// slowToCompile takes exponential time to parse.
var slowToCompile = strings.Repeat("((a=", 200) + "1" + strings.Repeat(")=>1)", 200)

// One workspace has many checks that take as long as they may. Those of another do
// not wait for them, and the workspace cannot have any number of them wait.
func TestSlowChecksDoNotDelayOtherWorkspaces(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const most = 17 // one runs, 16 wait
	ended := make(chan error, 2*most)
	for range 2 * most {
		go func() {
			_, err := pool.Check(ctx, "slow", slowToCompile)
			ended <- err
		}()
	}
	for range most {
		if err := <-ended; !errors.Is(err, fairqueue.ErrFull) {
			t.Fatalf("one of too many checks ended with %v", err)
		}
	}
	for range 3 {
		if _, err := pool.Check(t.Context(), "other", addOne); err != nil {
			t.Error(err)
		}
	}
	if n := len(ended); n > most/2 {
		t.Errorf("%d slow checks ended before three quick ones", n)
	}
	cancel()
	for range most {
		<-ended
	}
}
