package river

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
)

// Run claims runs of jobs and of local timers until the context ends. Then it
// requeues all runs that are not executing, so that other nodes get them without
// waiting for those that are.
func (d *Dispatcher) Run(ctx context.Context) error {
	client, stopped := context.WithoutCancel(ctx), make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		d.mu.Lock()
		d.draining = true
		d.mu.Unlock()
	}()
	if err := d.startClient(ctx, client); err != nil {
		return err
	}
	var scheduling sync.WaitGroup
	scheduling.Go(func() { d.scheduleJobs(ctx) })
	d.runTimers(ctx)
	<-stopped
	scheduling.Wait()
	limit, cancel := context.WithTimeout(client, jobTime)
	defer cancel()
	d.requeue(limit)
	err := d.client.Stop(limit)
	d.claimers.Wait()
	d.requeue(limit) // runs that arrived in the meantime
	return err
}

func (d *Dispatcher) requeue(ctx context.Context) {
	d.mu.Lock()
	waiting := slices.Concat(d.ready, d.timers.list)
	d.forget()
	d.mu.Unlock()
	if err := d.store.Requeue(ctx, waiting); err != nil {
		d.log.Warn("cannot requeue the waiting runs of this node; other nodes take them over when it has left", "error", err)
	}
}

// startClient starts the River client. It retries while the database is unavailable.
func (d *Dispatcher) startClient(ctx, client context.Context) error {
	for {
		err := d.client.Start(client)
		if err == nil || ctx.Err() != nil {
			return err
		}
		d.log.Error("cannot start the job queue; retrying", "error", err)
		if !clock.Sleep(ctx, time.Second) {
			return nil
		}
	}
}

func (d *Dispatcher) runTimers(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		due, next := d.timers.due(clock.Steady())
		for _, wake := range due {
			d.claiming[wake.RunID] = true
		}
		d.mu.Unlock()
		for _, wake := range due {
			d.claimers.Go(func() { d.claimDue(ctx, wake) })
		}
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-d.timerChanged:
		case <-ctx.Done():
			return
		}
	}
}

// claimDue claims a run whose timer fired. It retries on errors, because no other node
// has the run.
func (d *Dispatcher) claimDue(ctx context.Context, wake run.Wake) {
	for ctx.Err() == nil {
		err := d.tryClaim(ctx, wake)
		if err == nil {
			d.doneClaiming(wake, false)
			return
		}
		if ctx.Err() == nil {
			d.log.Error("cannot claim a run; retrying", "run_id", wake.RunID, "error", err)
		}
		clock.Sleep(ctx, time.Second)
	}
	d.doneClaiming(wake, true)
}

// tryClaim claims a run if this node has capacity. Otherwise it requeues the run for
// other nodes.
func (d *Dispatcher) tryClaim(ctx context.Context, wake run.Wake) error {
	if !d.waitForCapacity(ctx, wake.RunID, wake.Isolated()) {
		return d.store.Requeue(ctx, []run.Wake{wake})
	}
	err := d.claim(ctx, wake, func(context.Context, database.Conn) error { return nil })
	if err != nil {
		d.Unreserve(wake.RunID)
	}
	return err
}

// doneClaiming ends the claim of a run. If the run was left unclaimed, its timer is
// set again.
func (d *Dispatcher) doneClaiming(wake run.Wake, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.claiming, wake.RunID)
	if left {
		d.timers.add(wake)
	}
}

// SlotFreed tells the dispatcher that a workspace may have slots for throttled runs.
func (d *Dispatcher) SlotFreed(workspaceID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freedWorkspaces[workspaceID] = true
	pubsub.Signal(d.workspaceSlotFreed)
}

// AdmitThrottled gives free slots to throttled runs until the context ends. It must
// outlive the runs of this node, to pass on their slots.
func (d *Dispatcher) AdmitThrottled(ctx context.Context) error {
	for {
		select {
		case <-d.workspaceSlotFreed:
			d.admitThrottled(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAdmission)
			d.admitThrottled(last)
			cancel()
			return nil
		}
	}
}

const lastAdmission = 2 * time.Second

func (d *Dispatcher) admitThrottled(ctx context.Context) {
	d.mu.Lock()
	workspaces := d.freedWorkspaces
	d.freedWorkspaces = map[string]bool{}
	d.mu.Unlock()
	for workspaceID := range workspaces {
		more, err := d.store.AdmitThrottled(ctx, workspaceID)
		if err != nil && ctx.Err() == nil {
			d.log.Error("cannot admit throttled runs; retrying", "error", err)
			clock.Sleep(ctx, time.Second)
		}
		if more || err != nil {
			d.SlotFreed(workspaceID)
		}
	}
}

// timers are the local timers of runs, the earliest first.
type timers struct {
	list []run.Wake
	at   map[string]int // index in list by run id
}

// Len implements heap.Interface.
func (t *timers) Len() int { return len(t.list) }

// Less implements heap.Interface.
func (t *timers) Less(i, j int) bool { return t.list[i].At.Before(t.list[j].At) }

// Swap implements heap.Interface.
func (t *timers) Swap(i, j int) {
	t.list[i], t.list[j] = t.list[j], t.list[i]
	t.at[t.list[i].RunID], t.at[t.list[j].RunID] = i, j
}

// Push implements heap.Interface.
func (t *timers) Push(w any) {
	t.at[w.(run.Wake).RunID] = len(t.list)
	t.list = append(t.list, w.(run.Wake))
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := len(t.list) - 1
	w := t.list[last]
	t.list = t.list[:last]
	delete(t.at, w.RunID)
	return w
}

// add sets the timer of a run. It replaces an earlier one.
func (t *timers) add(w run.Wake) {
	if t.at == nil {
		t.at = map[string]int{}
	}
	if i, ok := t.at[w.RunID]; ok {
		heap.Remove(t, i)
	}
	heap.Push(t, w)
}

// has reports whether a run has a timer that fires no later than at.
func (t *timers) has(runID string, at time.Time) bool {
	i, ok := t.at[runID]
	return ok && !t.list[i].At.After(at)
}

// makeDue makes the timer of a run due. It returns false if there is none.
func (t *timers) makeDue(runID string) bool {
	i, ok := t.at[runID]
	if ok {
		t.list[i].At = time.Time{}
		heap.Fix(t, i)
	}
	return ok
}

// due removes and returns the runs that are due, and the time until the next one.
func (t *timers) due(now time.Time) (due []run.Wake, next time.Duration) {
	for len(t.list) > 0 {
		if first := t.list[0].At; first.After(now) {
			return due, first.Sub(now)
		}
		due = append(due, heap.Pop(t).(run.Wake))
	}
	return due, time.Hour
}
