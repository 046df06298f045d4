package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// TestRestoreDropsFinishedRounds restores unfinished loops. Only the outputs of finished
// rounds are in memory.
func TestRestoreDropsFinishedRounds(t *testing.T) {
	t.Parallel()
	const rounds = 100
	for _, test := range []struct{ name, loop, input string }{
		{"foreach", `"foreach": "1..100"`, `{"items": [` + numbers(rounds) + `]}`},
		{"repeat", `"repeat": {"until": "index == 1000", "max": 2000}`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			program := compile(t, `[{"id": "l", `+test.loop+`, "steps": [
				{"id": "inner", "foreach": "[1]", "steps": [{"id": "x", "uses": "data.set", "with": {"values": {}}}]},
				{"id": "beside", "needs": [], "uses": "data.set", "with": {"values": {}}}]}]`)
			d := newDriver(nil, nil)
			d.state.snap.Plan, d.state.snap.Trigger.Payload = auth.Free, json.RawMessage(`{}`)
			d.state.snap.Steps = []run.Step{{Path: "l", Seq: 1, Status: run.StepRunning, StartedAt: time.Now(), Input: json.RawMessage(test.input)}}
			if test.input == "" {
				d.state.snap.Steps[0].Input = nil
			}
			add := func(path string, status run.StepStatus, output string) {
				d.state.snap.Steps = append(d.state.snap.Steps, run.Step{Path: path, Seq: len(d.state.snap.Steps) + 1, Status: status, Output: json.RawMessage(output)})
			}
			for n := range rounds - 1 {
				round := fmt.Sprintf("l[%d].", n)
				add(round+"inner", run.StepSucceeded, `{"items":[{}]}`)
				add(round+"beside", run.StepSucceeded, fmt.Sprintf(`{"n":%d}`, n))
				add(round+"inner[0].x", run.StepSucceeded, `{}`) // started after the step next to its block
			}
			add(fmt.Sprintf("l[%d].inner", rounds-1), run.StepRunning, "")
			if err := d.state.restore(program, nil); err != nil {
				t.Fatal(err)
			}
			b := roundsOf(d.state.root.blocks[0])
			if len(b.frames) != 1 || b.next != rounds || b.failure != nil {
				t.Errorf("%d rounds are open, the next is %d: %+v", len(b.frames), b.next, b.failure)
			}
			if got := fmt.Sprint(b.outputs[rounds-3]); got != fmt.Sprintf("map[n:%d]", rounds-3) {
				t.Errorf("the output of a round is %s", got)
			}
		})
	}
}

func roundsOf(b block) *rounds {
	if loop, ok := b.(*foreach); ok {
		return &loop.rounds
	}
	return &b.(*repeat).rounds
}

func numbers(n int) string {
	text := "1"
	for i := 2; i <= n; i++ {
		text += fmt.Sprint(", ", i)
	}
	return text
}

func compile(t *testing.T, steps string) *workflow.Program {
	t.Helper()
	catalog, err := action.NewCatalog(dataset.Entry())
	if err != nil {
		t.Fatal(err)
	}
	var definition workflow.Definition
	if err := json.Unmarshal([]byte(steps), &definition.Steps); err != nil {
		t.Fatal(err)
	}
	program, problems := workflow.Compile(definition, catalog, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return program
}
