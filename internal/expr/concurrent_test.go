package expr_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

// A compiled value can be evaluated concurrently, each time with its own
// environment and budget.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`let n = trigger.payload.n; sum(map(1..100, # * n), #) + len(filter(["a1", "b2"], # matches ("^a" + string(n))))`)
	if err != nil {
		t.Fatal(err)
	}
	v, err := expr.CompileValue(map[string]any{"n": "${{ trigger.payload.n }}", "t": "n is ${{ trigger.payload.n }}", "c": []any{"fixed"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			env := &expr.Env{Trigger: expr.Trigger{Payload: map[string]any{"n": n}}}
			for range 50 {
				want := 5050 * n
				if n == 1 {
					want++
				}
				if got, err := p.Eval(env, expr.Budget{}); err != nil || got != want {
					t.Errorf("%d: %v, %v", n, got, err)
				}
				if _, err := p.Eval(env, expr.Budget{Steps: 50}); err == nil {
					t.Error("50 steps were enough")
				}
				got, err := v.Eval(env, expr.Budget{})
				if text := asJSON(t, got); err != nil || text != fmt.Sprintf(`{"c":["fixed"],"n":%d,"t":"n is %d"}`, n, n) {
					t.Errorf("%d: %s, %v", n, text, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := expr.NewCache(2)
	a1, err := c.CompileTemplate("a ${{ 1 }}")
	if err != nil {
		t.Fatal(err)
	}
	if a2, _ := c.CompileTemplate("a ${{ 1 }}"); a1 != a2 {
		t.Error("compiled twice")
	}
	// The same text compiled as an expression is a separate entry.
	if _, err := c.CompileBare("1"); err != nil {
		t.Fatal(err)
	}
	if v, err := c.CompileTemplate("1"); err != nil || v.Source() != "1" {
		t.Fatal(err)
	}
	if c.Len() != 2 {
		t.Errorf("%d entries", c.Len())
	}
	if a2, _ := c.CompileTemplate("a ${{ 1 }}"); a1 == a2 {
		t.Error("the least recently used entry was kept")
	}
	if _, err := c.CompileBare("banana"); err == nil || c.Len() != 2 {
		t.Errorf("%v, %d entries", err, c.Len())
	}
}

func TestCacheConcurrentUse(t *testing.T) {
	t.Parallel()
	c := expr.NewCache(8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				p, err := c.CompileBare(fmt.Sprintf("%d + 1", i%20))
				if err != nil {
					t.Error(err)
					continue
				}
				if v, err := p.Eval(nil, expr.Budget{}); err != nil || v != i%20+1 {
					t.Errorf("%v, %v", v, err)
				}
			}
		})
	}
	wg.Wait()
	if c.Len() > 8 {
		t.Errorf("%d entries", c.Len())
	}
}
