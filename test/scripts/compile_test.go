//go:build linux

package scripts_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// costlyCode takes exponential time to compile. Each index makes different code, so
// that no result is cached.
func costlyCode(index int) string {
	const depth = 40
	return fmt.Sprintf("// %d\nreturn %s1%s", index, strings.Repeat("((a=", depth), strings.Repeat(")=>1)", depth))
}

// A request compiles for as long as it may: two seconds for each of 30 scripts. It has
// an Idempotency-Key, so its effect and its response are saved in one transaction. That
// transaction must not be open while it compiles: another workspace writes meanwhile.
func TestCompilingDoesNotBlockWrites(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	busy, other := flow.NewWorkspace(t, s.Client, "pro"), flow.NewWorkspace(t, s.Client, "free")
	id := defineScript(t, busy, "return 1", "10s")
	steps := make([]any, 30)
	for i := range steps {
		steps[i] = map[string]any{"id": fmt.Sprintf("s%d", i), "uses": "code.js", "with": map[string]any{"code": costlyCode(i)}}
	}
	definition := map[string]any{"definition": map[string]any{"steps": steps}}

	compiled := make(chan harness.Response, 1)
	go func() {
		// The server is killed before it responds.
		response, _ := busy.Do(t.Context(), "POST", "/v1/workflows/"+id+"/runs", definition, "Idempotency-Key", "costly")
		compiled <- response
	}()
	harness.Eventually(t, "a script is being compiled", func() bool {
		for _, pid := range children(t, s.Pid()) {
			if processorTime(pid) > 20 { // a fifth of a second
				return true
			}
		}
		return false
	})
	for i := range 3 {
		other.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "x"}, "Idempotency-Key", fmt.Sprint(i))
	}
	select {
	case response := <-compiled:
		t.Errorf("the writes took longer than all the compiling, which ended with %d", response.Status)
	default:
	}
	s.Kill(t)
	<-compiled
}
