package expr_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestRandomValues(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`uuid() matches "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"`: `true`,
		`len(uniq(map(1..1000, uuid())))`:                             `1000`,
		`sort(uniq(map(1..200, random(-1, 2))))`:                      `[-1,0,1,2]`,
		`random(7, 7)`:                                                `7`,
		`type(random(-9223372036854775807 - 1, 9223372036854775807))`: `"int"`,
		`all(1..100, random(-9223372036854775807 - 1, -9223372036854775807) < -9223372036854775806)`: `true`,
		`sort(uniq(split(randomText(1000, "aéz"), "")))`:                                             `["a","z","é"]`,
		`len(randomText(1000))`: `1000`,
	})
	failTable(t, map[string]string{
		`random(2, 1)`:       "argument 2 of random must not be less than argument 1",
		`random(0.5, 1)`:     "argument 1 of random must be a whole number, got float",
		`randomText(0)`:      "argument 1 of randomText must be from 1 to 1000",
		`randomText(1001)`:   "argument 1 of randomText must be from 1 to 1000",
		`randomText(5, "")`:  "argument 2 of randomText must have 1 to 256 characters",
		`randomText(5, nil)`: "argument 2 of randomText must be a string, got nil; use ?? to give a default",
	})
}

// The values depend on the seed only, and stay the same in later versions: a run
// may continue after an upgrade.
func TestRandomValuesDependOnTheSeed(t *testing.T) {
	t.Parallel()
	v, err := expr.CompileValue(map[string]any{"a": "${{ uuid() }}", "b": "${{ uuid() }}"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed []byte) string {
		got, err := v.Eval(&expr.Env{Seed: seed}, expr.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		return asJSON(t, got)
	}
	seed := expr.DeriveSeed([]byte("secret"), "a", "with")
	if got, want := draw(seed), draw(seed); got != want {
		t.Errorf("%s, then %s", got, want)
	}
	for _, parts := range [][]string{{"a", "if"}, {"aw", "ith"}, {"b", "with"}} {
		if draw(seed) == draw(expr.DeriveSeed([]byte("secret"), parts...)) {
			t.Errorf("%v gives the same values", parts)
		}
	}
	if _, err := v.Eval(&expr.Env{}, expr.Budget{}); err == nil {
		t.Error("uuid() works without a seed")
	}
}
