package engine_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/workflow"
)

// TestARunThatIsHeldBackTakesNoPlaceInTheQueue has the place that was reserved
// for its start given back: nothing is queued.
func TestARunThatIsHeldBackTakesNoPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.start(w.store)
	id := w.workflow(`[{"id": "a", "uses": "test.effect", "with": {"gate": "g"}}]`)
	share := &workflow.SettingsPatch{Concurrency: &workflow.Concurrency{Limit: 1}, SetConcurrency: true}
	if _, err := w.flows.Update(t.Context(), w.actor, id, workflow.Patch{Settings: share}, workflow.Match{}); err != nil {
		t.Fatal(err)
	}
	w.startRun(id, `{}`)
	<-w.effects.begun
	if held := w.get(w.startRun(id, `{}`)); !held.HeldBack {
		t.Fatalf("it is not held back: %+v", held)
	}
	if !n.dispatch.Reserve(w.actor.Workspace.ID, "run_next", 1) {
		t.Error("there is no place for another run")
	}
	w.effects.open("g")
}
