package expr_test

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

func benchEnv() *expr.Env {
	items := make([]any, 100)
	for i := range items {
		items[i] = map[string]any{"id": i, "price": 9.5, "sku": fmt.Sprintf("sku-%d", i)}
	}
	return &expr.Env{
		Trigger: expr.Trigger{Payload: map[string]any{"x": "value", "items": items}},
		Steps:   map[string]expr.Step{"get": {Output: map[string]any{"body": map[string]any{"total": 120}}, Status: "succeeded"}},
	}
}

func benchProgram(b *testing.B, source string) {
	b.Helper()
	p, err := expr.Compile(source)
	if err != nil {
		b.Fatal(err)
	}
	env := benchEnv()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Eval(env, expr.Budget{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkField(b *testing.B)     { benchProgram(b, `trigger.payload.x`) }
func BenchmarkCondition(b *testing.B) { benchProgram(b, `steps.get.output.body.total > 100`) }
func BenchmarkFilter100(b *testing.B) {
	benchProgram(b, `len(filter(trigger.payload.items, .price > 3 && .id % 2 == 0))`)
}

func BenchmarkTemplate(b *testing.B) {
	t, err := expr.CompileTemplate(`https://shop.example/orders/${{ trigger.payload.x }}?total=${{ steps.get.output.body.total }}`)
	if err != nil {
		b.Fatal(err)
	}
	env := benchEnv()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Eval(env, expr.Budget{}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchValue(b *testing.B, v any) {
	b.Helper()
	compiled, err := expr.CompileValue(v, nil)
	if err != nil {
		b.Fatal(err)
	}
	env := benchEnv()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compiled.Eval(env, expr.Budget{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValue(b *testing.B) {
	benchValue(b, map[string]any{"id": "${{ trigger.payload.x }}", "total": "${{ steps.get.output.body.total }}", "note": "fixed"})
}

func BenchmarkValueConstant(b *testing.B) {
	benchValue(b, map[string]any{"url": "https://shop.example", "headers": map[string]any{"accept": "application/json"}})
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := expr.Compile(`steps.get.output.body.total > 100 && trigger.payload.x != nil`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCacheHit(b *testing.B) {
	c := expr.NewCache(10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.CompileTemplate(`Order ${{ trigger.payload.x }}`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromJSON(b *testing.B) {
	data := []byte(`{"id":12345678901,"items":[{"sku":"a","price":9.5},{"sku":"b","price":1}],"email":"a@example.com"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := expr.FromJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}
