package expr

import (
	"slices"
	"strings"
)

// choice returns argument i, which must be one of the names, or the first name if
// there is no such argument.
func (a args) choice(i int, names ...string) (string, error) {
	if !a.has(i) {
		return names[0], nil
	}
	s, err := a.text(i)
	if err != nil {
		return "", err
	}
	if !slices.Contains(names, s) {
		return "", failf("argument %d of %s must be %s", i+1, a.name, alternatives(names))
	}
	return s, nil
}

// alternatives returns "a", "b" or "c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return `"` + names[0] + `"`
	}
	return `"` + strings.Join(names[:last], `", "`) + `" or "` + names[last] + `"`
}

// options are the optional settings of a call, given as a map.
type options struct {
	of     string // the argument, for messages
	values map[string]any
}

// options returns argument i as options with these names. Without the argument,
// no option is set.
func (a args) options(m *evaluation, i int, names ...string) (options, error) {
	if !a.has(i) {
		return options{}, nil
	}
	given, err := a.object(i)
	if err != nil {
		return options{}, err
	}
	out := options{of: "argument " + string('1'+rune(i)) + " of " + a.name, values: make(map[string]any, len(names))}
	if len(given) > len(names) {
		return options{}, out.unknown(names)
	}
	for name, v := range given {
		if !slices.Contains(names, name) {
			return options{}, out.unknown(names)
		}
		if out.values[name], err = m.normalize(v); err != nil {
			return options{}, err
		}
	}
	return out, nil
}

func (o options) unknown(names []string) error {
	return failf("%s has an unknown option; use %s", o.of, alternatives(names))
}

func (o options) wrong(name, want string) error {
	return failf("%s: %s must be %s, got %s", o.of, name, want, kind(o.values[name]))
}

// text returns an option that is a string. Nil means the default.
func (o options) text(name, byDefault string) (string, error) {
	switch v := o.values[name].(type) {
	case nil:
		return byDefault, nil
	case string:
		return v, nil
	}
	return "", o.wrong(name, "a string")
}

// choice returns an option that is one of the names, by default the first.
func (o options) choice(name string, names ...string) (string, error) {
	s, err := o.text(name, names[0])
	if err == nil && !slices.Contains(names, s) {
		err = failf("%s: %s must be %s", o.of, name, alternatives(names))
	}
	return s, err
}

func (o options) flag(name string, byDefault bool) (bool, error) {
	switch v := o.values[name].(type) {
	case nil:
		return byDefault, nil
	case bool:
		return v, nil
	}
	return false, o.wrong(name, "true or false")
}

func (o options) object(name string) (map[string]any, error) {
	switch v := o.values[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	}
	return nil, o.wrong(name, "a map")
}

func (o options) list(name string) ([]any, error) {
	items, err := elements(o.values[name])
	if err != nil {
		return nil, o.wrong(name, "an array")
	}
	return items, nil
}
