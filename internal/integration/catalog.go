package integration

import (
	"io/fs"
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
	entries []*entry // by id
}

// entry is an integration in a catalog. It is compiled when it is first needed.
type entry struct {
	head

	load func() (*Integration, error)
	// services are the integrations that use the connections of this one.
	services []head
}

// head is what a catalog knows of an integration before it is compiled.
type head struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Connection struct {
		Of     string   `json:"of"`
		Scopes []string `json:"scopes"`
	} `json:"connection"`
}

// Builtin returns the catalog of the integrations that are part of the product.
var Builtin = sync.OnceValues(func() (*Catalog, error) { return LoadIndexed(integrations.Files, integrations.Index) })

const manifestFile = "integration.yaml"

// Load reads and compiles the manifests <id>/integration.yaml of a folder. The error is an
// [Errors] with the problems of all of them.
func Load(folder fs.FS) (*Catalog, error) {
	files, err := fs.Glob(folder, "*/"+manifestFile)
	if err != nil {
		return nil, err
	}
	out := &Catalog{}
	var problems Errors
	for _, file := range files {
		if err := out.decode(folder, file); err != nil {
			problems = append(problems, AsErrors(err).In(file)...)
		}
	}
	out.linkServices()
	for _, one := range out.entries {
		if _, err := one.load(); err != nil {
			problems = append(problems, AsErrors(err).In(path.Join(one.ID, manifestFile))...)
		}
	}
	if problems != nil {
		return nil, problems
	}
	return out, nil
}

func (c *Catalog) decode(folder fs.FS, file string) error {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return err
	}
	d, err := decode(text)
	if err != nil {
		return err
	}
	if err := d.checkFolder(path.Dir(file)); err != nil {
		return err
	}
	one := &entry{head: d.manifest.head()}
	one.load = sync.OnceValues(func() (*Integration, error) { return c.compile(one, d) })
	c.insert(one)
	return nil
}

func (m *manifest) head() head {
	out := head{ID: m.ID, Name: m.Name}
	out.Connection.Of, out.Connection.Scopes = m.Connection.Of, m.Connection.Scopes
	return out
}

func (c *Catalog) compile(e *entry, d *decoded) (*Integration, error) {
	out, err := d.compile(c.findOwner)
	if err == nil {
		c.offerServices(e, out)
	}
	return out, err
}

// findOwner finds an integration whose connections others can use: one that has connections
// of its own. It loads no other one, so that no two wait for each other.
func (c *Catalog) findOwner(id string) (*Integration, bool) {
	i, ok := c.search(id)
	if !ok || c.entries[i].Connection.Of != "" {
		return nil, false
	}
	return c.entries[i].integration()
}

func (e *entry) integration() (*Integration, bool) {
	out, err := e.load()
	return out, err == nil
}

func (c *Catalog) insert(one *entry) {
	i, _ := c.search(one.ID)
	c.entries = slices.Insert(c.entries, i, one)
}

func (c *Catalog) search(id string) (int, bool) {
	return slices.BinarySearchFunc(c.entries, id, func(one *entry, id string) int { return strings.Compare(one.ID, id) })
}

// With returns the catalog with the own integrations of a workspace.
func (c *Catalog) With(own ...*Integration) *Catalog {
	out := &Catalog{entries: slices.Clone(c.entries)}
	for _, one := range own {
		out.insert(&entry{head: head{ID: one.ID, Name: one.Name}, load: func() (*Integration, error) { return one, nil }})
	}
	return out
}

// List returns the integrations, ordered by id. It compiles all of them.
func (c *Catalog) List() []*Integration {
	out := make([]*Integration, 0, len(c.entries))
	for _, one := range c.entries {
		if i, ok := one.integration(); ok {
			out = append(out, i)
		}
	}
	return out
}

// Entry returns what searches find the integration by: its name, id, category and keywords.
func (i *Integration) Entry() search.Entry {
	return search.Entry{Name: i.Name, Text: append([]string{i.ID, i.Category}, i.Keywords...)}
}

// Hint returns a suggestion for an id that does not exist, or "".
func (c *Catalog) Hint(id string) string {
	ids := make([]string, len(c.entries))
	for i, one := range c.entries {
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
	return c.entries[i].integration()
}

// Get returns the integration with the id, or the error that clients see if there
// is none.
func (c *Catalog) Get(id string) (*Integration, error) {
	if found, ok := c.Find(id); ok {
		return found, nil
	}
	return nil, fault.New(fault.IntegrationNotFound, "there is no integration %q%s", id, c.Hint(id))
}
