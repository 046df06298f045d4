package river

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// Run takes part until the context ends: it takes up runs that are handed over
// and those whose time comes. What it has then, and nobody works on, is for other
// nodes at once: those that are worked on may take their time.
func (d *Dispatcher) Run(ctx context.Context) error {
	client, stopped := context.WithoutCancel(ctx), make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		d.mu.Lock()
		d.leaving = true
		d.mu.Unlock()
	}()
	if err := d.begin(ctx, client); err != nil {
		return err
	}
	d.watch(ctx)
	<-stopped
	limit, cancel := context.WithTimeout(client, jobTime)
	defer cancel()
	d.giveBack(limit)
	err := d.client.Stop(limit)
	d.takers.Wait()
	d.giveBack(limit) // what has come meanwhile
	return err
}

// giveBack gives back what waits here, to be worked on or for its time.
func (d *Dispatcher) giveBack(ctx context.Context) {
	d.mu.Lock()
	waiting := slices.Concat(d.ready, d.timers.list)
	d.forget()
	d.mu.Unlock()
	if err := d.store.GiveBack(ctx, waiting); err != nil {
		d.log.Warn("cannot give back runs that wait here; others get them when this node has left", "error", err)
	}
}

// begin starts the client. A database that is away is waited for.
func (d *Dispatcher) begin(ctx, client context.Context) error {
	for {
		err := d.client.Start(client)
		if err == nil || ctx.Err() != nil {
			return err
		}
		d.log.Error("cannot take part in the hand-over of runs; trying again", "error", err)
		if !clock.Sleep(ctx, time.Second) {
			return nil
		}
	}
}

// watch takes up the runs whose time comes.
func (d *Dispatcher) watch(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		due, next := d.timers.due(clock.Now())
		for _, wake := range due {
			d.taking[wake.RunID] = true
		}
		d.mu.Unlock()
		for _, wake := range due {
			d.takers.Go(func() { d.take(ctx, wake) })
		}
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-d.earlier:
		case <-ctx.Done():
			return
		}
	}
}

// take takes up a run that was watched. Where that fails it is tried again: the
// run is in nobody else's hands.
func (d *Dispatcher) take(ctx context.Context, wake run.Wake) {
	for ctx.Err() == nil {
		err := d.takeOnce(ctx, wake)
		if err == nil {
			d.taken(wake, false)
			return
		}
		if ctx.Err() == nil {
			d.log.Error("cannot take up a run; trying again", "run_id", wake.RunID, "error", err)
		}
		clock.Sleep(ctx, time.Second)
	}
	d.taken(wake, true)
}

// takeOnce takes up a run if there is room for it here. Where there is none,
// another node may have some.
func (d *Dispatcher) takeOnce(ctx context.Context, wake run.Wake) error {
	if !d.keep(ctx, wake.RunID, wake.Isolated()) {
		return d.store.GiveBack(ctx, []run.Wake{wake})
	}
	err := d.claim(ctx, wake, func(context.Context, pgx.Tx) error { return nil })
	if err != nil {
		d.Unreserve(wake.RunID)
	}
	return err
}

// taken ends the taking up of a run. One that is left is watched as before.
func (d *Dispatcher) taken(wake run.Wake, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.taking, wake.RunID)
	if left {
		d.timers.add(wake)
	}
}

// Freed tells that a workspace may have slots for runs that are parked.
func (d *Dispatcher) Freed(workspaceID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passing[workspaceID] = true
	signal(d.freed)
}

// PassOn gives free slots to runs that are parked, until the context ends. That
// is after the last run of this node has: their slots are for others.
func (d *Dispatcher) PassOn(ctx context.Context) error {
	for {
		select {
		case <-d.freed:
			d.passOn(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPass)
			d.passOn(last)
			cancel()
			return nil
		}
	}
}

// lastPass bounds the passing on of the last slots.
const lastPass = 2 * time.Second

func (d *Dispatcher) passOn(ctx context.Context) {
	d.mu.Lock()
	workspaces := d.passing
	d.passing = map[string]bool{}
	d.mu.Unlock()
	for workspaceID := range workspaces {
		more, err := d.store.PassOn(ctx, workspaceID)
		if err != nil && ctx.Err() == nil {
			d.log.Error("cannot take up runs that are parked; trying again", "error", err)
			clock.Sleep(ctx, time.Second)
		}
		if more || err != nil {
			d.Freed(workspaceID)
		}
	}
}

// timers are runs that this node watches, the one with the earliest time first.
type timers struct {
	list []run.Wake
	at   map[string]int // where each is
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

// add watches a run, instead of what was watched of it before.
func (t *timers) add(w run.Wake) {
	if t.at == nil {
		t.at = map[string]int{}
	}
	if i, ok := t.at[w.RunID]; ok {
		heap.Remove(t, i)
	}
	heap.Push(t, w)
}

// has tells whether a run is watched and due no later than at a time.
func (t *timers) has(runID string, at time.Time) bool {
	i, ok := t.at[runID]
	return ok && !t.list[i].At.After(at)
}

// hurry makes a run due.
func (t *timers) hurry(runID string) bool {
	i, ok := t.at[runID]
	if ok {
		t.list[i].At = time.Time{}
		heap.Fix(t, i)
	}
	return ok
}

// due takes the runs whose time has come, and tells how long it is to the next.
func (t *timers) due(now time.Time) (due []run.Wake, next time.Duration) {
	for len(t.list) > 0 {
		if first := t.list[0].At; first.After(now) {
			return due, first.Sub(now)
		}
		due = append(due, heap.Pop(t).(run.Wake))
	}
	return due, time.Hour
}
