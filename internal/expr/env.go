package expr

import "time"

// Env is the data that an expression can read. Data is plain decoded JSON:
// map[string]any, []any, string, int, float64, bool and nil, as [FromJSON]
// returns it. Evaluations never change an Env, so they may share one; results may
// share parts of it.
type Env struct {
	Trigger  Trigger
	Steps    map[string]Step
	Run      Run
	Workflow Workflow
	Secrets  map[string]string
	Vars     map[string]any
	// Links has the links of steps that wait for an answer, by step id.
	Links map[string]Link
	// Loop is the round of the enclosing loop, nil outside of one.
	Loop *Loop
	// Response and Cursor are set for a trigger that polls: the response it got and
	// its position.
	Response any
	Cursor   any
	// Values has the values of the names of a [Scope].
	Values map[string]any
	// Now is the result of now(). It is not read from a clock, so that evaluating
	// again gives the same result. If it is zero, now() fails.
	Now time.Time
	// Seed determines the results of uuid() and the other random functions, so that
	// evaluating again gives the same result. See [DeriveSeed]. If it is empty, they
	// fail.
	Seed []byte
}

// Trigger describes what started the run.
type Trigger struct {
	Type    string
	ID      string
	Payload any
	Headers any
	Query   any
}

// Step is the outcome of a step. A step that was skipped or has not run has no
// entry or a nil Output.
type Step struct {
	Output any
	Status string
	Error  any
}

// Run identifies the run.
type Run struct {
	ID        string
	StartedAt time.Time
}

// Workflow identifies the workflow and the version the run is pinned to.
type Workflow struct {
	ID      string
	Name    string
	Version int
}

// Link has the URLs at which people without an account can answer a waiting step:
// a page and a callback.
type Link struct {
	Page     string
	Callback string
}

// Loop is one round of a loop.
type Loop struct {
	Item  any
	Index int
	// Previous is the output of the round before, in a repeat.
	Previous any
}

// rootNames are the names that an expression can start with.
func rootNames() []string {
	return []string{"trigger", "steps", "item", "index", "previous", "run", "workflow", "secrets", "vars", "links", "response", "cursor"}
}

// fieldsOf returns the keys of a root with fixed fields, nil for other roots.
func fieldsOf(root string) []string {
	switch root {
	case "trigger":
		return []string{"type", "id", "payload", "files", "headers", "query"}
	case "run":
		return []string{"id", "started_at"}
	case "workflow":
		return []string{"id", "name", "version"}
	}
	return nil
}

func linkFields() []string { return []string{"page", "callback"} }

func stepFields() []string { return []string{"output", "status", "error"} }

// rootField returns a function that reads a field of a root with fixed fields,
// nil if it has no such field.
func rootField(path string) func(*Env) any {
	switch path {
	case "trigger.type":
		return func(e *Env) any { return e.Trigger.Type }
	case "trigger.id":
		return func(e *Env) any { return e.Trigger.ID }
	case "trigger.payload":
		return func(e *Env) any { return e.Trigger.Payload }
	case "trigger.files":
		return func(e *Env) any { return e.Trigger.files() }
	case "trigger.headers":
		return func(e *Env) any { return e.Trigger.Headers }
	case "trigger.query":
		return func(e *Env) any { return e.Trigger.Query }
	case "run.id":
		return func(e *Env) any { return e.Run.ID }
	case "run.started_at":
		return (*Env).startedAt
	case "workflow.id":
		return func(e *Env) any { return e.Workflow.ID }
	case "workflow.name":
		return func(e *Env) any { return e.Workflow.Name }
	case "workflow.version":
		return func(e *Env) any { return e.Workflow.Version }
	}
	return nil
}

// files returns the members of the payload that are files.
func (t Trigger) files() any {
	files := map[string]any{}
	payload, _ := t.Payload.(map[string]any)
	for name, value := range payload {
		if f, ok := value.(*File); ok {
			files[name] = f
		}
	}
	return files
}

func (e *Env) startedAt() any {
	if e.Run.StartedAt.IsZero() {
		return nil
	}
	return timeText(e.Run.StartedAt)
}

func (s Step) field(name string) any {
	switch name {
	case "output":
		return s.Output
	case "status":
		return s.Status
	case "error":
		return s.Error
	}
	return nil
}

func (s Step) object() map[string]any {
	return map[string]any{"output": s.Output, "status": s.Status, "error": s.Error}
}
