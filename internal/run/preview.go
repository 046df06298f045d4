package run

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/mask"
)

// Variables reads the variables of a workspace.
type Variables interface {
	Vars(ctx context.Context, workspaceID string) (map[string]any, error)
}

// Previews evaluates expressions while they are being written, with the data of an
// earlier run or with samples. It has no effects.
type Previews struct {
	runs  *Service
	vars  Variables
	cache *expr.Cache
}

// previewCache is the number of compiled expressions that are cached.
const previewCache = 1000

// NewPreviews returns previews that use the data of runs.
func NewPreviews(runs *Service, vars Variables) *Previews {
	return &Previews{runs: runs, vars: vars, cache: expr.NewCache(previewCache)}
}

// Preview is a request to evaluate expressions in one view.
type Preview struct {
	View
	Terms []Term
}

// Term is an expression or, if Template is set, any JSON value with expressions in
// its strings.
type Term struct {
	Expression string
	Template   json.RawMessage
}

// Sample is data to evaluate with. It replaces the data of the run; nil fields leave
// it unchanged.
type Sample struct {
	Trigger  SampleTrigger
	Steps    map[string]SampleStep // each as a whole
	Item     json.RawMessage
	Index    *int
	Previous json.RawMessage
	Vars     map[string]json.RawMessage
	Run      SampleRun
	Workflow SampleWorkflow
}

// SampleTrigger holds the fields of trigger.
type SampleTrigger struct {
	Type    *string
	ID      *string
	Payload json.RawMessage
	Headers json.RawMessage
	Query   json.RawMessage
}

// SampleStep holds the fields of a step.
type SampleStep struct {
	Output json.RawMessage
	Status string
	Error  json.RawMessage
}

// SampleRun holds the fields of run.
type SampleRun struct {
	ID        *string
	StartedAt *time.Time
}

// SampleWorkflow holds the fields of workflow.
type SampleWorkflow struct {
	ID      *string
	Name    *string
	Version *int
}

// Evaluation is the value of an expression, or its error.
type Evaluation struct {
	Value any
	Error *expr.Error
}

// Evaluate evaluates each of the expressions. An expression that does not compile or
// fails has an error in its Evaluation. Secrets are never read: the value of each is
// "***".
func (p *Previews) Evaluate(ctx context.Context, actor auth.Actor, in Preview) ([]Evaluation, error) {
	out := make([]Evaluation, len(in.Terms))
	compiled := make([]evaluator, len(in.Terms))
	var refs expr.Refs
	for i, term := range in.Terms {
		var err error
		if compiled[i], err = p.compile(term); err != nil {
			if out[i], err = failed(err); err != nil {
				return nil, err
			}
			compiled[i] = nil
			continue
		}
		refs = refs.And(compiled[i].Refs())
	}
	env, err := p.env(ctx, actor, in.View, refs)
	if err != nil {
		return nil, err
	}
	spent := 0
	for i, program := range compiled {
		if program == nil {
			continue
		}
		env.Seed = expr.DeriveSeed([]byte("preview"), env.Run.ID, in.StepID, strconv.Itoa(i))
		// All expressions share the budget of one.
		value, err := program.Eval(env, expr.Budget{Steps: max(1, expr.DefaultSteps-spent), Spent: &spent})
		if out[i] = (Evaluation{Value: value}); err != nil {
			if out[i], err = failed(err); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// env returns the environment for expressions with these references.
func (p *Previews) env(ctx context.Context, actor auth.Actor, v View, refs expr.Refs) (*expr.Env, error) {
	env := &expr.Env{
		Steps: map[string]expr.Step{}, Now: clock.Now(),
		Secrets: make(map[string]string, len(refs.Secrets)), Links: make(map[string]expr.Link, len(refs.Links)),
	}
	for _, ref := range refs.Secrets {
		env.Secrets[ref.Name] = mask.Replacement
	}
	for _, ref := range refs.Links {
		env.Links[ref.Name] = expr.Link{Page: mask.Replacement, Callback: mask.Replacement}
	}
	if len(refs.Vars) > 0 || refs.AllVars {
		var err error
		if env.Vars, err = p.vars.Vars(ctx, actor.Workspace.ID); err != nil {
			return nil, err
		}
	}
	return env, p.fill(ctx, actor, v, refs, env)
}

// evaluator is an expression, a template or a value that contains templates.
type evaluator interface {
	Refs() expr.Refs
	Eval(env *expr.Env, budget expr.Budget) (any, error)
}

func (p *Previews) compile(in Term) (evaluator, error) {
	if in.Template == nil {
		return p.cache.CompileBare(in.Expression)
	}
	value, err := expr.FromJSON(in.Template)
	if err != nil {
		return nil, fault.Field("/template", "is not JSON")
	}
	if text, ok := value.(string); ok {
		return p.cache.CompileTemplate(text)
	}
	return expr.CompileValue(value, nil)
}

// failed turns an error of an expression into an Evaluation. Other errors remain
// errors.
func failed(err error) (Evaluation, error) {
	if wrong, ok := errors.AsType[*expr.Error](err); ok {
		return Evaluation{Error: wrong}, nil
	}
	return Evaluation{}, err
}

// apply replaces data of the environment by the sample.
func (s Sample) apply(env *expr.Env) error {
	var errs []error
	decode := func(raw json.RawMessage, into *any) {
		if raw == nil {
			return
		}
		value, err := expr.FromJSON(raw)
		*into, errs = value, append(errs, err)
	}
	decode(s.Trigger.Payload, &env.Trigger.Payload)
	decode(s.Trigger.Headers, &env.Trigger.Headers)
	decode(s.Trigger.Query, &env.Trigger.Query)
	for id, given := range s.Steps {
		step := expr.Step{Status: given.Status}
		decode(given.Output, &step.Output)
		decode(given.Error, &step.Error)
		env.Steps[id] = step
	}
	if s.Item != nil || s.Index != nil || s.Previous != nil {
		env.Loop = &expr.Loop{}
		decode(s.Item, &env.Loop.Item)
		decode(s.Previous, &env.Loop.Previous)
		replace(&env.Loop.Index, s.Index)
	}
	if len(s.Vars) > 0 {
		vars := maps.Clone(env.Vars)
		if vars == nil {
			vars = map[string]any{}
		}
		for name, raw := range s.Vars {
			var value any
			decode(raw, &value)
			vars[name] = value
		}
		env.Vars = vars
	}
	s.applyNames(env)
	return errors.Join(errs...)
}

func (s Sample) applyNames(env *expr.Env) {
	replace(&env.Trigger.Type, s.Trigger.Type)
	replace(&env.Trigger.ID, s.Trigger.ID)
	replace(&env.Run.ID, s.Run.ID)
	replace(&env.Run.StartedAt, s.Run.StartedAt)
	replace(&env.Workflow.ID, s.Workflow.ID)
	replace(&env.Workflow.Name, s.Workflow.Name)
	replace(&env.Workflow.Version, s.Workflow.Version)
}

func replace[T any](target, given *T) {
	if given != nil {
		*target = *given
	}
}
