package workflow

import (
	lru "container/list"
	"context"
	"fmt"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
)

const cachedPrograms = 1000

// Definitions reads the definitions of versions; nil when one was deleted.
type Definitions interface {
	Definition(ctx context.Context, workflowID string, version int) (*Definition, error)
	// Draft returns the definition that the run of a draft executes.
	Draft(ctx context.Context, runID string) (*Unsaved, error)
}

// Programs caches compiled versions, which are immutable.
type Programs struct {
	store   Definitions
	catalog *action.Catalog
	types   *TriggerTypes

	mu      sync.Mutex
	order   *lru.List // most recently used first
	entries map[programKey]*lru.Element
}

type programKey struct {
	workflowID string
	version    int
}

type programEntry struct {
	key     programKey
	program *Program
}

// NewPrograms returns a cache that compiles versions with a catalog and the
// types of triggers. It skips the slow checks, since versions were checked when
// they were saved.
func NewPrograms(store Definitions, catalog *action.Catalog, types *TriggerTypes) *Programs {
	return &Programs{store: store, catalog: catalog, types: types, order: lru.New(), entries: map[programKey]*lru.Element{}}
}

// Catalog returns the catalog that versions are compiled with.
func (c *Programs) Catalog() *action.Catalog { return c.catalog }

// Get returns the program of a version, or nil when the version was deleted. It
// fails with ErrCorrupt if the version does not compile.
func (c *Programs) Get(ctx context.Context, workflowID string, version int) (*Program, error) {
	key := programKey{workflowID, version}
	if program := c.find(key); program != nil {
		return program, nil
	}
	definition, err := c.store.Definition(ctx, workflowID, version)
	if err != nil || definition == nil {
		return nil, err
	}
	return c.compile(key, *definition, nil)
}

// OfDraft returns the program of the run of a draft, or nil when the run was deleted.
func (c *Programs) OfDraft(ctx context.Context, runID string) (*Program, error) {
	key := programKey{workflowID: runID} // no version is zero
	if program := c.find(key); program != nil {
		return program, nil
	}
	draft, err := c.store.Draft(ctx, runID)
	if err != nil || draft == nil {
		return nil, err
	}
	return c.compile(key, draft.Definition, draft.Pinned)
}

func (c *Programs) compile(key programKey, d Definition, pins Pins) (*Program, error) {
	program, problems := Compile(d, c.catalog, c.types)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: version %d of %s does not compile: %s: %s", ErrCorrupt, key.version, key.workflowID, problems[0].Pointer, problems[0].Message)
	}
	program.Pins, program.Files = pins, program.Files || pins.hasFiles()
	c.add(key, program)
	return program, nil
}

func (c *Programs) find(key programKey) *Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return nil
	}
	c.order.MoveToFront(element)
	return element.Value.(programEntry).program
}

func (c *Programs) add(key programKey, program *Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] != nil {
		return
	}
	c.entries[key] = c.order.PushFront(programEntry{key, program})
	if c.order.Len() > cachedPrograms {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.entries, oldest.Value.(programEntry).key)
	}
}
