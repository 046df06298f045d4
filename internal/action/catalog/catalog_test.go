package catalog_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/sandbox"
)

// TestExamples runs the examples of every action that can run without the
// outside world: documentation that is not true does not pass.
func TestExamples(t *testing.T) {
	t.Parallel()
	c, err := catalog.New(shop{}, scripts(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names() {
		entry, _ := c.Find(name)
		if entry.Spec.Title == "" || entry.Spec.Summary == "" || len(entry.Spec.Examples) == 0 {
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

// TestMain lets the test binary be the child that runs scripts.
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

// shop answers every call the way the examples say.
type shop struct{}

func (shop) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	if r.URL != "https://shop.example/orders/42?full=true" {
		return nil, &egress.Error{Code: egress.ConnectionFailed, Message: r.URL}
	}
	return &egress.Response{
		Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"id": 42, "total": 99.5}`),
	}, nil
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
		t.Fatalf("the input does not fit: %+v", problems)
	}
	result, err := entry.Action.Run(t.Context(), action.Request{Input: with, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, result.Output); diff != "" {
		t.Error(diff)
	}
}
