package app

import (
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/integration/reference"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/search"
)

type (
	// Integration is an integration in the output of commands; the others are its parts.
	Integration = reference.Integration
	// IntegrationOperation is an operation.
	IntegrationOperation = reference.Operation
	// IntegrationTrigger is a trigger.
	IntegrationTrigger = reference.Trigger
	// IntegrationInput is an input of an operation, or a setting of a trigger.
	IntegrationInput = reference.Input
	// Deprecation says what replaces one of them.
	Deprecation = reference.Deprecation
)

// Integrations lists the integrations that are part of the product and match all words. An
// integration is also found by its operations and triggers.
func Integrations(words []string) ([]Integration, error) {
	catalog, err := integration.Builtin()
	if err != nil {
		return nil, err
	}
	var query search.Query
	if len(words) > 0 {
		if query, err = search.Parse(strings.Join(words, " ")); err != nil {
			return nil, fmt.Errorf("the search %w", err)
		}
	}
	out := []Integration{}
	for _, i := range catalog.List() {
		entry := i.Entry()
		for _, o := range i.OperationOutlines() {
			if !o.Hidden {
				entry.Text = append(entry.Text, o.Name, o.Title)
			}
		}
		for _, t := range i.TriggerOutlines() {
			entry.Text = append(entry.Text, t.Name, t.Title)
		}
		if !query.Matches(entry) {
			continue
		}
		one, err := describeIntegration(i)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// FindIntegration returns the integration with the id.
func FindIntegration(id string) (Integration, error) {
	catalog, err := integration.Builtin()
	if err != nil {
		return Integration{}, err
	}
	i, ok := catalog.Find(id)
	if !ok {
		return Integration{}, fmt.Errorf("there is no integration %q%s: `stepmill integrations list` has all", id, catalog.Hint(id))
	}
	return describeIntegration(i)
}

func describeIntegration(i *integration.Integration) (Integration, error) {
	tests, err := authoring.BuiltinTests(i.ID)
	if err != nil {
		return Integration{}, err
	}
	return reference.Describe(i, tests)
}

// IntegrationSet has integrations in files, to check and test them.
type IntegrationSet = authoring.Set

// IntegrationFiles returns the integrations in files and folders.
func IntegrationFiles(paths []string) (*IntegrationSet, error) { return authoring.Open(paths) }

// BuiltinIntegrationFiles returns those that are part of the product.
func BuiltinIntegrationFiles() (*IntegrationSet, error) { return authoring.Builtin() }

// IntegrationSchema returns the JSON Schema of manifests, or of their tests.
func IntegrationSchema(ofTests bool) ([]byte, error) {
	if ofTests {
		return replay.Schema()
	}
	return integration.Schema()
}
