//go:build linux

package scripts_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// set makes an active workflow of one data.set.
func set(t *testing.T, c *harness.Client, values map[string]any) string {
	t.Helper()
	return flow.Define(t, c, map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": values}})
}

// costlyExpressions has expressions that cost too much, with the error codes that their
// runs must fail with. The payload has a list of ten thousand objects and a long text.
var costlyExpressions = map[string]string{
	"count(trigger.payload.items, any(trigger.payload.items, .id == -1)) ":           "expression_cost_exceeded",
	"all(1..100000, all(1..100000, all(1..100000, # > 0)))":                          "expression_cost_exceeded",
	"sum(1..100000, sum(1..100000))":                                                 "expression_cost_exceeded",
	"sortBy(trigger.payload.items, count(trigger.payload.items, .id > 0))":           "expression_cost_exceeded",
	`reduce(1..100000, #acc + #acc, "xx")`:                                           "expression_cost_exceeded",
	"reduce(1..100000, concat(#acc, #acc), [1])":                                     "expression_cost_exceeded",
	"reduce(1..100000, [#acc, #acc], 0)":                                             "expression_cost_exceeded",
	`join(map(1..100000, trigger.payload.text), "")`:                                 "expression_cost_exceeded",
	`replace(trigger.payload.text, "a", trigger.payload.text)`:                       "expression_cost_exceeded",
	`all(1..100000, trigger.payload.text matches "(a|b|ab)*c")`:                      "expression_cost_exceeded",
	`all(1..100000, all(1..100, "aaaaaaaaaaaaaaaaaaaaa" matches "(a*)*b" == false))`: "expression_cost_exceeded",
	`trigger.payload.text matches trigger.payload.pattern`:                           "expression_failed",
	`fromJSON(join(map(1..100000, "["), ""))`:                                        "expression_failed",
	`let a = [1,1,1,1,1,1,1,1]; let b = [a,a,a,a,a,a,a,a]; let c = [b,b,b,b,b,b,b,b]; let d = [c,c,c,c,c,c,c,c]; let e = [d,d,d,d,d,d,d,d]; let f = [e,e,e,e,e,e,e,e]; toJSON([f,f,f,f,f,f,f,f])`: "expression_cost_exceeded",
}

func largePayload() map[string]any {
	items := make([]any, 10_000)
	for i := range items {
		items[i] = map[string]any{"id": i}
	}
	return map[string]any{"items": items, "text": strings.Repeat("a", 500_000), "pattern": "(a{1000}){1000}"}
}

// Expressions that cost too much are ended, beside others that are evaluated as
// if there were none.
func TestHostileExpressions(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), harness.ProfilingArgs()...)
	good := set(t, s.Client, map[string]any{"n": "${{ trigger.payload.n + 1 }}"})
	execute(t, s.Client, good, map[string]any{"n": 0})
	before := s.LiveHeap(t)

	var hostileRuns sync.WaitGroup
	for code, want := range costlyExpressions {
		workflow := set(t, s.Client, map[string]any{"x": "${{ " + code + " }}"})
		hostileRuns.Go(func() {
			if run := execute(t, s.Client, workflow, largePayload()); run.Status != "failed" || run.Error == nil || run.Error.Code != want {
				t.Errorf("%s\nended %s, %+v, want %s", code, run.Status, run.Error, want)
			}
		})
	}
	runUntil(t, s, good, hostileRuns.Wait, func(n int) string { return fmt.Sprintf("map[n:%d]", n+1) })
	harness.Eventually(t, "the memory of the runs is released", func() bool { return s.LiveHeap(t)-before <= maxHeapGrowth })
	s.Stop(t)
}

// Expressions that are too long, too deep or not part of the language are rejected when
// a workflow is saved. None of them reaches files, the network, the environment or the
// host.
func TestRejectedExpressions(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	var made struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "rejected"}).Decode(t, &made)
	for _, source := range []string{
		strings.Repeat("1+", 10_000) + "1",
		strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000),
		strings.Repeat("!", 3_000) + "true",
		strings.Repeat("map([1], ", 400) + "1" + strings.Repeat(")", 400),
		`"a" matches "(a{1000}){1000}"`,
		`"a" matches "` + strings.Repeat("a?", 2_000) + `"`,
		"env", "$env", "env.HOME", `env("HOME")`, "os.Getenv('HOME')", "process.env", `readFile("/etc/passwd")`, `http.get("http://127.0.0.1")`,
		`exec("id")`, `import("fs")`, `require("fs")`, "this", "self", "globalThis", "run.__proto__()", `trigger.constructor("x")`, "secrets",
		`now().Unix()`, `"x".Split("")`, "trigger.payload.String()", "x = 1", "func() {}", "() => 1",
	} {
		response := s.Expect(t, http.StatusUnprocessableEntity, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"steps": []any{
			map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": map[string]any{"x": "${{ " + source + " }}"}}},
		}})
		if len(response.Body) > 64<<10 {
			t.Errorf("the rejection of %.40s has %d bytes", source, len(response.Body))
		}
	}
	s.Stop(t)
}

// hostileTexts has payloads that must not be interpreted as anything but text.
var hostileTexts = []string{
	"${{ secrets.token }}", "${{ 1 + 1 }}", "}} ${{ vars.x", "{{ 1 }}", `"}, "extra": {"a": "b`, "'; DROP TABLE runs; --", "a/../../admin", "?a=b&c=d#e",
	"%2e%2e%2f", "a\r\nX-Injected: yes", "line\nline", "\x01\x1b[31m", "http://127.0.0.1/", "<script>alert(1)</script>", "\u202eabc", strings.Repeat("é", 1000),
}

// Text from a payload is never evaluated, and becomes neither a header line nor part of
// the structure of a URL, of JSON or of SQL.
func TestPayloadTextIsNotEvaluated(t *testing.T) {
	t.Parallel()
	type seen struct {
		path     string
		injected bool
	}
	var mu sync.Mutex
	var calls []seen
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, seen{r.URL.Path, r.Header.Get("X-Injected") != "" || r.URL.Query().Has("c")})
	}))
	t.Cleanup(target.Close)
	s := harness.Start(t, t.TempDir(), "--egress-allow=127.0.0.0/8")
	s.Expect(t, http.StatusCreated, "PUT", "/v1/secrets/token", map[string]any{"value": "very-secret-value"})
	workflow := flow.Define(t, s.Client,
		map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": map[string]any{
			"whole": "${{ trigger.payload.text }}", "part": "<${{ trigger.payload.text }}>", "json": "${{ fromJSON(toJSON({a: trigger.payload.text})).a }}",
		}}},
		map[string]any{"id": "again", "uses": "data.set", "with": map[string]any{"values": map[string]any{"x": "${{ steps.set.output.whole }}"}}},
		map[string]any{"id": "call", "uses": "http.request", "on_error": "continue", "with": map[string]any{
			"url": target.URL + "/a/${{ urlEncode(trigger.payload.text) }}", "query": map[string]any{"q": "${{ trigger.payload.text }}"},
			"method": "POST", "body": map[string]any{"t": "${{ trigger.payload.text }}"},
		}},
		map[string]any{"id": "header", "uses": "http.request", "on_error": "continue", "with": map[string]any{
			"url": target.URL, "headers": map[string]any{"X-Text": "${{ trigger.payload.text }}"},
		}})
	for _, text := range hostileTexts {
		run := execute(t, s.Client, workflow, map[string]any{"text": text})
		if run.Status != "succeeded" {
			t.Fatalf("%q: %s %+v", text, run.Status, run.Error)
		}
		for _, got := range []any{run.Steps[0].Output["whole"], run.Steps[0].Output["json"], run.Steps[1].Output["x"]} {
			if got != text {
				t.Errorf("%q became %q", text, got)
			}
		}
		if got := run.Steps[0].Output["part"]; got != "<"+text+">" {
			t.Errorf("%q became a part of %q", text, got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(calls) < len(hostileTexts) {
		t.Errorf("%d calls, want at least %d", len(calls), len(hostileTexts))
	}
	for _, c := range calls {
		if c.injected || c.path != "/" && !strings.HasPrefix(c.path, "/a/") {
			t.Errorf("unexpected call: %+v", c)
		}
	}
	s.Stop(t)
}

// The total output of templates is bounded, however it is combined.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	values := map[string]any{}
	for i := range 10 {
		values[fmt.Sprintf("v%d", i)] = "${{ trigger.payload.text }}"
	}
	together := set(t, s.Client, values)
	inOne := set(t, s.Client, map[string]any{"v": strings.Repeat("${{ trigger.payload.text }}", 10)})
	small := set(t, s.Client, map[string]any{"v": "${{ trigger.payload.text }}"})
	text := map[string]any{"text": strings.Repeat("x", 200_000)}
	for name, workflow := range map[string]string{"ten values": together, "ten in one": inOne} {
		run := execute(t, s.Client, workflow, text)
		if run.Status != "failed" || run.Error == nil || run.Error.Code != "input_too_large" && run.Error.Code != "output_too_large" && run.Error.Code != "expression_cost_exceeded" {
			t.Errorf("%s: %s %+v", name, run.Status, run.Error)
		}
	}
	if run := execute(t, s.Client, small, text); run.Status != "succeeded" {
		t.Errorf("%s %+v", run.Status, run.Error)
	}
	s.Stop(t)
}
