package app

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/authoring"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Integration is an integration in the output of commands.
type Integration struct {
	ID         string                 `json:"id"`
	Name       string                 `json:"name"`
	Category   string                 `json:"category"`
	Docs       string                 `json:"docs"`
	Keywords   []string               `json:"keywords"`
	Connection string                 `json:"connection"` // the id of the integration that it connects as
	Auth       []IntegrationAuth      `json:"auth"`
	Hosts      []string               `json:"hosts"`
	Operations []IntegrationOperation `json:"operations"`
	Triggers   []IntegrationTrigger   `json:"triggers"`
}

// IntegrationAuth is a way to connect in the output of commands.
type IntegrationAuth struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Label   string `json:"label"`
	Help    string `json:"help"`
	Consent bool   `json:"consent"`
}

// Deprecation says what replaces an operation or a trigger.
type Deprecation = integration.Deprecation

// IntegrationOperation is an operation in the output of commands.
type IntegrationOperation struct {
	Action     string          `json:"action"`
	Title      string          `json:"title"`
	Summary    string          `json:"summary"`
	Deprecated *Deprecation    `json:"deprecated"`
	Input      json.RawMessage `json:"input"` // a JSON Schema
	// Inputs has the members of Input for people.
	Inputs []OperationInput `json:"-"`
	// Example is a step in YAML.
	Example string `json:"example"`
}

// IntegrationTrigger is a type of triggers in the output of commands.
type IntegrationTrigger struct {
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Summary    string          `json:"summary"`
	Every      string          `json:"every"`
	Deprecated *Deprecation    `json:"deprecated"`
	Input      json.RawMessage `json:"input"` // a JSON Schema
	// Inputs has the members of Input for people.
	Inputs []OperationInput `json:"-"`
	// Example is a trigger in YAML, and Sample the payload of a run that it starts.
	Example string          `json:"example"`
	Sample  json.RawMessage `json:"sample"`
}

// OperationInput is an input of an operation, or a setting of a trigger, for people.
type OperationInput struct {
	// Name has the names of the objects and lists around it, as in buttons[].text.
	Name     string
	Type     string
	Required bool
	Title    string
	// Notes are sentences about its values.
	Notes []string
}

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
		one, err := showIntegration(i)
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
	return showIntegration(i)
}

// FindOperation returns an operation of the integration by its name.
func (i *Integration) FindOperation(name string) (IntegrationOperation, error) {
	var names []string
	for _, o := range i.Operations {
		_, short, _ := strings.Cut(o.Action, ".")
		if short == name {
			return o, nil
		}
		names = append(names, short)
	}
	return IntegrationOperation{}, fmt.Errorf("%s has no operation %q%s: `stepmill integrations show %s` has all", i.Name, name, suggest.Hint(name, names), i.ID)
}

// FindTrigger returns a trigger of the integration by its name.
func (i *Integration) FindTrigger(name string) (IntegrationTrigger, bool) {
	for _, t := range i.Triggers {
		if t.Type == i.ID+"."+name {
			return t, true
		}
	}
	return IntegrationTrigger{}, false
}

func showIntegration(i *integration.Integration) (Integration, error) {
	out := Integration{
		ID: i.ID, Name: i.Name, Category: i.Category, Docs: i.Docs, Keywords: append([]string{}, i.Keywords...), Connection: i.ConnectedAs(),
		Auth: []IntegrationAuth{}, Hosts: i.HostPatterns(), Operations: []IntegrationOperation{}, Triggers: []IntegrationTrigger{},
	}
	for _, a := range i.Connection.Auth {
		out.Auth = append(out.Auth, IntegrationAuth{ID: a.ID, Kind: a.Kind, Label: a.Label, Help: a.Help, Consent: a.NeedsConsent()})
	}
	tests, err := authoring.BuiltinTests(i.ID)
	if err != nil {
		return Integration{}, err
	}
	for _, o := range i.Operations() {
		if o.Hidden {
			continue
		}
		example, err := example(i, "uses", o.Name, tests.Example(o.Name))
		if err != nil {
			return Integration{}, err
		}
		out.Operations = append(out.Operations, IntegrationOperation{
			Action: operation.Name(i, &o), Title: o.Title, Summary: o.Summary, Deprecated: o.Deprecated,
			Input: json.RawMessage(o.InputSchema()), Inputs: showInputs(i, "", o.Input), Example: example,
		})
	}
	for _, t := range i.Triggers() {
		example, err := example(i, "type", t.Name, tests.TriggerExample(t.Name))
		if err != nil {
			return Integration{}, err
		}
		out.Triggers = append(out.Triggers, IntegrationTrigger{
			Type: i.ID + "." + t.Name, Title: t.Title, Summary: t.Summary, Every: clock.FormatDuration(t.Poll.Every), Deprecated: t.Deprecated,
			Input: json.RawMessage(t.InputSchema()), Inputs: showInputs(i, "", t.Input), Example: example, Sample: tests.Payload(t.Name),
		})
	}
	return out, nil
}

// example returns a step or a trigger in YAML, whose member has the name at the service.
func example(i *integration.Integration, member, name string, input json.RawMessage) (string, error) {
	id, _, _ := strings.Cut(name, "@")
	entry := fmt.Sprintf(`{"id": %q, %q: %q, "connection": %q`, id, member, i.ID+"."+name, "my-"+i.ConnectedAs())
	if len(input) > 0 && string(input) != "{}" {
		entry += `, "with": ` + string(input)
	}
	text, err := strictyaml.Encode([]byte("[" + entry + "}]"))
	return string(text), err
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
