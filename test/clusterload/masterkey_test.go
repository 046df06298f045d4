package clusterload_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// A node is started with the same file while the master key is changed, which
// nobody should do. The key that the data is sealed with afterwards is not lost
// by it.
func TestANodeStartsWhileTheMasterKeyIsChanged(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	c := start(t, 1)
	c.nodes[0].Expect(t, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "c4n4ry"})
	id := define(t, c.nodes[0].Client, map[string]any{
		"id": "open", "uses": "code.js", "with": map[string]any{"code": "return input.length", "input": "${{ secrets.token }}"},
	})
	c.nodes[0].Terminate(t)

	draft, changed := filepath.Join(c.dir, "master.key.next"), make(chan harness.Result, 1)
	go func() {
		changed <- harness.RunFailing(t, "before_rewrap:pause=6s", "--database-url", c.url, "--data-dir", c.dir, "master-key", "rotate")
	}()
	within(t, 20*time.Second, "there is another key", func() bool {
		_, err := os.Stat(draft)
		return err == nil
	})
	early := c.add()
	if len(changed) > 0 {
		t.Fatal("the node was not ready before the key was changed")
	}
	if r := <-changed; r.Code == 0 {
		t.Errorf("a node came while the key was changed, and nobody is told: %s", r.Stdout)
	}
	early.Kill(t)

	last := c.add()
	var r run
	last.Expect(t, 200, "POST", "/v1/workflows/"+id+"/runs", nil, "Prefer", "wait=30").Decode(t, &r)
	if r.Status != "succeeded" {
		t.Errorf("the secret does not open: %s %+v", r.Status, r.Error)
	}
}
