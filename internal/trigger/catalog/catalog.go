// Package catalog lists the types of triggers that ship with Stepmill.
package catalog

import (
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/event"
	"github.com/stepmill/stepmill/internal/trigger/manual"
	"github.com/stepmill/stepmill/internal/trigger/poll"
	"github.com/stepmill/stepmill/internal/trigger/schedule"
	"github.com/stepmill/stepmill/internal/trigger/service"
	"github.com/stepmill/stepmill/internal/trigger/webhook"
)

// New returns the types in the order in which they are listed to users, and those of the
// integrations whose operations these are. Nil stands for those that ship with Stepmill,
// without a client to poll with.
func New(operations *operation.Actions) (*trigger.Types, error) {
	if operations == nil {
		integrations, err := integration.Builtin()
		if err != nil {
			return nil, err
		}
		operations = operation.NewActions(integrations, nil)
	}
	return trigger.NewTypes(
		manual.Type(),
		schedule.Type(),
		webhook.Type(),
		event.Type(),
		poll.Type(),
		service.Type(operations),
	)
}
