package clusterload_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// A node starts with the same key file during a master key rotation, which operators
// should avoid. The key that the data is sealed with is not lost.
func TestNodeStartDuringMasterKeyRotation(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	for pause := 5 * time.Second; !startDuringRotation(t, pause); pause *= 4 {
		if pause > time.Minute {
			t.Log("inconclusive: each time the rotation ended before the node was ready")
			break
		}
	}
}

// startDuringRotation starts a node while a rotation pauses. It reports whether the
// node was ready before the rotation continued.
func startDuringRotation(t *testing.T, pause time.Duration) bool {
	t.Helper()
	c := startCluster(t, 1)
	expect(t, c.nodes[0].Client, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "c4n4ry"})
	id := flow.Define(t, c.nodes[0].Client, map[string]any{
		"id": "open", "uses": "code.js", "with": map[string]any{"code": "return input.length", "input": "${{ secrets.token }}"},
	})
	c.nodes[0].Terminate(t)

	draft, rotated, began := filepath.Join(c.dir, "master.key.next"), make(chan harness.Result, 1), time.Now()
	go func() {
		rotated <- harness.RunWithFailpoint(t, "before_rewrap:pause="+pause.String(), patience, "--database-url", c.url, "--data-dir", c.dir, "master-key", "rotate")
	}()
	harness.Eventually(t, "the next key is written", func() bool {
		_, err := os.Stat(draft)
		return err == nil || len(rotated) > 0
	})
	early, err := harness.Launch(t.Context(), c.options(nil))
	during := time.Since(began) < pause
	switch {
	case err == nil:
		t.Cleanup(func() { early.Close(t) })
	case during:
		t.Fatal(err)
	}
	if r := <-rotated; during && r.Code == 0 {
		t.Errorf("the rotation succeeded although a node joined: %s", r.Stdout)
	}
	if !during {
		return false
	}
	early.Kill(t)

	last := c.addNode()
	if r := awaitRun(t, last.Client, startRun(t, last.Client, id).ID); r.Status != "succeeded" {
		t.Errorf("the secret cannot be read: %s %+v", r.Status, r.Error)
	}
	return true
}
