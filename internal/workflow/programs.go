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

// ownProgramBytes bounds what the programs that use own integrations keep in memory: how
// long the descriptions of these are together. Programs that share them count each.
const ownProgramBytes = 8 << 20

// Programs caches compiled versions, which are immutable.
type Programs struct {
	store   Definitions
	catalog *action.Catalog
	types   *TriggerTypes
	own     OwnSource // nil: there are no own integrations

	mu       sync.Mutex
	order    *lru.List // most recently used first
	entries  map[programKey]*lru.Element
	ownBytes int
}

type programKey struct {
	workflowID string
	version    int
}

type programEntry struct {
	key     programKey
	program *Program
	own     *ownProgram // nil if it uses no own integrations
}

// ownProgram says with which versions of own integrations a program was compiled.
type ownProgram struct {
	workspaceID string
	ids         []string
	version     string
	size        int
}

// NewPrograms returns a cache that compiles versions with a catalog and the
// types of triggers. It skips the slow checks, since versions were checked when
// they were saved.
func NewPrograms(store Definitions, catalog *action.Catalog, types *TriggerTypes) *Programs {
	return &Programs{store: store, catalog: catalog, types: types, order: lru.New(), entries: map[programKey]*lru.Element{}}
}

// Catalog returns the catalog that versions are compiled with.
func (c *Programs) Catalog() *action.Catalog { return c.catalog }

// UseOwn compiles definitions with what workspaces have described themselves.
func (c *Programs) UseOwn(source OwnSource) { c.own = source }

// Get returns the program of a version, or nil when the version was deleted. It
// fails with ErrCorrupt if the version does not compile.
func (c *Programs) Get(ctx context.Context, workflowID string, version int) (*Program, error) {
	key := programKey{workflowID, version}
	if program, err := c.find(ctx, key); program != nil || err != nil {
		return program, err
	}
	definition, err := c.store.Definition(ctx, workflowID, version)
	if err != nil || definition == nil {
		return nil, err
	}
	return c.compile(ctx, key, *definition, nil)
}

// OfDraft returns the program of the run of a draft, or nil when the run was deleted.
func (c *Programs) OfDraft(ctx context.Context, runID string) (*Program, error) {
	key := programKey{workflowID: runID} // no version is zero
	if program, err := c.find(ctx, key); program != nil || err != nil {
		return program, err
	}
	draft, err := c.store.Draft(ctx, runID)
	if err != nil || draft == nil {
		return nil, err
	}
	return c.compile(ctx, key, draft.Definition, draft.Pinned)
}

func (c *Programs) compile(ctx context.Context, key programKey, d Definition, pins Pins) (*Program, error) {
	v, own, err := c.vocabulary(ctx, key, d)
	if err != nil {
		return nil, err
	}
	program, problems := v.stored(c.own).compile(d)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: version %d of %s does not compile: %s: %s", ErrCorrupt, key.version, key.workflowID, problems[0].Pointer, problems[0].Message)
	}
	program.Pins, program.Files = pins, program.Files || pins.hasFiles()
	c.add(programEntry{key, program, own})
	return program, nil
}

// vocabulary returns what a definition is compiled with. Definitions without own
// integrations cost no query.
func (c *Programs) vocabulary(ctx context.Context, key programKey, d Definition) (Vocabulary, *ownProgram, error) {
	shipped := Vocabulary{Actions: c.catalog, Types: c.types}
	ids := d.ownIDs(c.own)
	if len(ids) == 0 {
		return shipped, nil, nil
	}
	workspaceID, err := c.own.Workspace(ctx, key.workflowID)
	if err != nil {
		return shipped, nil, err
	}
	v, version, size, err := c.own.Vocabulary(ctx, workspaceID, ids)
	return v, &ownProgram{workspaceID, ids, version, size}, err
}

// find returns the program of a key, unless an own integration that it uses has changed.
func (c *Programs) find(ctx context.Context, key programKey) (*Program, error) {
	entry, found := c.cached(key)
	if !found || entry.own == nil {
		return entry.program, nil
	}
	version, err := c.own.Version(ctx, entry.own.workspaceID, entry.own.ids)
	if err != nil || version != entry.own.version {
		return nil, err
	}
	return entry.program, nil
}

func (c *Programs) cached(key programKey) (programEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[key]
	if element == nil {
		return programEntry{}, false
	}
	c.order.MoveToFront(element)
	return element.Value.(programEntry), true
}

// add keeps a program, in place of an older one of the same version.
func (c *Programs) add(entry programEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.entries[entry.key]; element != nil {
		c.remove(element)
	}
	c.entries[entry.key] = c.order.PushFront(entry)
	if entry.own != nil {
		c.ownBytes += entry.own.size
	}
	if c.order.Len() > cachedPrograms {
		c.remove(c.order.Back())
	}
	for element := c.order.Back(); c.ownBytes > ownProgramBytes; {
		previous := element.Prev()
		if element.Value.(programEntry).own != nil {
			c.remove(element)
		}
		element = previous
	}
}

func (c *Programs) remove(element *lru.Element) {
	entry := element.Value.(programEntry)
	c.order.Remove(element)
	delete(c.entries, entry.key)
	if entry.own != nil {
		c.ownBytes -= entry.own.size
	}
}
