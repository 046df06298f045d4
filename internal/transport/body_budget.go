package transport

import (
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// freeBodyBytes is how much of each body is not counted, so that a small
	// request gets through whatever others send. The limit of connections bounds
	// the sum.
	freeBodyBytes = 16 << 10
	// minShareBytes lets everyone send at least one body of the largest plan, even
	// if the budget is small.
	minShareBytes = 4 << 20
)

// bodyBudget limits the memory that request bodies use, in total and for each
// owner, so that nobody can keep others from sending theirs.
type bodyBudget struct {
	limit int64 // zero: no limit

	mu    sync.Mutex
	used  int64
	owned map[string]int64
}

func newBodyBudget(limit int64) *bodyBudget {
	return &bodyBudget{limit: limit, owned: map[string]int64{}}
}

// BodyOwner is someone a body is counted against: a workspace, a hook or the
// network of a client. All of an owner's bodies together may use one part in parts
// of the budget.
type BodyOwner struct {
	key   string
	parts int64
}

// WorkspaceBodies returns a workspace as the owner of bodies.
func WorkspaceBodies(id string) BodyOwner { return BodyOwner{"workspace " + id, 4} }

// HookBodies returns what is called at a URL as the owner of bodies. The key is that of its
// rate limit.
func HookBodies(key string) BodyOwner { return BodyOwner{"hook " + key, 8} }

// NetworkBodies returns the network of a client as the owner of bodies.
func NetworkBodies(network string) BodyOwner { return BodyOwner{"network " + network, 8} }

// Reservation is the memory that one body uses.
type Reservation struct {
	budget *bodyBudget
	owners []BodyOwner
	held   int64
}

// reserve returns an empty reservation. The caller must release it.
func (b *bodyBudget) reserve(owners ...BodyOwner) *Reservation {
	return &Reservation{budget: b, owners: owners}
}

// Grow reserves memory for a buffer of this size in place of the current one.
func (r *Reservation) Grow(size int64) error {
	b, more := r.budget, max(0, size-freeBodyBytes)-r.held
	if b.limit == 0 || more <= 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+more > b.limit {
		return fault.New(fault.Unavailable, "the service is handling too many large requests at once: try again").After(time.Second)
	}
	for _, owner := range r.owners {
		if b.owned[owner.key]+more > max(b.limit/owner.parts, minShareBytes) {
			return fault.New(fault.Unavailable, "the service is handling too many of your large requests at once: send fewer at a time").After(time.Second)
		}
	}
	b.add(r.owners, more)
	r.held += more
	return nil
}

// Release returns the memory. Releasing again does nothing.
func (r *Reservation) Release() {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(r.owners, -r.held)
	r.held = 0
}

func (b *bodyBudget) add(owners []BodyOwner, n int64) {
	b.used += n
	for _, owner := range owners {
		if b.owned[owner.key] += n; b.owned[owner.key] == 0 {
			delete(b.owned, owner.key)
		}
	}
}
