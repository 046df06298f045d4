// Package catalog is the explicit list of the actions that ship. Their pages in
// docs/actions are written from the declarations.
package catalog

//go:generate go test . -run TestDocs -update

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/action/wait"
)

// New makes the catalog of everything that ships: the client is the way out,
// the starter starts runs.
func New(client httprequest.Client, starter subrun.Starter) (*action.Catalog, error) {
	return action.NewCatalog(
		approval.Entry(),
		dataset.Entry(),
		httprequest.Entry(client),
		logwrite.Entry(),
		stop.Entry(),
		subrun.Entry(starter),
		wait.Entry(),
	)
}
