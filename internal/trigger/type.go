package trigger

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Type declares a type of trigger. Each type has a package, and package catalog
// lists them.
type Type struct {
	// Format is its part of the workflow format: name, members and compiler.
	Format workflow.TriggerType
	// NeverFires reports whether nothing fires triggers of this type, so that
	// nothing is stored for them.
	NeverFires bool
	// HasURL reports whether a trigger has a URL with a secret token, at which it
	// is called.
	HasURL bool
	// First returns when a trigger of an active workflow is due first, by the clock of
	// its firer; zero for a trigger, and nil for a type, that does not depend on time.
	First func(workflowID string, t workflow.CompiledTrigger, now time.Time) time.Time
	// Hook returns how a service calls a trigger of a workflow, which may be active; nil if
	// it does not. It is nil for a type that no service calls.
	Hook func(t workflow.CompiledTrigger, active bool) *workflow.ArmedHook
	// Firer returns what fires triggers on this node; nil for a type that only
	// fires when it is called.
	Firer func(d Deps) Firer
	// Services has the types of services, which are stored alike and declared when they are
	// needed; nil for any other type.
	Services workflow.TriggerSource
	// Sample returns a payload like that of a trigger that fires, for tests; nil for
	// a type without payloads of its own.
	Sample func(workspaceID string, t workflow.Trigger, now time.Time) (json.RawMessage, error)
}

// Deps is what firers can use.
type Deps struct {
	Store interface {
		Store
		PendingEventStore
	}
	Programs Programs
	Runs     interface {
		Runs
		Batches
	}
	Values      Values
	Connections Connections
	Actions     *action.Catalog
	Log         *slog.Logger
}

// Connections opens the connections of triggers.
type Connections interface {
	// Use calls a function with a connection, and once more if the server rejected a
	// credential that could be renewed.
	Use(ctx context.Context, workspaceID, name string, wait time.Duration, call func(context.Context, action.Connection) error) error
	// Verifying returns the secret with which a service signs its calls, from a template of
	// its manifest, and the variables of the connection.
	Verifying(ctx context.Context, workspaceID, name string, secret integration.Template) (text string, variables map[string]string, err error)
}

// Firer fires the triggers of one type.
type Firer interface {
	// Run fires triggers until the context ends.
	Run(ctx context.Context) error
	// Wake announces that a trigger is due at a time.
	Wake(at time.Time)
}

// Types finds types of triggers by name. It is immutable.
type Types struct {
	list   []Type
	format *workflow.TriggerTypes
}

// NewTypes returns the given types in their order. It fails if two have the same
// name.
func NewTypes(types ...Type) (*Types, error) {
	var formats []workflow.TriggerType
	var services workflow.TriggerSource
	for _, kind := range types {
		if kind.Services != nil {
			services = kind.Services
		} else {
			formats = append(formats, kind.Format)
		}
	}
	format, err := workflow.NewTriggerTypes(formats...)
	if err != nil {
		return nil, err
	}
	return &Types{list: slices.Clone(types), format: format.With(services)}, nil
}

// Format returns the part that the types have in the workflow format.
func (t *Types) Format() *workflow.TriggerTypes { return t.format }

// find returns the type with a name. An unknown type has no abilities.
func (t *Types) find(name string) Type {
	family := workflow.FamilyOf(name)
	for _, kind := range t.list {
		if kind.Format.Name == family {
			return kind
		}
	}
	return Type{NeverFires: true}
}

// Firers fires the triggers of all types on one node.
type Firers struct {
	names  []string
	firers []Firer
}

// Firers returns the firers of all types.
func (t *Types) Firers(d Deps) *Firers {
	f := &Firers{}
	for _, kind := range t.list {
		if kind.Firer != nil {
			f.names, f.firers = append(f.names, kind.Format.Name), append(f.firers, kind.Firer(d))
		}
	}
	return f
}

// All returns the firers, each of which has to run.
func (f *Firers) All() []Firer { return f.firers }

// Wake announces that a trigger of a type is due at a time.
func (f *Firers) Wake(kind string, at time.Time) {
	if i := slices.Index(f.names, kind); i >= 0 {
		f.firers[i].Wake(at)
	}
}

// WakeAll makes all firers read what is due.
func (f *Firers) WakeAll() {
	for _, firer := range f.firers {
		firer.Wake(time.Time{}) // before all times of all clocks
	}
}
