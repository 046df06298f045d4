package crash_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// TestARotationOfTheMasterKeyThatIsKilled kills the command at each moment that
// matters: the next server starts on the data and opens what is sealed, and the
// rotation can be made again.
func TestARotationOfTheMasterKeyThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"before_rewrap", "after_rewrap"} {
		t.Run(moment, func(t *testing.T) {
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
			opens := func(s *harness.Server) {
				t.Helper()
				var run struct {
					Status string
					Steps  []struct{ Output struct{ Value int } }
				}
				s.Client.Expect(t, 200, "POST", "/v1/workflows/"+flow.ID+"/runs", nil, "Prefer", "wait=30").Decode(t, &run)
				if run.Status != "succeeded" || run.Steps[0].Output.Value != len("c4n4ry-v4lue") {
					t.Errorf("the secret does not open: %+v", run)
				}
			}
			opens(s)
			key := s.Client.Key
			s.Terminate(t)

			if r := harness.RunFailing(t, moment+":kill", append(harness.Where(t, dir), "master-key", "rotate")...); r.Code == 0 {
				t.Fatalf("it was not killed: %s", r.Stdout)
			}
			// One that comes to nothing takes away no key that is needed.
			if r := harness.RunFailing(t, "before_rewrap:kill", append(harness.Where(t, dir), "master-key", "rotate")...); r.Code == 0 {
				t.Fatalf("it was not killed: %s", r.Stdout)
			}
			s = harness.Start(t, dir)
			s.Client = s.Client.With(key)
			opens(s)
			s.Terminate(t)

			if r := harness.Run(t, nil, append(harness.Where(t, dir), "master-key", "rotate")...); r.Code != 0 {
				t.Fatalf("%s%s", r.Stdout, r.Stderr)
			}
			if _, err := os.Stat(filepath.Join(dir, "master.key.next")); err == nil {
				t.Error("the key that was to follow is still there")
			}
			s = harness.Start(t, dir)
			s.Client = s.Client.With(key)
			opens(s)
		})
	}
}
