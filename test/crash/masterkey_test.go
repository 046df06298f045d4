package crash_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// The rotation of the master key is killed before and after it rewraps the data key. The
// next server starts and can read secrets, and the rotation can be repeated.
func TestKillDuringMasterKeyRotation(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_rewrap", "after_rewrap"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t, t.TempDir())
			dir := s.Dir
			s.Client.Expect(t, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "c4n4ry-v4lue"})
			var flow struct {
				ID string `json:"id"`
			}
			s.Client.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "Sealed"}).Decode(t, &flow)
			s.Client.Expect(t, 200, "PATCH", "/v1/workflows/"+flow.ID, map[string]any{"steps": []any{map[string]any{
				"id": "open", "uses": "code.js", "with": map[string]any{"code": "return input.length", "input": "${{ secrets.token }}"},
			}}})
			checkSecret := func(s *harness.Server) {
				t.Helper()
				var run struct {
					Status string
					Steps  []struct{ Output struct{ Value int } }
				}
				s.Client.Expect(t, 200, "POST", "/v1/workflows/"+flow.ID+"/runs", nil, "Prefer", "wait=30").Decode(t, &run)
				if run.Status != "succeeded" || run.Steps[0].Output.Value != len("c4n4ry-v4lue") {
					t.Errorf("the secret cannot be read: %+v", run)
				}
			}
			checkSecret(s)
			key := s.Client.Key
			s.Terminate(t)

			if r := harness.RunWithFailpoint(t, point+":kill", append(harness.DataArgs(t, dir), "master-key", "rotate")...); r.Code == 0 {
				t.Fatalf("the rotation was not killed: %s", r.Stdout)
			}
			// A second rotation that is killed does not remove a key that is needed.
			if r := harness.RunWithFailpoint(t, "before_rewrap:kill", append(harness.DataArgs(t, dir), "master-key", "rotate")...); r.Code == 0 {
				t.Fatalf("the rotation was not killed: %s", r.Stdout)
			}
			s = harness.Start(t, dir)
			s.Client = s.Client.With(key)
			checkSecret(s)
			s.Terminate(t)

			if r := harness.Run(t, nil, append(harness.DataArgs(t, dir), "master-key", "rotate")...); r.Code != 0 {
				t.Fatalf("%s%s", r.Stdout, r.Stderr)
			}
			if _, err := os.Stat(filepath.Join(dir, "master.key.next")); err == nil {
				t.Error("master.key.next still exists")
			}
			s = harness.Start(t, dir)
			s.Client = s.Client.With(key)
			checkSecret(s)
		})
	}
}
