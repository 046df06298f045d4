package expr

import (
	"cmp"
	"encoding/json"
	"time"
)

// compare compares two values of one kind: numbers, strings or times. A string
// that is compared with a time is parsed as a time.
func (m *evaluation) compare(op string, a, b any) (int, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y), m.read(min(len(x), len(y)))
		}
	}
	if c, ok := compareNumbers(a, b); ok {
		return c, nil
	}
	if x, y, ok := times(a, b); ok {
		return x.Compare(y), m.spend(timeSteps)
	}
	return 0, operands(op, a, b)
}

// times returns a and b as times if one of them is a time and the other can be
// parsed as one.
func times(a, b any) (x, y time.Time, ok bool) {
	_, isA := a.(time.Time)
	_, isB := b.(time.Time)
	if !isA && !isB {
		return x, y, false
	}
	x, okA := toTime(a)
	y, okB := toTime(b)
	return x, y, okA && okB
}

// equal reports whether values are deeply equal. Values of different kinds differ.
func (m *evaluation) equal(a, b any, depth int) (bool, error) {
	if err := m.spend(1); err != nil {
		return false, err
	}
	if depth > maxNesting {
		return false, costf("the values are nested too deeply to compare")
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	case string:
		if y, ok := b.(string); ok {
			return m.equalText(x, y)
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return m.equalLists(x, y, depth)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return m.equalObjects(x, y, depth)
	case *File:
		y, ok := b.(*File)
		return ok && x.ID == y.ID, nil
	}
	return m.equalScalars(a, b)
}

func (m *evaluation) equalScalars(a, b any) (bool, error) {
	if x, ok := a.(json.Number); ok && x == b {
		return true, nil // however large, the digits are the same
	}
	if c, ok := compareNumbers(a, b); ok {
		return c == 0, nil
	}
	if x, y, ok := times(a, b); ok {
		return x.Equal(y), m.spend(timeSteps)
	}
	return false, nil
}

func (m *evaluation) equalText(a, b string) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	return a == b, m.read(len(a))
}

func (m *evaluation) equalLists(a, b []any, depth int) (bool, error) {
	for i := range a {
		same, err := m.equalParts(a[i], b[i], depth)
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (m *evaluation) equalObjects(a, b map[string]any, depth int) (bool, error) {
	for k, x := range a {
		y, ok := b[k]
		if !ok {
			return false, nil
		}
		same, err := m.equalParts(x, y, depth)
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (m *evaluation) equalParts(a, b any, depth int) (bool, error) {
	x, err := m.normalize(a)
	if err != nil {
		return false, err
	}
	y, err := m.normalize(b)
	if err != nil {
		return false, err
	}
	return m.equal(x, y, depth+1)
}
