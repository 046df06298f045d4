//go:build linux

package scripts_test

import (
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// One workspace has 20 scripts that never end. A script of another workspace succeeds
// within its timeout: if there are several processes, the first leaves one of them
// free, and if there is only one, they take turns and waiting does not count. The latter
// needs a timeout that a busy machine may exceed.
func TestEndlessScriptsDoNotBlockOtherWorkspaces(t *testing.T) {
	t.Parallel()
	for processes, tc := range map[string]struct{ endlessTimeout, quickTimeout string }{
		"1": {endlessTimeout: "12s", quickTimeout: "8s"}, "2": {endlessTimeout: "15m", quickTimeout: "15m"},
	} {
		t.Run(processes, func(t *testing.T) {
			if processes == "1" {
				lane.LongOnly(t)
			}
			t.Parallel()
			s := harness.Start(t, t.TempDir(), "--js-processes", processes)
			busy, other := flow.NewWorkspace(t, s.Client, "free"), flow.NewWorkspace(t, s.Client, "pro")
			endless := defineScript(t, busy, "for (;;) {}", tc.endlessTimeout)
			quick := defineScript(t, other, "return {n: input.n + 1}", tc.quickTimeout, "retry", map[string]any{"max_attempts": 1})
			for range 20 {
				busy.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+endless+"/runs", nil)
			}
			harness.Eventually(t, "an endless script runs", func() bool {
				for _, pid := range children(t, s.Pid()) {
					if processorTime(pid) > 50 { // half a second
						return true
					}
				}
				return false
			})
			for n := range 2 {
				if run := execute(t, other, quick, map[string]any{"n": n}); run.Status != "succeeded" {
					t.Errorf("the script of another workspace is %s, want succeeded: %+v", run.Status, run.Error)
				}
			}
			s.Kill(t)
		})
	}
}
