package workflow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// minInterval is the shortest interval of a trigger.
const minInterval = 10 * time.Second

// TriggerCompiler is what a type of trigger compiles a trigger with: it reports
// problems, and compiles durations and expressions. Pointers are relative to the
// trigger.
type TriggerCompiler struct {
	c  *compiler
	at string // the pointer of the trigger
}

// TriggerScope is what an expression of a trigger can refer to besides what all
// expressions can.
type TriggerScope struct {
	Response bool
	Cursor   bool
	Item     bool // item and index
}

func (s TriggerScope) scope() scope {
	return scope{response: s.Response, cursor: s.Cursor, item: s.Item, index: s.Item}
}

// Report adds a problem.
func (t *TriggerCompiler) Report(pointer, hint, format string, args ...any) {
	t.c.report(t.at+pointer, hint, format, args...)
}

// ReportUnknown adds a problem about a name that is not among the known ones, with
// the closest of them as a hint.
func (t *TriggerCompiler) ReportUnknown(pointer, name string, known []string, format string, args ...any) {
	t.Report(pointer, didYouMean(name, known), format, args...)
}

// Input decodes `with` into a struct and reports what does not fit.
func (t *TriggerCompiler) Input(trigger Trigger, into any) bool {
	raw := trigger.With
	if raw == nil {
		raw = []byte("{}")
	}
	err := strictjson.Decode(raw, into)
	if err == nil {
		return true
	}
	if problems, ok := errors.AsType[strictjson.Errors](err); ok {
		for _, problem := range problems {
			t.Report("/with"+problem.Pointer, "", "%s", problem.Message)
		}
		return false
	}
	t.Report("/with", "", "%s", err)
	return false
}

// Settings compiles the settings in `with`, which are checked against the input of an
// action. They can read variables.
func (t *TriggerCompiler) Settings(trigger Trigger, checker *action.Catalog, name string) *expr.Value {
	input, err := decodeInput(trigger.With)
	if err != nil {
		t.Report("/with", "", "must be an object")
		return nil
	}
	value, err := expr.CompileValue(input, nil)
	if err != nil {
		t.c.reportExpr(t.at+"/with", err)
		return nil
	}
	refs := t.rejectSteps("/with", value.Refs())
	for _, ref := range refs.Secrets {
		t.Report("/with"+ref.Pointer, "the connection has the credential", "a secret cannot be used here")
	}
	refs.Secrets = nil
	t.checkRefs("/with", refs, TriggerScope{})
	for _, problem := range checker.Check(name, input, templated(input)) {
		t.Report("/with"+problem.Pointer, problem.Hint, "%s", problem.Message)
	}
	return value
}

// Duration compiles a duration of at most limit.
func (t *TriggerCompiler) Duration(pointer, text string, limit time.Duration) time.Duration {
	return t.c.parseDuration(t.at+pointer, text, limit)
}

// Interval compiles an interval. It returns nil if it is not a valid duration.
func (t *TriggerCompiler) Interval(pointer, text string) *cron.Schedule {
	every := t.Duration(pointer, text, maxEvery)
	if every <= 0 {
		return nil
	}
	t.CheckInterval(pointer, every)
	return cron.Every(every)
}

// CheckInterval reports an interval that is too short or too long.
func (t *TriggerCompiler) CheckInterval(pointer string, every time.Duration) {
	if every < minInterval {
		t.Report(pointer, "", "must be at least %s", clock.FormatDuration(minInterval))
	}
	if every > maxEvery {
		t.Report(pointer, "", "must be at most %s", clock.FormatDuration(maxEvery))
	}
}

// CheckUnique reports names that a list contains more than once.
func (t *TriggerCompiler) CheckUnique(pointer string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			t.Report(fmt.Sprintf("%s/%d", pointer, i), "", "%q is listed twice", name)
		}
	}
}

// StoredExpression compiles an expression whose result is stored in plain text.
func (t *TriggerCompiler) StoredExpression(pointer, source string, sees TriggerScope) *expr.Program {
	program := t.c.compileBare(t.at+pointer, source)
	if program == nil {
		return nil
	}
	refs := program.Refs()
	for range refs.Secrets {
		t.reportStoredSecret(pointer)
	}
	refs.Secrets = nil
	t.checkRefs(pointer, t.rejectSteps(pointer, refs), sees)
	return program
}

// StoredTemplate compiles text that is evaluated before a run starts and stored in
// plain text. It can read only the trigger itself.
func (t *TriggerCompiler) StoredTemplate(pointer, source string) *expr.Template {
	compiled := t.compileTemplate(pointer, source)
	if compiled == nil {
		return nil
	}
	refs := t.rejectSteps(pointer, compiled.Refs())
	if len(refs.Secrets) > 0 {
		t.reportStoredSecret(pointer)
	}
	if len(refs.Vars) > 0 || refs.AllVars {
		t.Report(pointer, "use trigger", "variables cannot be used here")
	}
	refs.Secrets, refs.Vars, refs.AllVars = nil, nil, false
	t.checkRefs(pointer, refs, TriggerScope{})
	return compiled
}

// Credential compiles a credential of a caller. A confidential one must come from a
// secret, so that it is not part of the definition.
func (t *TriggerCompiler) Credential(pointer, source string, confidential bool) *expr.Template {
	if source == "" {
		t.Report(pointer, "", "is required")
		return nil
	}
	compiled := t.compileTemplate(pointer, source)
	if compiled == nil {
		return nil
	}
	refs := compiled.Refs()
	if confidential && len(refs.Secrets) == 0 {
		t.Report(pointer, "store it as a secret and write ${{ secrets.<name> }}", "must refer to a secret")
	}
	t.checkRefs(pointer, t.rejectSteps(pointer, refs), TriggerScope{})
	return compiled
}

// ActionInput compiles the input of an action that the trigger executes.
func (t *TriggerCompiler) ActionInput(pointer, action string, raw []byte, sees TriggerScope) *expr.Value {
	input, err := decodeInput(raw)
	if err != nil {
		t.Report(pointer, "", "must be an object")
		return nil
	}
	entry, _ := t.c.catalog.Find(action)
	value, err := expr.CompileValue(input, escapes(entry.Spec))
	if err != nil {
		t.c.reportExpr(t.at+pointer, err)
	} else {
		t.checkRefs(pointer, t.rejectSteps(pointer, value.Refs()), sees)
	}
	for _, problem := range t.c.catalog.Check(action, input, templated(input)) {
		t.Report(pointer+problem.Pointer, problem.Hint, "%s", problem.Message)
	}
	return value
}

func (t *TriggerCompiler) compileTemplate(pointer, source string) *expr.Template {
	compiled, err := expr.CompileTemplate(source)
	if err != nil {
		t.c.reportExpr(t.at+pointer, err)
		return nil
	}
	return compiled
}

func (t *TriggerCompiler) checkRefs(pointer string, refs expr.Refs, sees TriggerScope) {
	t.c.checkRefs(t.at+pointer, refs, sees.scope())
}

func (t *TriggerCompiler) reportStoredSecret(pointer string) {
	t.Report(pointer, "", "a secret cannot be used here: the result is stored in plain text")
}

// rejectSteps reports references to steps and returns the other references.
func (t *TriggerCompiler) rejectSteps(pointer string, refs expr.Refs) expr.Refs {
	if len(refs.Steps) > 0 || refs.AllSteps {
		t.Report(pointer, "", "steps cannot be used here: no step has run when a trigger fires")
	}
	refs.Steps, refs.AllSteps = nil, false
	return refs
}
