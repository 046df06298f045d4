// Package catalog is the explicit list of the actions that ship.
package catalog

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/codejs"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/wait"
)

// New makes the catalog of everything that ships; the client is the way out,
// and scripts are run by the runner.
func New(client httprequest.Client, scripts codejs.Runner) (*action.Catalog, error) {
	return action.NewCatalog(
		codejs.Entry(scripts),
		dataset.Entry(),
		httprequest.Entry(client),
		wait.Entry(),
	)
}
