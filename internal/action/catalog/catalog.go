// Package catalog is the explicit list of the actions that ship. Their pages in
// docs/actions are written from the declarations.
package catalog

//go:generate go test . -run TestDocs -update

import (
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/codejs"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/action/wait"
)

// Means are what actions reach beyond the run with.
type Means struct {
	HTTP    httprequest.Client
	Runs    subrun.Starter
	Scripts codejs.Runner
}

// New makes the catalog of everything that ships.
func New(means Means) (*action.Catalog, error) {
	call := httprequest.Entry(means.HTTP)
	return action.NewCatalog(
		approval.Entry(call.Action),
		codejs.Entry(means.Scripts),
		dataset.Entry(),
		call,
		logwrite.Entry(),
		stop.Entry(),
		subrun.Entry(means.Runs),
		wait.Entry(),
	)
}
