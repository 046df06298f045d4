package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/run"
)

// BenchmarkCountExecution measures the cost of counting, including two clock reads.
func BenchmarkCountExecution(b *testing.B) {
	noChange := action.Func(func(context.Context, action.Request) (action.Result, error) { return action.Result{}, nil })
	catalog, err := action.NewCatalog(action.Entry{Spec: action.Spec{Name: "test.nothing", Input: `{}`, Output: `{}`}, Action: noChange})
	if err != nil {
		b.Fatal(err)
	}
	e := &Engine{counts: newCounts(catalog)}
	b.RunParallel(func(pb *testing.PB) {
		d, step := &driver{engine: e}, &run.Step{Type: "test.nothing", Status: run.StepSucceeded}
		for pb.Next() {
			begun := time.Now()
			d.countExecution(step, time.Since(begun))
		}
	})
}
