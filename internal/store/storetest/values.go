package storetest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

// texts returns texts that databases often get wrong.
func texts() map[string]string {
	return map[string]string{
		"empty":          "",
		"quotes":         `it's "quoted" and \escaped\ 100% $1 ?1 :a @b`,
		"a statement":    `'); DROP TABLE runs; --`,
		"spaces":         "  both ends  ",
		"lines":          "one\r\ntwo\n\tthree\u2028four",
		"accents":        "e\u0301 is not \u00e9",
		"emoji":          "👩‍👩‍👧‍👦 🏳️‍🌈",
		"scripts":        "日本語 العربية עברית हिन्दी",
		"largest runes":  "\U0010FFFD\uFFFD\uFEFF",
		"looks like nil": "NULL",
		"looks like 0":   "0",
		"long":           strings.Repeat("ä", 20_000),
	}
}

func testValues(t *testing.T, w *harness) {
	t.Run("times", func(t *testing.T) { testTimes(t, w) })
	t.Run("texts", func(t *testing.T) { testTexts(t, w) })
	t.Run("invalid texts", func(t *testing.T) { testInvalidTexts(t, w) })
	t.Run("documents", func(t *testing.T) { testDocuments(t, w) })
	t.Run("null and empty values", func(t *testing.T) { testEmpty(t, w) })
	t.Run("upper and lower case", func(t *testing.T) { testCase(t, w) })
	t.Run("numbers and bytes", func(t *testing.T) { testNumbers(t, w) })
}

// testInvalidTexts checks that text which not every database can store is made
// valid: steps fail with arbitrary messages and write arbitrary logs.
func testInvalidTexts(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	r := w.start(t, w.workflow(t, ws.ID), "node_1")
	const broken, kept = "zero \x00, no UTF-8 \xff\xc3", "zero \uFFFD, no UTF-8 \uFFFD"
	step := newStep("a", 1, run.StepFailed)
	step.Error = &run.Failure{Code: "failed", Message: broken, StepID: "a"}
	attempt := failedAttempt(step)
	attempt.Error.Message = broken
	line := run.LogLine{Path: "a", Attempt: 1, At: clock.Now(), Level: "info", Message: broken}
	decision := newFinish(t, r, run.Failed)
	decision.Rev, decision.Steps, decision.Attempts, decision.Logs = 1, []run.Step{step}, []run.Attempt{attempt}, []run.LogLine{line}
	decision.Finish.Error = step.Error
	returns(w.Commit(ctx, firstLease(r), r, decision))(t, "commit", true)
	detail := found(w.Runs.Run(ctx, ws.ID, r.ID))(t)
	equal(t, "the error of the run", detail.Error.Message, kept)
	equal(t, "the error of the step", detail.Steps[0].Error.Message, kept)
	lines, _, err := w.Runs.Logs(ctx, ws.ID, r.ID, "", fullPage)
	equal(t, "the line", must(lines, err)(t).Items[0].Message, kept)
	missing(w.Runs.Run(ctx, ws.ID, r.ID+"\x00"))(t, "a run with an id that is no text")
	missing(w.Runs.Run(ctx, ws.ID, "\xff"))(t, "a run with an id that is no text")
}

// testTimes checks that times are truncated, not rounded, to microseconds, and
// that the zone does not matter.
func testTimes(t *testing.T, w *harness) {
	ws := w.workspace(t)
	last := newKey(ws.ID)
	returns(w.Workspaces.InsertKey(t.Context(), last, noLimit, newEntry(ws.ID, "x", "x")))(t, "insert", true)
	zone := time.FixedZone("somewhere", 5*3600+45*60)
	lane.Check(t, func(rt *rapid.T) {
		at := time.Unix(rapid.Int64Range(-2_000_000_000, 10_000_000_000).Draw(rt, "s"), rapid.Int64Range(0, 999_999_999).Draw(rt, "ns"))
		if err := w.Workspaces.TouchKeys(rt.Context(), map[string]time.Time{last.ID: at.In(zone)}); err != nil {
			rt.Fatal(err)
		}
		key, err := w.Workspaces.Key(rt.Context(), ws.ID, last.ID)
		if err != nil || key == nil || key.LastUsedAt == nil {
			rt.Fatalf("%+v, %v", key, err)
		}
		if got, want := *key.LastUsedAt, at.UTC().Truncate(time.Microsecond); got != want {
			rt.Fatalf("%s became %s", want, got)
		}
	})
}

func testTexts(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	for name, text := range texts() {
		wf, first := newWorkflow(ws.ID)
		wf.Name, wf.Description, first.CreatedBy = text, &text, text
		entry := newEntry(ws.ID, "workflow.created", wf.ID)
		entry.Details = map[string]any{"text": text}
		returns(w.Workflows.InsertWorkflow(ctx, wf, first, noLimit, entry))(t, name, true)
		equal(t, name, found(w.Workflows.Workflow(ctx, ws.ID, wf.ID))(t), wf)
		equal(t, name, found(w.Workflows.Version(ctx, ws.ID, wf.ID, 1))(t), first)

		hook := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.URL, h.DisabledReason = text, text })
		equal(t, name, found(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t), hook)
		key := newKey(ws.ID)
		key.Name, key.CreatedBy = text, text
		returns(w.Workspaces.InsertKey(ctx, key, noLimit, newEntry(ws.ID, "x", text)))(t, name, true)
		equal(t, name, found(w.Workspaces.Key(ctx, ws.ID, key.ID))(t), key)

		r := w.start(t, wf, "node_1")
		step := newStep("a", 1, run.StepFailed)
		step.Name, step.Reason, step.Error = text, text, &run.Failure{Code: "code", Message: text, StepID: "a"}
		finish := newFinish(t, r, run.Failed)
		finish.Steps, finish.Finish.Error = []run.Step{step}, &run.Failure{Code: "code", Message: text}
		returns(w.Commit(ctx, firstLease(r), r, finish))(t, name, true)
		detail := found(w.Runs.Run(ctx, ws.ID, r.ID))(t)
		equal(t, name, detail.Error, finish.Finish.Error)
		equal(t, name, detail.Steps, finish.Steps)
	}
	equal(t, "runs", w.count(t, `SELECT count(*) FROM runs`), len(texts()))
}

// testDocuments checks that documents are returned byte for byte.
func testDocuments(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	for name, document := range map[string]string{
		"empty":    `{}`,
		"order":    `{"z":1,"a":2,"m":{"b":[],"a":null}}`,
		"numbers":  `{"a":1.0,"b":1e400,"c":-0,"d":123456789012345678901234567890,"e":0.1000}`,
		"spelling": `{"\u0041":"\u00e4ä\ud83d\ude00","a\/b":"\n"}`,
		"1 MiB":    `{"text":"` + strings.Repeat(`\"ä😀`, 1<<20/8) + `"}`,
	} {
		start := newStart(t, wf, "node_1")
		start.Run.Trigger.Payload = json.RawMessage(document)
		returns(w.Runs.StartRun(ctx, start))(t, name, true)
		step := newStep("a", 1, run.StepSucceeded)
		step.Input, step.Output = json.RawMessage(document), json.RawMessage(document)
		returns(w.Commit(ctx, firstLease(start.Run), start.Run, run.Decision{Steps: []run.Step{step}}))(t, name, true)
		got := found(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t)
		for what, text := range map[string]json.RawMessage{
			"payload": got.Trigger.Payload, "input": got.Steps[0].Input, "output": got.Steps[0].Output,
		} {
			if string(text) != document {
				t.Errorf("%s: the %s of %d bytes has come back with %d: %.100s", name, what, len(document), len(text), text)
			}
		}
	}
}

func testEmpty(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	for _, description := range []*string{nil, new("")} {
		made, first := newWorkflow(ws.ID)
		made.Description, made.Definition, first.Definition = description, workflow.Definition{}, workflow.Definition{}
		made.Layout = workflow.Layout{}
		returns(w.Workflows.InsertWorkflow(ctx, made, first, noLimit, newEntry(ws.ID, "x", "x")))(t, "insert", true)
		equal(t, "description", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t).Description, description)
		if layout := found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t).Layout; layout == nil {
			t.Error("an empty layout became nil")
		}
	}

	r := w.start(t, w.workflow(t, ws.ID), "node_1")
	none, some := newStep("none", 1, run.StepSkipped), newStep("some", 2, run.StepSucceeded)
	none.Input, none.Output = nil, nil
	some.Input, some.Output = json.RawMessage(`{}`), json.RawMessage(`{}`)
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{none, some}}))(t, "commit", true)
	detail := found(w.Runs.Run(ctx, ws.ID, r.ID))(t)
	if got := detail.Steps[0]; got.Input != nil || got.Output != nil || got.Error != nil || got.FinishedAt != nil || got.WakeAt != nil {
		t.Errorf("NULL became a value: %+v", got)
	}
	equal(t, "input", string(detail.Steps[1].Input), `{}`)
	if detail.Trigger.ID != "" || detail.RetryOf != "" || detail.Error != nil || detail.FinishedAt != nil {
		t.Errorf("NULL became a value: %+v", detail.Run)
	}

	// A value can be removed again.
	some.Output, some.Status = nil, run.StepRunning
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{some}}))(t, "commit", true)
	if got := found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Steps[1]; got.Output != nil {
		t.Errorf("the output is still %s", got.Output)
	}
}

func testCase(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	upper, lower := newKey(ws.ID), newKey(ws.ID)
	upper.Lookup, lower.Lookup = "AbCdEfGh", "aBcDeFgH"
	for _, key := range []auth.Key{upper, lower} {
		returns(w.Workspaces.InsertKey(ctx, key, noLimit, newEntry(ws.ID, "Made", "Key")))(t, "insert", true)
	}
	for _, want := range []auth.Key{upper, lower} {
		key, _, err := w.Workspaces.KeyByLookup(ctx, want.Lookup)
		equal(t, "key", found(key, err)(t), want)
	}
	key, _, err := w.Workspaces.KeyByLookup(ctx, strings.ToUpper(upper.Lookup))
	missing(key, err)(t, "the key of another spelling")
	equal(t, "audit entries", w.audited(t, ws.ID, "Key"), 2)
	equal(t, "audit entries of another spelling", w.audited(t, ws.ID, "key"), 0)
}

func testNumbers(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	made := w.workflow(t, ws.ID)
	change := renamed(made, made.Name)
	change.Workflow.Revision = 1 << 60
	change.Workflow.Layout = workflow.Layout{"a": {0.1, -1e6}, "@b": {1e-9, 123456.789}}
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "update", true)
	equal(t, "workflow", found(w.Workflows.Workflow(ctx, ws.ID, made.ID))(t), change.Workflow)
	equal(t, "head", found(w.Runs.WorkflowRef(ctx, ws.ID, made.ID))(t).Revision, int64(1<<60))

	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	hook := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.SealedSecret = bytes })
	equal(t, "every byte", found(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t).SealedSecret, bytes)
}
