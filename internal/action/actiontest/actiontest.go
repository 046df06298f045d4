// Package actiontest helps to test actions without the engine.
package actiontest

import (
	"slices"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Resume makes req the request of the call that follows a checkpoint.
func Resume(t testing.TB, req *action.Request, after *action.Checkpoint) {
	t.Helper()
	state, err := strictjson.Encode(after.State)
	if err != nil {
		t.Fatal(err)
	}
	req.State = state
	if after.Restart {
		req.Chunks = nil
	}
	if after.Chunk != nil {
		req.Chunks = append(slices.Clip(req.Chunks), after.Chunk)
	}
}
