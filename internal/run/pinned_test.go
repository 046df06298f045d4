package run_test

import (
	"encoding/json"
	"testing"

	"github.com/stepmill/stepmill/internal/run"
)

func TestPinned(t *testing.T) {
	t.Parallel()
	const shown = "used its pinned output instead of being executed"
	var pinned run.Step
	pinned.Pin(json.RawMessage(`{"a": 1}`))
	if pinned.Status != run.StepSucceeded || string(pinned.Output) != `{"a": 1}` || pinned.Reason != run.ReasonPinned {
		t.Errorf("Pin made %+v", pinned)
	}
	for name, tc := range map[string]struct {
		step   run.Step
		pinned bool
		text   string
	}{
		"a step settled by Pin":            {pinned, true, shown},
		"a row with the earlier text":      {run.Step{Status: run.StepSucceeded, Reason: "answered with its pinned output"}, true, shown},
		"an executed step":                 {run.Step{Status: run.StepSucceeded}, false, ""},
		"a reused step":                    {run.Step{Status: run.StepSucceeded, Reason: "copied from run_1"}, false, "copied from run_1"},
		"a step that waits with that text": {run.Step{Status: run.StepWaiting, Reason: run.ReasonPinned}, false, run.ReasonPinned},
	} {
		if got := tc.step.Pinned(); got != tc.pinned {
			t.Errorf("%s: Pinned() = %t, want %t", name, got, tc.pinned)
		}
		if got := tc.step.ReasonText(); got != tc.text {
			t.Errorf("%s: ReasonText() = %q, want %q", name, got, tc.text)
		}
	}
}
