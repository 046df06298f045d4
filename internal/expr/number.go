package expr

import (
	"cmp"
	"encoding/json"
	"math"
	"math/bits"
)

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// finite rejects numbers that JSON cannot represent.
func finite(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, failf("the result is not a finite number")
	}
	return f, nil
}

// whole returns a number without a fraction as an int.
func whole(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		if i := int(v); inInt(v) && float64(i) == v {
			return i, true
		}
	}
	return 0, false
}

// inInt reports whether f, truncated to a whole number, fits an int.
func inInt(f float64) bool {
	return f >= math.MinInt64 && f < math.MaxInt64
}

// compact turns a float64 that is a whole number into an int.
func compact(f float64) any {
	if i, ok := whole(f); ok {
		return i
	}
	return f
}

// arithmetic applies the operator to two numbers: as ints if both are ints and
// the result fits, as float64 otherwise.
func arithmetic(op string, a, b any, ints func(a, b int) (int, bool), floats func(a, b float64) float64) (any, error) {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok {
			if r, ok := ints(x, y); ok {
				return r, nil
			}
		}
	}
	x, okA := float(a)
	y, okB := float(b)
	if !okA || !okB {
		return nil, operands(op, a, b)
	}
	return finite(floats(x, y))
}

func operands(op string, a, b any) error {
	hint := ""
	switch {
	case a == nil || b == nil:
		hint = "; use ?? to give a default"
	case op == "+" && (kind(a) == "string" || kind(b) == "string"):
		hint = "; use string() to join text"
	}
	return failf("cannot use %s on %s and %s%s", op, kind(a), kind(b), hint)
}

func addInts(a, b int) (int, bool) {
	r := a + b
	return r, (r > a) == (b > 0)
}

func subInts(a, b int) (int, bool) {
	r := a - b
	return r, (r < a) == (b > 0)
}

func mulInts(a, b int) (int, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	return a * b, hi == 0 && lo <= math.MaxInt64
}

func magnitude(a int) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// compareNumbers compares two numbers exactly, even if an int has more digits
// than a float64 can represent.
func compareNumbers(a, b any) (int, bool) {
	x, okA := whole(a)
	y, okB := whole(b)
	if okA && okB {
		return cmp.Compare(x, y), true
	}
	f, okA := float(a)
	g, okB := float(b)
	if !okA || !okB {
		return 0, false
	}
	return cmp.Compare(f, g), true
}
