package expr

import (
	"math"
	"strings"
	"time"
)

// binary is an operator that evaluates both operands.
type binary struct {
	at          int
	left, right node
	apply       func(m *evaluation, a, b any) (any, error)
}

func (n binary) eval(m *evaluation) (any, error) {
	a, err := n.left.eval(m)
	if err != nil {
		return nil, err
	}
	b, err := n.right.eval(m)
	if err != nil {
		return nil, err
	}
	v, err := n.apply(m, a, b)
	return v, locate(err, n.at)
}

// operator returns the implementation of a binary operator, nil if it is unknown.
func operator(name string) func(m *evaluation, a, b any) (any, error) {
	switch name {
	case "+":
		return add
	case "-":
		return subtract
	case "*":
		return multiply
	case "/":
		return divide
	case "%":
		return modulo
	case "**", "^":
		return power
	case "==":
		return func(m *evaluation, a, b any) (any, error) { return boxed(m.equal(a, b, 0)) }
	case "!=":
		return func(m *evaluation, a, b any) (any, error) {
			same, err := m.equal(a, b, 0)
			return !same, err
		}
	case "<":
		return ordering("<", func(c int) bool { return c < 0 })
	case "<=":
		return ordering("<=", func(c int) bool { return c <= 0 })
	case ">":
		return ordering(">", func(c int) bool { return c > 0 })
	case ">=":
		return ordering(">=", func(c int) bool { return c >= 0 })
	case "in":
		return in
	case "..":
		return rangeOperator
	}
	return textOperator(name)
}

func ordering(op string, holds func(int) bool) func(m *evaluation, a, b any) (any, error) {
	return func(m *evaluation, a, b any) (any, error) {
		c, err := m.compare(op, a, b)
		return err == nil && holds(c), err
	}
}

func add(m *evaluation, a, b any) (any, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			if err := m.growText(len(x) + len(y)); err != nil {
				return nil, err
			}
			return x + y, nil
		}
	}
	return arithmetic("+", a, b, addInts, func(a, b float64) float64 { return a + b })
}

// subtract returns the seconds between two times.
func subtract(_ *evaluation, a, b any) (any, error) {
	if _, ok := a.(time.Time); ok {
		if x, y, ok := times(a, b); ok {
			return compact(x.Sub(y).Seconds()), nil
		}
	}
	return arithmetic("-", a, b, subInts, func(a, b float64) float64 { return a - b })
}

func multiply(_ *evaluation, a, b any) (any, error) {
	return arithmetic("*", a, b, mulInts, func(a, b float64) float64 { return a * b })
}

func noInts(int, int) (int, bool) { return 0, false }

func divide(_ *evaluation, a, b any) (any, error) {
	if f, ok := float(b); ok && f == 0 {
		return nil, failf("division by zero")
	}
	return arithmetic("/", a, b, noInts, func(a, b float64) float64 { return a / b })
}

func modulo(_ *evaluation, a, b any) (any, error) {
	x, okA := whole(a)
	y, okB := whole(b)
	switch {
	case !okA || !okB:
		return nil, operands("%", a, b)
	case y == 0:
		return nil, failf("division by zero")
	case y == -1:
		return 0, nil // the one division whose quotient can overflow
	}
	return x % y, nil
}

func power(_ *evaluation, a, b any) (any, error) {
	return arithmetic("**", a, b, noInts, math.Pow)
}

// rangeOperator is from..to.
func rangeOperator(m *evaluation, a, b any) (any, error) {
	from, okA := whole(a)
	to, okB := whole(b)
	if !okA || !okB {
		return nil, operands("..", a, b)
	}
	if to < from {
		return []any{}, nil
	}
	size := uint64(to) - uint64(from) // right also where an int would overflow
	if size >= maxRange {
		return nil, costf("a range may have at most %d elements", maxRange)
	}
	n := int(size) + 1
	if err := m.grow(weightList + n*(weightElement+weightBoxed/2)); err != nil {
		return nil, err
	}
	if err := m.spend(n); err != nil {
		return nil, err
	}
	out := make([]any, n)
	for i := range out {
		out[i] = from + i
	}
	return out, nil
}

// in looks for a value in an array or for a key in an object.
func in(m *evaluation, a, b any) (any, error) {
	switch b := b.(type) {
	case nil:
		return false, nil
	case []any:
		for _, e := range b {
			same, err := m.equalParts(a, e, 0)
			if err != nil || same {
				return same, err
			}
		}
		return false, nil
	case map[string]any:
		if a == nil {
			return false, nil
		}
		k, err := m.key(a)
		if err != nil {
			return nil, err
		}
		_, ok := b[k]
		return ok, m.read(len(k))
	case string:
		return nil, failf("in needs an array or a map; for text use contains")
	}
	return nil, failf("in needs an array or a map, got %s", got(b))
}

// textOperator is an operator on two strings. Nil on either side is false.
func textOperator(name string) func(m *evaluation, a, b any) (any, error) {
	var holds func(m *evaluation, s, t string) (bool, error)
	switch name {
	case "contains":
		holds = func(m *evaluation, s, t string) (bool, error) {
			i, err := m.index(s, t)
			return i >= 0, err
		}
	case "startsWith":
		holds = func(m *evaluation, s, t string) (bool, error) { return strings.HasPrefix(s, t), m.read(len(t)) }
	case "endsWith":
		holds = func(m *evaluation, s, t string) (bool, error) { return strings.HasSuffix(s, t), m.read(len(t)) }
	case "matches":
		holds = matches
	default:
		return nil
	}
	return func(m *evaluation, a, b any) (any, error) {
		if a == nil || b == nil {
			return false, nil
		}
		s, okA := a.(string)
		t, okB := b.(string)
		if !okA || !okB {
			return nil, operands(name, a, b)
		}
		return boxed(holds(m, s, t))
	}
}

func matches(m *evaluation, s, pattern string) (bool, error) {
	r, err := m.pattern(pattern)
	if err != nil {
		return false, err
	}
	return r.match(m, s)
}

// matchesConst is matches with a pattern known when the expression was compiled.
type matchesConst struct {
	at    int
	of    node
	regex *regex
}

func (n matchesConst) eval(m *evaluation) (any, error) {
	v, err := n.of.eval(m)
	if err != nil || v == nil {
		return false, err
	}
	s, ok := v.(string)
	if !ok {
		return nil, locate(operands("matches", v, ""), n.at)
	}
	ok, err = n.regex.match(m, s)
	return ok, locate(err, n.at)
}
