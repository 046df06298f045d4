package integration

import (
	"errors"
	"fmt"
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
	list []*Integration // by id
}

// Builtin returns the catalog of the integrations that are part of the product.
var Builtin = sync.OnceValues(func() (*Catalog, error) { return Load(integrations.Files) })

// Load reads the manifests <id>/integration.yaml of a folder.
func Load(folder fs.FS) (*Catalog, error) {
	files, err := fs.Glob(folder, "*/integration.yaml")
	if err != nil {
		return nil, err
	}
	out := &Catalog{}
	var problems Errors
	for _, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		one, err := parseFile(file, text)
		if errs, ok := errors.AsType[Errors](err); ok {
			problems = append(problems, errs...)
			continue
		}
		out.list = append(out.list, one)
	}
	if problems != nil {
		return nil, problems
	}
	slices.SortFunc(out.list, func(a, b *Integration) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// parseFile reads a manifest in a folder that has the name of its id.
func parseFile(file string, text []byte) (*Integration, error) {
	out, err := Parse(text)
	if err == nil && out.ID != path.Dir(file) {
		err = Errors{{Pointer: "/id", Message: fmt.Sprintf("is %q, but the folder is %s: they must be equal", out.ID, path.Dir(file))}}
	}
	if errs, ok := errors.AsType[Errors](err); ok {
		for _, one := range errs {
			one.File = file
		}
	}
	return out, err
}

// List returns the integrations, ordered by id.
func (c *Catalog) List() []*Integration { return slices.Clone(c.list) }

// Matches reports whether each word of a query occurs in the name, id, category or
// keywords.
func (i *Integration) Matches(query search.Query) bool {
	return query.Matches(search.Entry{Name: i.Name, Text: append([]string{i.ID, i.Category}, i.Keywords...)})
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
	i, ok := slices.BinarySearchFunc(c.list, id, func(one *Integration, id string) int { return strings.Compare(one.ID, id) })
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
	var ids []string
	for _, one := range c.list {
		ids = append(ids, one.ID)
	}
	return nil, fault.New(fault.IntegrationNotFound, "there is no integration %q%s", id, suggest.Hint(id, ids))
}
