package workflow

import (
	lru "container/list"
	"context"
	"fmt"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
)

const cachedPlans = 1000

// Definitions finds the definitions of versions; nil when one is gone.
type Definitions interface {
	Definition(ctx context.Context, workflowID string, version int) (*Definition, error)
	// Draft finds what the run of a draft executes.
	Draft(ctx context.Context, runID string) (*Unsaved, error)
}

// Plans keeps compiled versions: they never change.
type Plans struct {
	store   Definitions
	catalog *action.Catalog

	mu      sync.Mutex
	order   *lru.List // most recently used first
	entries map[planKey]*lru.Element
}

type planKey struct {
	workflowID string
	version    int
}

type planEntry struct {
	key  planKey
	plan *Plan
}

// NewPlans compiles versions against a catalog. They were checked when they were
// saved.
func NewPlans(store Definitions, catalog *action.Catalog) *Plans {
	return &Plans{store: store, catalog: catalog.Saved(), order: lru.New(), entries: map[planKey]*lru.Element{}}
}

// Catalog is what the versions are compiled against.
func (c *Plans) Catalog() *action.Catalog { return c.catalog }

// Get returns the plan of a version; nil when the version is gone. It fails
// with ErrCorrupt for one that cannot be understood.
func (c *Plans) Get(ctx context.Context, workflowID string, version int) (*Plan, error) {
	key := planKey{workflowID, version}
	if plan := c.find(key); plan != nil {
		return plan, nil
	}
	definition, err := c.store.Definition(ctx, workflowID, version)
	if err != nil || definition == nil {
		return nil, err
	}
	return c.compile(key, *definition, nil)
}

// OfDraft returns the plan of the run of a draft; nil when the run is gone.
func (c *Plans) OfDraft(ctx context.Context, runID string) (*Plan, error) {
	key := planKey{workflowID: runID} // no version is zero
	if plan := c.find(key); plan != nil {
		return plan, nil
	}
	draft, err := c.store.Draft(ctx, runID)
	if err != nil || draft == nil {
		return nil, err
	}
	return c.compile(key, draft.Definition, draft.Pinned)
}

func (c *Plans) compile(key planKey, d Definition, pins Pins) (*Plan, error) {
	plan, problems := Compile(d, c.catalog)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: version %d of %s does not compile: %s: %s", ErrCorrupt, key.version, key.workflowID, problems[0].Pointer, problems[0].Message)
	}
	plan.Pins = pins
	c.keep(key, plan)
	return plan, nil
}

func (c *Plans) find(key planKey) *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return nil
	}
	c.order.MoveToFront(element)
	return element.Value.(planEntry).plan
}

func (c *Plans) keep(key planKey, plan *Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] != nil {
		return
	}
	c.entries[key] = c.order.PushFront(planEntry{key, plan})
	if c.order.Len() > cachedPlans {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.entries, oldest.Value.(planEntry).key)
	}
}
