package membership

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// guard drops all work when this node was not seen for too long: it stops before
// others begin.
func (m *Member) guard(ctx context.Context) {
	for {
		m.mu.Lock()
		left := time.Until(m.trusted)
		m.mu.Unlock()
		if left <= 0 {
			m.drop()
			left = m.every() / 10
		}
		if !clock.Sleep(ctx, left) {
			return
		}
	}
}

// drop lets go of all runs, once until the node is seen again.
func (m *Member) drop() {
	m.mu.Lock()
	again := m.lapsed
	m.lapsed, m.lost, m.trusted = true, true, time.Time{}
	if !again {
		m.stats.Lost++
	}
	m.mu.Unlock()
	if again {
		return
	}
	m.log.Warn("this node cannot be sure of its runs any more; it lets go of them")
	m.hands.DropAll()
}

// look compares what this node works on with what it has, after each heartbeat and
// when it is asked to. After a heartbeat it also takes up what is its own and what
// nobody works on.
func (m *Member) look(ctx context.Context) {
	for {
		select {
		case <-m.seen:
			if ours, working, ok := m.compare(ctx); ok {
				m.retake(ours, working)
			}
		case <-m.asked:
			m.compare(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// compare holds what this node works on against what the store says that it
// has: leases that are void end, what has come for a run is told, and the time
// that one waits for is watched. Where nobody can be told of such things as they
// happen, this is how they are heard of. It answers what is ours and what is
// worked on.
func (m *Member) compare(ctx context.Context) (ours map[string]run.Held, working map[string]bool, ok bool) {
	leases := m.hands.Leases()
	held, err := m.queue.Held(ctx, m.node.ID)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("cannot read the runs of this node", "error", err)
		}
		return nil, nil, false
	}
	ours = make(map[string]run.Held, len(held))
	for _, h := range held {
		ours[h.RunID] = h
	}
	working = make(map[string]bool, len(leases))
	for _, lease := range leases {
		working[lease.RunID] = true
		h, ok := ours[lease.RunID]
		switch {
		case lease.Epoch == 0: // about to begin
		case !ok || h.Armed || h.Epoch != lease.Epoch:
			m.hands.Abort(lease)
		case h.News:
			m.hands.Stir(lease.RunID)
		}
	}
	for id, h := range ours {
		if h.Armed && !working[id] && !m.hands.Has(id) {
			m.hands.Watch(h.Wake)
		}
	}
	return ours, working, true
}

// retake takes up what is ours and lies about. It may be on its way from one
// hand to another: what is seen twice is not.
func (m *Member) retake(ours map[string]run.Held, working map[string]bool) {
	m.mu.Lock()
	before, sure := m.missing, m.lost
	m.missing, m.lost = map[string]bool{}, false
	m.mu.Unlock()
	for id, h := range ours {
		if h.Armed || working[id] || m.hands.Has(id) {
			continue
		}
		if !sure && !before[id] {
			m.mu.Lock()
			m.missing[id] = true
			m.mu.Unlock()
			continue
		}
		m.hands.TakeUp(h.Wake)
	}
}

// bury takes over from other nodes when their time has run out.
func (m *Member) bury(ctx context.Context) {
	timer := time.NewTimer(m.life)
	defer timer.Stop()
	for {
		select {
		case left := <-m.expiry:
			timer.Reset(left)
		case <-timer.C:
			m.reap(ctx)
			timer.Reset(m.life)
			select {
			case m.hurry <- struct{}{}: // it learns whose time runs out next
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

// reap takes the runs of nodes whose time has run out.
func (m *Member) reap(ctx context.Context) {
	gone, err := within(ctx, m.registry.Expired)
	if err != nil {
		m.log.Warn("cannot look for nodes that are gone", "error", err)
		return
	}
	m.takeOver(ctx, gone)
}

// takeOver takes what nodes have that are gone, and forgets them.
func (m *Member) takeOver(ctx context.Context, gone []string) {
	for _, id := range gone {
		m.sever(ctx, id)
		count, err := m.takeFrom(ctx, id, true)
		removed := false
		if err == nil {
			removed, err = within(ctx, func(ctx context.Context) (bool, error) { return m.registry.Forget(ctx, id) })
		}
		if err != nil {
			m.log.Warn("cannot take over all runs of a node that is gone; trying again", "node", id, "error", err)
			continue
		}
		if !removed && count == 0 { // it is back, or somebody else was faster
			continue
		}
		m.log.Info("a node is gone; others go on with its runs", "node", id, "runs", count)
		m.mu.Lock()
		m.stats.TakenOver += int64(count)
		m.mu.Unlock()
		m.hands.TookOver()
	}
}

// sever ends what a node that is gone has open. Where that is not possible, it
// may take longer to take over from it.
func (m *Member) sever(ctx context.Context, id string) {
	if _, err := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.registry.Sever(ctx, id) }); err != nil {
		m.log.Warn("cannot end what a node that is gone has open in the database", "node", id, "error", err)
	}
}

// answerTime is how long the registry may take to answer: a database that was
// cut off may never do.
const answerTime = 5 * time.Second

func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return ask(ctx)
}

func (m *Member) takeFrom(ctx context.Context, id string, died bool) (int, error) {
	for total := 0; ; {
		count, more, err := m.queue.TakeFrom(ctx, id, died)
		if total += count; err != nil || !more {
			return total, err
		}
	}
}

const (
	// tendEvery is how often one node looks for what was lost on its way.
	tendEvery = 10 * time.Second
	// recountEvery is how many of these looks pass between counts of what
	// workspaces have under way.
	recountEvery = 6
)

// tend looks after what should not be: runs that nobody brings to a node, slots
// that nobody uses. One node at a time does.
func (m *Member) tend(ctx context.Context) {
	var strays []string
	for n := 0; ; n++ {
		mine, err := within(ctx, func(ctx context.Context) (bool, error) {
			return m.registry.Serve(ctx, "tend", m.node.ID, 3*tendEvery)
		})
		if err == nil && mine {
			m.sweep(ctx, n%recountEvery == 0)
			strays = m.findStrays(ctx, strays)
			if n%recountEvery == 0 {
				m.tidy(ctx)
			}
		} else {
			strays = nil
		}
		if !clock.Sleep(ctx, tendEvery) {
			return
		}
	}
}

func (m *Member) tidy(ctx context.Context) {
	if err := m.registry.Tidy(ctx); err != nil && ctx.Err() == nil {
		m.log.Warn("cannot remove what is left of the hand-over of runs", "error", err)
	}
}

func (m *Member) sweep(ctx context.Context, recount bool) {
	for more := true; more; {
		var (
			found  int
			parked []string
			err    error
		)
		if found, more, parked, err = m.queue.Sweep(ctx); err != nil {
			if ctx.Err() == nil {
				m.log.Warn("cannot look for runs that were lost on their way", "error", err)
			}
			return
		}
		if found > 0 {
			m.log.Warn("runs were on nobody's way; they are now", "count", found)
			m.mu.Lock()
			m.stats.Found += int64(found)
			m.mu.Unlock()
		}
		for _, workspaceID := range parked {
			if recount {
				m.recount(ctx, workspaceID)
			}
			m.hands.PassOn(workspaceID)
		}
	}
}

// findStrays takes over from nodes that took something after they were forgotten
// and died before they were seen again. One that is alive is seen again soon: what
// was unknown at the last look too is not. It returns those of this look.
func (m *Member) findStrays(ctx context.Context, before []string) []string {
	strays, err := m.queue.Strays(ctx)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("cannot look for what unknown nodes hold", "error", err)
	}
	dead := slices.DeleteFunc(slices.Clone(strays), func(id string) bool { return !slices.Contains(before, id) })
	m.takeOver(ctx, dead)
	return strays
}

func (m *Member) recount(ctx context.Context, workspaceID string) {
	if wrong, err := m.queue.Recount(ctx, workspaceID); err == nil && wrong {
		m.log.Error("the number of runs under way was wrong; it is corrected", "workspace_id", workspaceID)
	}
}
