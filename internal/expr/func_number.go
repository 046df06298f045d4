package expr

import (
	"math"
	"strconv"
	"strings"
)

func numberFunctions() []function {
	return []function{
		fn("abs", "abs(number) number", "The absolute value of the number.", 1, 1, abs,
			`abs(-3)`, `3`),
		fn("ceil", "ceil(number) number", "The number rounded up to a whole number.", 1, 1, rounding(math.Ceil),
			`ceil(1.2)`, `2`),
		fn("floor", "floor(number) number", "The number rounded down to a whole number.", 1, 1, rounding(math.Floor),
			`floor(1.8)`, `1`),
		fn("round", "round(number[, digits]) number", "The number rounded to a whole number, or to a number of decimal places; halves are rounded away from zero.", 1, 2, round,
			`round(2.5)`, `3`, `round(3.14159, 2)`, `3.14`),
		fn("min", "min(number or list, …) number", "The smallest of the numbers, nil if there is none.", 1, anyNumber, smallest,
			`min(3, 1, 2)`, `1`, `min([])`, `null`),
		fn("max", "max(number or list, …) number", "The largest of the numbers, nil if there is none.", 1, anyNumber, largest,
			`max([3, 1], 2)`, `3`),
		fn("mean", "mean(list) number", "The average of the numbers, nil if there is none.", 1, 1, mean,
			`mean([1, 2, 6])`, `3`),
		fn("int", "int(value) int", "A string or number as a whole number; a fraction is dropped.", 1, 1, toInt,
			`int("42")`, `42`, `int(3.9)`, `3`),
		fn("float", "float(value) float", "A string or number as a number.", 1, 1, toFloat,
			`float("1.5")`, `1.5`),
	}
}

func abs(m *evaluation, a args) (any, error) {
	f, err := a.number()
	if err != nil || f >= 0 {
		return a.values[0], err
	}
	return subtract(m, 0, a.values[0])
}

func rounding(to func(float64) float64) func(*evaluation, args) (any, error) {
	return func(_ *evaluation, a args) (any, error) {
		if i, ok := a.values[0].(int); ok {
			return i, nil
		}
		f, err := a.number()
		return compact(to(f)), err
	}
}

func round(m *evaluation, a args) (any, error) {
	if !a.has(1) {
		return rounding(math.Round)(m, a)
	}
	f, err := a.number()
	if err != nil {
		return nil, err
	}
	digits, err := a.whole(1)
	if err != nil {
		return nil, err
	}
	if digits < 0 || digits > 15 {
		return nil, failf("argument 2 of round must be from 0 to 15")
	}
	scale := math.Pow10(digits)
	scaled := math.Round(f * scale)
	if math.Abs(scaled) >= 1<<53 {
		return a.values[0], nil // no digits to round
	}
	return compact(scaled / scale), nil
}

func smallest(m *evaluation, a args) (any, error) { return extreme(m, a, -1) }

func largest(m *evaluation, a args) (any, error) { return extreme(m, a, 1) }

// extreme returns the largest number if sign is positive, else the smallest.
func extreme(m *evaluation, a args, sign int) (any, error) {
	var best any
	err := a.eachNumber(m, func(v any) error {
		c, _ := compareNumbers(v, best)
		if best == nil || c == sign {
			best = v
		}
		return nil
	})
	return best, err
}

func mean(m *evaluation, a args) (any, error) {
	total, n := 0.0, 0
	err := a.eachNumber(m, func(v any) error {
		f, _ := float(v)
		total += f
		n++
		return nil
	})
	if err != nil || n == 0 {
		return nil, err
	}
	v, err := finite(total / float64(n))
	if err != nil {
		return nil, err
	}
	return compact(v.(float64)), nil
}

// eachNumber visits the arguments that are numbers and those in lists.
func (a args) eachNumber(m *evaluation, visit func(any) error) error {
	for i, v := range a.values {
		items := []any{v}
		if l, ok := v.([]any); ok || v == nil {
			items = l
		}
		if err := m.spend(len(items)); err != nil {
			return err
		}
		for _, item := range items {
			n, err := m.normalize(item)
			if err != nil {
				return err
			}
			if _, ok := float(n); !ok {
				return failf("argument %d of %s must be numbers, got %s", i+1, a.name, kind(n))
			}
			if err := visit(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func toInt(m *evaluation, a args) (any, error) {
	switch v := a.values[0].(type) {
	case int:
		return v, nil
	case float64:
		if !inInt(v) {
			return nil, failf("the number is too large for int")
		}
		return int(v), nil
	case string:
		if err := m.read(len(v)); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil {
			return nil, failf("the string is not a whole number that fits")
		}
		return i, nil
	}
	return nil, a.wrong(0, "a number or a string")
}

func toFloat(m *evaluation, a args) (any, error) {
	if v, ok := a.values[0].(string); ok {
		if err := m.spend(len(v)/4 + 1); err != nil {
			return nil, err
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return nil, failf("the string is not a number")
		}
		return finite(f)
	}
	f, err := a.number()
	if err != nil {
		return nil, a.wrong(0, "a number or a string")
	}
	return f, nil
}
