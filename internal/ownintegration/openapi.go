package ownintegration

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/openapi"
)

// A large document takes about a second of one processor and more than 100 MiB, so one at a
// time is converted on each node, for workspaces in turns.
const (
	conversions        = 1
	conversionsWaiting = 4 // of a workspace
)

type (
	// ConvertOptions says what a document does not.
	ConvertOptions = openapi.Options
	// Note is about what a manifest leaves out of a document or does differently.
	Note = openapi.Note
)

// Converted is the manifest for an OpenAPI document.
type Converted struct {
	Own
	Operations []string
	Notes      []Note
}

// Convert returns the manifest for an OpenAPI document, which changes nothing yet.
func (s *Service) Convert(ctx context.Context, actor auth.Actor, document []byte, options ConvertOptions) (Converted, error) {
	release, err := s.conversions.Acquire(ctx, actor.Workspace.ID)
	if errors.Is(err, fairqueue.ErrFull) {
		return Converted{}, fault.New(fault.RateLimited, "too many documents of this workspace are being converted; try again in a moment").After(time.Second)
	}
	if err != nil {
		return Converted{}, err
	}
	defer release()
	result, err := openapi.Convert(document, options)
	if err != nil {
		return Converted{}, conversionFault(err)
	}
	own, err := s.Parse(actor, string(result.Manifest))
	return Converted{Own: own, Operations: result.Operations, Notes: result.Notes}, err
}

func conversionFault(err error) error {
	if option, ok := errors.AsType[*openapi.OptionError](err); ok {
		return fault.New(fault.InvalidRequest, "%s: %s", option.Option, option.Message)
	}
	if problems, ok := errors.AsType[integration.Errors](err); ok {
		return problemsOf("the document cannot be converted", problems)
	}
	return err
}
