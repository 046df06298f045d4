package expr

import "time"

// args are the arguments of one call. They are valid only during the call.
type args struct {
	name   string
	values []any
	// compiled is argument 2 if it is the literal of a regular expression.
	compiled *regex
	// selector is argument 2 if it is the literal of a CSS selector.
	selector *selector
}

func (a args) wrong(i int, want string) error {
	hint := ""
	if a.values[i] == nil {
		hint = "; use ?? to give a default"
	}
	return failf("argument %d of %s must be %s, got %s%s", i+1, a.name, want, got(a.values[i]), hint)
}

func (a args) has(i int) bool { return i < len(a.values) }

func (a args) text(i int) (string, error) {
	if s, ok := a.values[i].(string); ok {
		return s, nil
	}
	return "", a.wrong(i, "a string")
}

// texts returns the first n arguments, which must be strings.
func (a args) texts(n int) ([3]string, error) {
	var out [3]string
	for i := range n {
		s, err := a.text(i)
		if err != nil {
			return out, err
		}
		out[i] = s
	}
	return out, nil
}

func (a args) number() (float64, error) {
	if f, ok := float(a.values[0]); ok {
		return f, nil
	}
	return 0, a.wrong(0, "a number")
}

func (a args) whole(i int) (int, error) {
	if n, ok := whole(a.values[i]); ok {
		return n, nil
	}
	return 0, a.wrong(i, "a whole number")
}

func (a args) list(i int) ([]any, error) {
	items, err := elements(a.values[i])
	if err != nil {
		return nil, a.wrong(i, "an array")
	}
	return items, nil
}

// object accepts nil as an empty object, as elements does for a list.
func (a args) object(i int) (map[string]any, error) {
	switch v := a.values[i].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	}
	return nil, a.wrong(i, "a map")
}

func (a args) time(i int) (time.Time, error) {
	if t, ok := toTime(a.values[i]); ok {
		return t, nil
	}
	if _, ok := a.values[i].(string); ok {
		return time.Time{}, failf("argument %d of %s is not a valid date or time", i+1, a.name)
	}
	return time.Time{}, a.wrong(i, "a time, or a string or number that is one")
}
