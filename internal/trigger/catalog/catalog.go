// Package catalog lists the types of triggers that ship with Stepmill.
package catalog

import (
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/trigger/event"
	"github.com/stepmill/stepmill/internal/trigger/manual"
	"github.com/stepmill/stepmill/internal/trigger/poll"
	"github.com/stepmill/stepmill/internal/trigger/schedule"
	"github.com/stepmill/stepmill/internal/trigger/webhook"
)

// New returns the types in the order in which they are listed to users.
func New() (*trigger.Types, error) {
	return trigger.NewTypes(
		manual.Type(),
		schedule.Type(),
		webhook.Type(),
		event.Type(),
		poll.Type(),
	)
}
