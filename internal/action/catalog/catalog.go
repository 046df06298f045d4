// Package catalog is the explicit list of the actions that ship. Their pages in
// docs/actions are written from the declarations.
package catalog

//go:generate go test . -run TestDocs -update

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/wait"
)

// New makes the catalog of everything that ships; the client is the way out.
func New(client httprequest.Client) (*action.Catalog, error) {
	return action.NewCatalog(
		dataset.Entry(),
		httprequest.Entry(client),
		wait.Entry(),
	)
}
