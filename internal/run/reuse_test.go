package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// flatProgram returns a program of independent steps. A name that ends in ! tolerates
// failures.
func flatProgram(names ...string) *workflow.Program {
	program := &workflow.Program{}
	for _, name := range names {
		step := workflow.Step{ID: strings.TrimSuffix(name, "!"), Uses: "test"}
		if strings.HasSuffix(name, "!") {
			step.OnError = workflow.Continue
		}
		program.Steps = append(program.Steps, workflow.CompiledStep{Step: step})
	}
	return program
}

// loopProgram returns a program with a loop named l.
func loopProgram(body *workflow.Program) *workflow.Program {
	return &workflow.Program{Steps: []workflow.CompiledStep{{Step: workflow.Step{ID: "l", Foreach: "x"}, Block: &workflow.Block{Body: body}}}}
}

// ended returns a failed run with steps such as "a succeeded".
func ended(steps ...string) run.Detail {
	d := run.Detail{Run: run.Run{ID: "run_old", Status: run.Failed}}
	for i, text := range steps {
		path, status, _ := strings.Cut(text, " ")
		at := time.Unix(int64(i), 0)
		step := run.Step{Path: path, Seq: i, Status: run.StepStatus(status), Type: "test", FinishedAt: &at}
		if path == "l" {
			step.Type, step.Input = run.Foreach, []byte(`{"items": [1, 2]}`)
		}
		d.Steps = append(d.Steps, step)
	}
	return d
}

func TestReuseStepsAcrossVersions(t *testing.T) {
	t.Parallel()
	const none, rounds, success, all = workflow.ReuseNothing, workflow.ReuseRounds, workflow.ReuseSuccess, workflow.ReuseAll
	for name, test := range map[string]struct {
		program  *workflow.Program
		of       run.Detail
		reusable map[string]workflow.Reuse
		want     []string
	}{
		"a step that cannot be reused is omitted": {
			flatProgram("a", "b"), ended("a succeeded", "b succeeded"), map[string]workflow.Reuse{"a": none, "b": all}, []string{"b succeeded"},
		},
		"a step that is not in the program is omitted": {
			flatProgram("a"), ended("a succeeded", "gone succeeded"), map[string]workflow.Reuse{"a": all}, []string{"a succeeded"},
		},
		"a success is reused with another timeout, a failure is not": {
			flatProgram("a", "b!", "c"), ended("a succeeded", "b failed", "c skipped"),
			map[string]workflow.Reuse{"a": success, "b": success, "c": success}, []string{"a succeeded", "c skipped"},
		},
		"a tolerated failure is reused if nothing changed": {
			flatProgram("b!"), ended("b failed"), map[string]workflow.Reuse{"b": all}, []string{"b failed"},
		},
		"a succeeded loop is reopened for changed steps": {
			loopProgram(flatProgram("x", "y")), ended("l succeeded", "l[0].x succeeded", "l[0].y succeeded", "l[1].x succeeded", "l[1].y succeeded"),
			map[string]workflow.Reuse{"l": rounds, "x": all}, []string{"l running", "l[0].x succeeded", "l[1].x succeeded"},
		},
		"a succeeded loop is reopened for an invalid failure inside it": {
			loopProgram(flatProgram("x", "y!")), ended("l succeeded", "l[0].x succeeded", "l[0].y failed", "l[1].x succeeded", "l[1].y succeeded"),
			map[string]workflow.Reuse{"l": success, "x": all, "y": success},
			[]string{"l running", "l[0].x succeeded", "l[1].x succeeded", "l[1].y succeeded"},
		},
		"a succeeded loop without one is reused": {
			loopProgram(flatProgram("x", "y!")), ended("l succeeded", "l[0].x succeeded", "l[0].y succeeded"),
			map[string]workflow.Reuse{"l": success, "x": all, "y": success}, []string{"l succeeded", "l[0].x succeeded", "l[0].y succeeded"},
		},
		"a loop that cannot be reused starts over": {
			loopProgram(flatProgram("x")), ended("l failed", "l[0].x succeeded"), map[string]workflow.Reuse{}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, step := range run.ReuseSteps(test.program, test.of, test.reusable) {
				got = append(got, step.Path+" "+string(step.Status))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
