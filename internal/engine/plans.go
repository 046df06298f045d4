package engine

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/workflow"
)

const cachedPlans = 1000

// planCache keeps compiled versions: they never change.
type planCache struct {
	store   Store
	catalog *action.Catalog

	mu      sync.Mutex
	order   *list.List // most recently used first
	entries map[planKey]*list.Element
}

type planKey struct {
	workflowID string
	version    int
}

type planEntry struct {
	key  planKey
	plan *workflow.Plan
}

func newPlanCache(store Store, catalog *action.Catalog) *planCache {
	return &planCache{store: store, catalog: catalog, order: list.New(), entries: map[planKey]*list.Element{}}
}

// get returns the plan of a version; nil when the version is gone.
func (c *planCache) get(ctx context.Context, workflowID string, version int) (*workflow.Plan, error) {
	key := planKey{workflowID, version}
	if plan := c.find(key); plan != nil {
		return plan, nil
	}
	definition, err := c.store.Definition(ctx, workflowID, version)
	if errors.Is(err, workflow.ErrCorrupt) {
		return nil, &corruptError{err}
	}
	if err != nil || definition == nil {
		return nil, err
	}
	plan, problems := workflow.Compile(*definition, c.catalog)
	if len(problems) > 0 {
		return nil, &corruptError{fmt.Errorf("version %d of %s does not compile: %s: %s", version, workflowID, problems[0].Pointer, problems[0].Message)}
	}
	c.keep(key, plan)
	return plan, nil
}

func (c *planCache) find(key planKey) *workflow.Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return nil
	}
	c.order.MoveToFront(element)
	return element.Value.(planEntry).plan
}

func (c *planCache) keep(key planKey, plan *workflow.Plan) {
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

// corruptError says that what is stored of a run cannot be understood, so that
// trying again is of no use.
type corruptError struct{ error }

func (e *corruptError) Unwrap() error { return e.error }
