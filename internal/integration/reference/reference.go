// Package reference describes integrations for people: how to connect to a service, what
// operations and triggers expect, with examples. The command line prints these
// descriptions, and a test writes docs/integrations, which has a page of each. The package
// does not read manifests: internal/integration does.
package reference

//go:generate go test . -run TestPages -update

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/suggest"
)

// Integration describes an integration. In JSON, it is the output of commands.
type Integration struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Category   string      `json:"category"`
	Docs       string      `json:"docs"`
	Keywords   []string    `json:"keywords"`
	Connection string      `json:"connection"` // the id of the integration that it connects as
	Auth       []Auth      `json:"auth"`
	Hosts      []string    `json:"hosts"`
	Operations []Operation `json:"operations"`
	Triggers   []Trigger   `json:"triggers"`
}

// Auth describes a way to connect.
type Auth struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Label   string `json:"label"`
	Help    string `json:"help"`
	Consent bool   `json:"consent"`
}

// Deprecation says what replaces an operation or a trigger.
type Deprecation = integration.Deprecation

// Operation describes an operation.
type Operation struct {
	Action     string          `json:"action"`
	Title      string          `json:"title"`
	Summary    string          `json:"summary"`
	Deprecated *Deprecation    `json:"deprecated"`
	Input      json.RawMessage `json:"input"` // a JSON Schema
	// Inputs has the members of Input for people.
	Inputs []Input `json:"-"`
	// Example is a step in YAML.
	Example string `json:"example"`

	rates []integration.Rate
}

// Trigger describes a type of triggers.
type Trigger struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	// Every is how often it looks for something new; nil if the service tells it.
	Every      *string         `json:"every"`
	Deprecated *Deprecation    `json:"deprecated"`
	Input      json.RawMessage `json:"input"` // a JSON Schema
	// Inputs has the members of Input for people.
	Inputs []Input `json:"-"`
	// Example is a trigger in YAML, and Sample the payload of a run that it starts.
	Example string          `json:"example"`
	Sample  json.RawMessage `json:"sample"`

	hook *integration.Hook
}

// Source says how the trigger learns what is new, with names of members in backticks.
func (t Trigger) Source() string {
	var out []string
	if t.hook != nil {
		out = append(out, "The service calls Stepmill when there is something new.")
		if !t.hook.Setup.IsZero() {
			out = append(out, "Somebody has to enter the URL at the service once; the trigger shows it, and where it belongs.")
		}
	}
	switch {
	case t.Every == nil:
	case t.hook == nil:
		out = append(out, "It looks every `"+*t.Every+"`, unless `every` says otherwise.")
	default:
		out = append(out, "It also looks every `"+*t.Every+"`, unless `every` says otherwise, in case that a call is lost.")
	}
	return strings.Join(out, " ")
}

// Describe describes an integration, with examples from its tests. It leaves out hidden
// operations.
func Describe(i *integration.Integration, tests *replay.Tests) (Integration, error) {
	out := Integration{
		ID: i.ID, Name: i.Name, Category: i.Category, Docs: i.Docs, Keywords: append([]string{}, i.Keywords...), Connection: i.ConnectedAs(),
		Auth: []Auth{}, Hosts: i.HostPatterns(), Operations: []Operation{}, Triggers: []Trigger{},
	}
	for _, a := range i.Connection.Auth {
		out.Auth = append(out.Auth, Auth{ID: a.ID, Kind: a.Kind, Label: a.Label, Help: a.Help, Consent: a.NeedsConsent()})
	}
	for _, o := range i.Operations() {
		if o.Hidden {
			continue
		}
		example, err := example(i, "uses", o.Name, tests.Example(o.Name))
		if err != nil {
			return Integration{}, err
		}
		out.Operations = append(out.Operations, Operation{
			Action: operation.Name(i, &o), Title: o.Title, Summary: o.Summary, Deprecated: o.Deprecated,
			Input: json.RawMessage(o.InputSchema()), Inputs: describeInputs(i, "", o.Input), Example: example, rates: o.Rates,
		})
	}
	for _, t := range i.Triggers() {
		example, err := example(i, "type", t.Name, tests.TriggerExample(t.Name))
		if err != nil {
			return Integration{}, err
		}
		one := Trigger{
			Type: i.FullName(t.Name), Title: t.Title, Summary: t.Summary, Deprecated: t.Deprecated,
			Input: json.RawMessage(t.InputSchema()), Inputs: describeInputs(i, "", t.Input), Example: example, Sample: tests.Payload(t.Name), hook: t.Hook,
		}
		if t.Poll != nil {
			every := clock.FormatDuration(t.Poll.Every)
			one.Every = &every
		}
		out.Triggers = append(out.Triggers, one)
	}
	return out, nil
}

// FindOperation returns an operation of the integration by its name.
func (i *Integration) FindOperation(name string) (Operation, error) {
	var names []string
	for _, o := range i.Operations {
		_, short, _ := strings.Cut(o.Action, ".")
		if short == name {
			return o, nil
		}
		names = append(names, short)
	}
	return Operation{}, fmt.Errorf("%s has no operation %q%s: `stepmill integrations show %s` has all", i.Name, name, suggest.Hint(name, names), i.ID)
}

// FindTrigger returns a trigger of the integration by its name.
func (i *Integration) FindTrigger(name string) (Trigger, bool) {
	for _, t := range i.Triggers {
		if t.Type == i.ID+"."+name {
			return t, true
		}
	}
	return Trigger{}, false
}

// example returns a step or a trigger in YAML, whose member has the name at the service.
func example(i *integration.Integration, member, name string, input json.RawMessage) (string, error) {
	id, _, _ := strings.Cut(name, "@")
	entry := fmt.Sprintf(`{"id": %q, %q: %q, "connection": %q`, id, member, i.FullName(name), "my-"+i.ConnectedAs())
	if len(input) > 0 && string(input) != "{}" {
		entry += `, "with": ` + string(input)
	}
	text, err := strictyaml.Encode([]byte("[" + entry + "}]"))
	return string(text), err
}
