package catalog_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/openapi"
)

// TestExamples runs the examples of every action, so that the documentation
// stays correct.
func TestExamples(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(catalog.Deps{HTTP: fakeShop{}, Scripts: scripts(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names() {
		entry, _ := c.Find(name)
		if entry.Spec.Title == "" || entry.Spec.Summary == "" || len(entry.Spec.Keywords) == 0 || len(entry.Spec.Examples) == 0 {
			t.Errorf("%s is not documented", name)
		}
		for _, example := range entry.Spec.Examples {
			t.Run(name+"/"+example.Title, func(t *testing.T) {
				t.Parallel()
				runExample(t, c, entry, example)
			})
		}
	}
}

// TestCodesAreInTheContract checks that the OpenAPI document lists the error codes
// of all actions.
func TestCodesAreInTheContract(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(catalog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var contract struct {
		Codes struct {
			InRuns map[string]any `json:"in_runs"`
		} `json:"x-error-codes"`
	}
	if err := json.Unmarshal(text, &contract); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names() {
		entry, _ := c.Find(name)
		seen := map[string]bool{}
		for _, code := range entry.Spec.Codes {
			if contract.Codes.InRuns[code.Name] == nil || code.Meaning == "" || seen[code.Name] {
				t.Errorf("%s: %q is missing from the contract, has no meaning or is listed twice", name, code.Name)
			}
			seen[code.Name] = true
		}
	}
}

// TestMain runs scripts if the test binary is started as the sandbox process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "sandbox" {
		_ = sandbox.Serve(os.Stdin, os.Stdout, 64<<20)
		return
	}
	m.Run()
}

func scripts(t *testing.T) *sandbox.Pool {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pool := sandbox.New(sandbox.Config{Command: []string{program, "sandbox"}, Size: 2})
	t.Cleanup(pool.Close)
	return pool
}

// fakeShop responds to requests as in the examples.
type fakeShop struct{}

func (fakeShop) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	address := r.URL
	if _, variables, ok := strings.Cut(string(r.Body), `"variables":`); ok {
		address += " " + variables
	} else if r.Body != nil {
		address += " without variables"
	}
	body, ok := map[string]string{
		`https://shop.example/graphql {"id":"42"}}`:      `{"data": {"order": {"total": 99.5}}}`,
		`https://shop.example/graphql without variables`: `{"data": {"orders": {"nodes": [{"id": 1}, {"id": 2}], "pageInfo": {"hasNextPage": true, "endCursor": "b"}}}}`,
		`https://shop.example/graphql {"after":"b"}}`:    `{"data": {"orders": {"nodes": [{"id": 3}], "pageInfo": {"hasNextPage": false, "endCursor": "c"}}}}`,

		"https://shop.example/orders/42?full=true":     `{"id": 42, "total": 99.5}`,
		"https://shop.example/orders?limit=2":          `{"orders": [{"id": 1}, {"id": 2}], "next_cursor": "b"}`,
		"https://shop.example/orders?cursor=b&limit=2": `{"orders": [{"id": 3}], "next_cursor": null}`,
	}[address]
	if !ok {
		return nil, &egress.Error{Code: egress.ConnectionFailed, Message: r.URL}
	}
	return &egress.Response{
		Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body),
	}, nil
}

func (fakeShop) Stream(_ context.Context, r egress.Request) (*egress.Stream, error) {
	return nil, &egress.Error{Code: egress.ConnectionFailed, Message: r.URL}
}

func runExample(t *testing.T, c *action.Catalog, entry action.Entry, example action.Example) {
	value, err := expr.FromJSON([]byte(example.With))
	if err != nil {
		t.Fatal(err)
	}
	with, _ := value.(map[string]any)
	want, err := expr.FromJSON([]byte(example.Output))
	if err != nil {
		t.Fatal(err)
	}
	if problems := c.Check(entry.Spec.Name, with, func(string) bool { return false }); len(problems) > 0 {
		t.Fatalf("the input is not valid: %+v", problems)
	}
	if entry.Spec.SlowCheck != nil {
		if problems, err := entry.Spec.SlowCheck(t.Context(), "ws_1", with); err != nil || len(problems) > 0 {
			t.Fatalf("the input is not valid: %+v, %v", problems, err)
		}
	}
	if usesData(entry.Spec.Name) {
		d := newData(t)
		output, err := d.call(t, entry.Spec.Name, d.request(with))
		if err != nil {
			t.Fatal(err)
		}
		got, err := expr.FromJSON([]byte(shown(t, output)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(diff, err)
		}
		return
	}
	evaluateConditions(t, with)
	req := action.Request{Input: with, Now: time.Now(), Log: func(action.Level, string) {}}
	if example.Answer != "" {
		answer, err := expr.FromJSON([]byte(example.Answer))
		if err != nil {
			t.Fatal(err)
		}
		req.Answer, _ = answer.(map[string]any)
	}
	result, err := entry.Action.Run(t.Context(), req)
	for err == nil && result.Checkpoint != nil {
		if err = req.Resume(*result.Checkpoint); err == nil {
			result, err = entry.Action.Run(t.Context(), req)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, any(action.Object(result.Output))); diff != "" {
		t.Error(diff)
	}
}

// evaluateConditions replaces the conditions of a switch by their results, as the engine does.
func evaluateConditions(t *testing.T, with map[string]any) {
	t.Helper()
	paths, _ := with["paths"].([]any)
	for _, each := range paths {
		path, _ := each.(map[string]any)
		source, ok := path["when"].(string)
		if !ok {
			continue
		}
		condition, err := expr.CompileBare(source)
		if err != nil {
			t.Fatal(err)
		}
		env := &expr.Env{Trigger: expr.Trigger{Payload: map[string]any{"total": 50}}}
		if path["when"], err = condition.EvalBool(env, expr.Budget{}); err != nil {
			t.Fatal(err)
		}
	}
}
