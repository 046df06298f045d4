package decimal_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/decimal"
	"github.com/stepmill/stepmill/test/lane"
)

func TestString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e999999999999999999999": "0", "1.0": "1", "100": "100", "-12.50": "-12.5", "1e2": "100", "1E-2": "0.01",
		"9007199254740993": "9007199254740993", "0.1": "0.1", "123456789012345678901": "123456789012345678901", "1e21": "1e+21", "1e-7": "1e-7", "1.25e300": "1.25e+300",
	} {
		if d, err := decimal.Parse(text); err != nil || d.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, d, err, want)
		}
	}
	for text, reason := range map[string]string{
		"": "is not a number", "-": "is not a number", "+1": "is not a number", "01": "is not a number", "1.": "is not a number", ".5": "is not a number", "1e": "is not a number", "1e1.5": "is not a number",
		"NaN": "is not a number", "0x1": "is not a number", "1_0": "is not a number",
		strings.Repeat("1", 65): "has more than 64 significant digits", "1e400": "is beyond 10", "1e-402": "is beyond 10", "1e99999999999999999999": "is beyond 10",
	} {
		if d, err := decimal.Parse(text); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %s, %v", text, d, err)
		}
	}
}

func numbers() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,10})?(e[+-]?[0-9]{1,2})?`), rapid.SampledFrom([]string{"0", "1", "-1", "10", "0.1", "-0.1", "9", "99"}))
}

// TestAgainstRationals compares order and sum with those of math/big.
func TestAgainstRationals(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		textA, textB := numbers().Draw(rt, "a"), numbers().Draw(rt, "b")
		a, errA := decimal.Parse(textA)
		b, errB := decimal.Parse(textB)
		if errA != nil || errB != nil {
			rt.Fatal(errA, errB)
		}
		ratA, _ := new(big.Rat).SetString(textA)
		ratB, _ := new(big.Rat).SetString(textB)
		if got, want := strings.Compare(a.Sortable(), b.Sortable()), ratA.Cmp(ratB); got != want {
			rt.Fatalf("%s and %s compare as %d, want %d", textA, textB, got, want)
		}
		if back, ok := new(big.Rat).SetString(a.String()); !ok || back.Cmp(ratA) != 0 || !json.Valid([]byte(a.String())) {
			rt.Fatalf("%s is written as %s", textA, a)
		}
		if a.IsInteger() != ratA.IsInt() {
			rt.Fatalf("%s: IsInteger is %t", textA, a.IsInteger())
		}
		want := new(big.Rat).Add(ratA, ratB)
		sum, err := a.Add(b)
		if err != nil {
			return // it has too many digits
		}
		if got, _ := new(big.Rat).SetString(sum.String()); got.Cmp(want) != 0 {
			rt.Fatalf("%s + %s = %s", textA, textB, sum)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0", "-1.5e10", "1e400", "9007199254740993", "..", "1e-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := decimal.Parse(text)
		if err != nil {
			return
		}
		if again, err := decimal.Parse(d.String()); err != nil || again != d {
			t.Fatalf("%s is written as %s, which is read as %s, %v", text, d, again, err)
		}
	})
}
