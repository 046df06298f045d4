// Package fairqueue hands out slots to workspaces in turns.
package fairqueue

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrFull is returned if too many requests of a workspace wait already.
var ErrFull = errors.New("the queue of the workspace is full")

// Queue hands out slots. Workspaces that wait for one take turns, and none
// has more than its share, so that a workspace with one request waits neither
// for the backlog nor for the long requests of another. Within a workspace it is
// first in, first out.
//
// As long as a slot is free, every workspace that waits has its share.
type Queue struct {
	mu                sync.Mutex
	slots             int
	share, maxWaiting int

	used       int
	workspaces map[string]*holder
	roundRobin []*holder // the workspaces that wait, next first
	last       *holder   // the workspace that got the last slot
}

// holder is a workspace that has slots or waits for one.
type holder struct {
	id      string
	used    int
	waiting list.List // of *ticket
}

type ticket struct {
	holder  *holder
	place   *list.Element // nil once it has a slot
	granted chan struct{} // closed when it has a slot
}

// New returns a queue of slots. A workspace may have up to share of them, and up to
// maxWaiting of its requests may wait; 0 means any number.
func New(slots, share, maxWaiting int) *Queue {
	return &Queue{slots: slots, share: share, maxWaiting: maxWaiting, workspaces: map[string]*holder{}}
}

// Acquire waits for a slot. It returns the cause if the context ends first, or ErrFull
// if too many requests of the workspace wait already. The caller must call release
// once.
func (q *Queue) Acquire(ctx context.Context, workspaceID string) (release func(), err error) {
	t, err := q.enqueue(workspaceID)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.granted:
		return func() { q.release(t) }, nil
	case <-ctx.Done():
		q.release(t)
		return nil, context.Cause(ctx)
	}
}

// enqueue requests a slot, which the request gets at once if one is free for it.
func (q *Queue) enqueue(workspaceID string) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.workspaces[workspaceID]
	if h == nil {
		h = &holder{id: workspaceID}
		q.workspaces[workspaceID] = h
	}
	if q.maxWaiting > 0 && h.waiting.Len() >= q.maxWaiting {
		return nil, ErrFull
	}
	t := &ticket{holder: h, granted: make(chan struct{})}
	t.place = h.waiting.PushBack(t)
	if h.waiting.Len() == 1 {
		q.addToRoundRobin(h)
	}
	q.grant()
	return t, nil
}

// addToRoundRobin gives a workspace the last turn, but not after the one that has
// just had its own.
func (q *Queue) addToRoundRobin(h *holder) {
	at := len(q.roundRobin)
	if at > 0 && q.roundRobin[at-1] == q.last {
		at--
	}
	q.roundRobin = slices.Insert(q.roundRobin, at, h)
}

func (q *Queue) release(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := t.holder
	if t.place == nil {
		h.used--
		q.used--
	} else if h.waiting.Remove(t.place); h.waiting.Len() == 0 {
		q.roundRobin = slices.DeleteFunc(q.roundRobin, func(other *holder) bool { return other == h })
	}
	if h.used == 0 && h.waiting.Len() == 0 {
		delete(q.workspaces, h.id)
	}
	q.grant()
}

// grant gives the free slots to the workspaces whose turn it is. It skips those
// that have their share already, which keep their turn.
func (q *Queue) grant() {
	for q.used < q.slots {
		i := slices.IndexFunc(q.roundRobin, func(h *holder) bool { return h.used < q.share })
		if i < 0 {
			return
		}
		h := q.roundRobin[i]
		q.roundRobin = slices.Delete(q.roundRobin, i, i+1)
		t, _ := h.waiting.Remove(h.waiting.Front()).(*ticket)
		if h.waiting.Len() > 0 {
			q.roundRobin = append(q.roundRobin, h)
		}
		t.place, q.last = nil, h
		h.used++
		q.used++
		close(t.granted)
	}
}

// SetShare changes how many slots one workspace may have. Slots in use stay.
func (q *Queue) SetShare(share int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.share = share
	q.grant()
}

// Stats returns how many slots are in use and how many requests wait.
func (q *Queue) Stats() (used, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, h := range q.roundRobin {
		waiting += h.waiting.Len()
	}
	return q.used, waiting
}
