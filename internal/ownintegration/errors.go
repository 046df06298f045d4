package ownintegration

import (
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// How many problems of a manifest are reported, and how long the texts about each are: names
// in a manifest can have any length.
const (
	maxProblems = 25
	maxText     = 200
)

// invalid returns the error about a manifest that is not valid. Its pointers and positions
// are those in the manifest.
func invalid(problems integration.Errors) error {
	return problemsOf("the manifest is not valid", problems)
}

// problemsOf returns the error about a text with problems.
func problemsOf(summary string, problems integration.Errors) error {
	out := fault.New(fault.IntegrationInvalid, "%s: %s", summary, shorten(problems[0].Error()))
	for _, one := range problems[:min(len(problems), maxProblems)] {
		out = out.With(fault.Detail{Pointer: shorten(one.Pointer), Message: shorten(one.Message), Line: one.Line, Column: one.Column})
	}
	return out
}

func shorten(text string) string { return fault.Shorten(text, maxText) }

// outdated returns the error about a stored manifest that an earlier version of Stepmill
// has accepted.
func outdated(id string, problems integration.Errors) error {
	return fault.New(fault.IntegrationInvalid, "the manifest of %s is not valid in this version of Stepmill: %s. Correct it, and replace it with PUT /v1/integrations/%s", id, shorten(problems[0].Error()), id)
}

// rejection returns why a change was not made; nil if it was.
func rejection(outcome Outcome, id string) error {
	switch outcome {
	case Exists:
		return fault.New(fault.IntegrationExists, "there is already an integration %q: replace it with PUT /v1/integrations/%s", id, id)
	case Missing:
		return notFound(id)
	case TooMany:
		return fault.New(fault.PlanLimitExceeded, "a workspace can have %d integrations of its own; delete one first", MaxManifests)
	case TooLarge:
		return fault.New(fault.PlanLimitExceeded, "all manifests of a workspace together can have %d MiB; shorten or delete one first", MaxBytes>>20)
	}
	return nil
}

func notFound(id string) error {
	return fault.New(fault.IntegrationNotFound, "this workspace has no integration %q", id)
}

func (s *Service) entry(actor auth.Actor, what, id string) audit.Entry {
	return actor.AuditEntry(what, "integration", id, nil)
}
