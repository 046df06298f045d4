// Package catalog lists the actions that ship with Stepmill. Their pages in
// docs/actions are generated from their declarations.
package catalog

//go:generate go test . -run "TestDocs|TestContract" -update

import (
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/branch"
	"github.com/stepmill/stepmill/internal/action/codejs"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/graphqlrequest"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/keys"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/rows"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/action/wait"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
)

// Deps are the dependencies of the actions.
type Deps struct {
	HTTP    transfer.Client
	Runs    subrun.Starter
	Scripts codejs.Runner
	Tables  rows.Reader
	Keys    keys.Reader
	// Operations are those of the integrations. If it is nil, they can be looked up, but
	// not executed.
	Operations *operation.Actions
}

// New returns the catalog of all actions that ship with Stepmill, and of the operations of
// its integrations.
func New(deps Deps) (*action.Catalog, error) {
	call := httprequest.Entry(deps.HTTP)
	entries := []action.Entry{
		approval.Entry(call.Action),
		branch.Entry(),
		codejs.Entry(deps.Scripts),
		dataset.Entry(),
		graphqlrequest.Entry(deps.HTTP),
		call,
		logwrite.Entry(),
		stop.Entry(),
		subrun.Entry(deps.Runs),
		wait.Entry(),
	}
	out, err := action.NewCatalog(slices.Concat(entries, rows.Entries(deps.Tables), keys.Entries(deps.Keys))...)
	if err != nil {
		return nil, err
	}
	if deps.Operations != nil {
		return out.With(deps.Operations), nil
	}
	integrations, err := integration.Builtin()
	if err != nil {
		return nil, err
	}
	return out.With(operation.NewActions(integrations, nil)), nil
}
