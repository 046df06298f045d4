package integration

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Catalog is a set of integrations. It is immutable and safe for concurrent use.
type Catalog struct {
	list []*Integration // by id
}

// Builtin returns the catalog of the integrations that are part of the product.
var Builtin = sync.OnceValues(func() (*Catalog, error) { return LoadIndexed(integrations.Files, integrations.Index) })

// manifestFile is the name of the file with a manifest.
const manifestFile = "integration.yaml"

// Load reads the manifests <id>/integration.yaml of a folder.
func Load(folder fs.FS) (*Catalog, error) {
	files, err := fs.Glob(folder, "*/"+manifestFile)
	if err != nil {
		return nil, err
	}
	l := loader{catalog: &Catalog{}, sharing: map[string]*decoded{}}
	for _, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		l.read(file, text)
	}
	return l.finish()
}

// finish compiles the manifests that use the connections of others, and returns the
// catalog.
func (l *loader) finish() (*Catalog, error) {
	for _, file := range slices.Sorted(maps.Keys(l.sharing)) {
		l.compile(file, l.sharing[file])
	}
	l.offerServices()
	if l.problems != nil {
		return nil, l.problems
	}
	return l.catalog, nil
}

// loader reads manifests.
type loader struct {
	catalog  *Catalog
	sharing  map[string]*decoded // by file: those that use the connections of another one
	problems Errors
}

func (l *loader) read(file string, text []byte) {
	d, err := decode(text)
	if err == nil {
		err = d.checkFolder(path.Dir(file))
	}
	if err != nil {
		l.report(file, err)
		return
	}
	l.add(file, d)
}

func (l *loader) add(file string, d *decoded) {
	if d.manifest.Connection.Of != "" {
		l.sharing[file] = d
	} else {
		l.compile(file, d)
	}
}

func (l *loader) compile(file string, d *decoded) {
	one, err := d.compile(l.catalog.Find)
	if err != nil {
		l.report(file, err)
		return
	}
	l.catalog.insert(one)
}

func (l *loader) report(file string, err error) {
	l.problems = append(l.problems, AsErrors(err).In(file)...)
}

func (c *Catalog) insert(one *Integration) {
	i, _ := c.search(one.ID)
	c.list = slices.Insert(c.list, i, one)
}

func (c *Catalog) search(id string) (int, bool) {
	return slices.BinarySearchFunc(c.list, id, func(one *Integration, id string) int { return strings.Compare(one.ID, id) })
}

// With returns the catalog with the own integrations of a workspace.
func (c *Catalog) With(own ...*Integration) *Catalog {
	out := &Catalog{list: slices.Clone(c.list)}
	for _, one := range own {
		out.insert(one)
	}
	return out
}

// List returns the integrations, ordered by id.
func (c *Catalog) List() []*Integration { return slices.Clone(c.list) }

// Entry returns what searches find the integration by: its name, id, category and keywords.
func (i *Integration) Entry() search.Entry {
	return search.Entry{Name: i.Name, Text: append([]string{i.ID, i.Category}, i.Keywords...)}
}

// Hint returns a suggestion for an id that does not exist, or "".
func (c *Catalog) Hint(id string) string {
	ids := make([]string, len(c.list))
	for i, one := range c.list {
		ids[i] = one.ID
	}
	return suggest.Hint(id, ids)
}

// Find returns the integration with the id.
func (c *Catalog) Find(id string) (*Integration, bool) {
	i, ok := c.search(id)
	if !ok {
		return nil, false
	}
	return c.list[i], true
}

// Get returns the integration with the id, or the error that clients see if there
// is none.
func (c *Catalog) Get(id string) (*Integration, error) {
	if found, ok := c.Find(id); ok {
		return found, nil
	}
	return nil, fault.New(fault.IntegrationNotFound, "there is no integration %q%s", id, c.Hint(id))
}
