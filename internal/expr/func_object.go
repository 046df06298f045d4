package expr

import (
	"time"
	"unicode/utf8"
)

func objectFunctions() []function {
	return []function{
		fn("len", "len(value) int", "The number of characters of a string, elements of a list or keys of a map; 0 for nil.", 1, 1, length,
			`len("größe")`, `5`, `len([1, 2])`, `2`),
		fn("keys", "keys(map) array", "The keys, sorted.", 1, 1, keys,
			`keys({"b": 1, "a": 2})`, `["a","b"]`),
		fn("values", "values(map) array", "The values, sorted by key.", 1, 1, values,
			`values({"b": 1, "a": 2})`, `[2,1]`),
		fn("toPairs", "toPairs(map) array", "A list of [key, value], sorted by key.", 1, 1, toPairs,
			`toPairs({"b": 1, "a": 2})`, `[["a",2],["b",1]]`),
		fn("fromPairs", "fromPairs(list) map", "A map from a list of [key, value]; a later key replaces an earlier one.", 1, 1, fromPairs,
			`fromPairs([["a", 1], ["b", 2]])`, `{"a":1,"b":2}`),
		fn("get", "get(value, key) any", "The member of a map or list, like value[key].", 2, 2, get,
			`get({"a": 1}, "a")`, `1`, `get([1, 2], 5)`, `null`),
	}
}

func length(m *evaluation, a args) (any, error) {
	switch v := a.values[0].(type) {
	case nil:
		return 0, nil
	case string:
		return utf8.RuneCountInString(v), m.read(len(v))
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	return nil, a.wrong(0, "a string, an array or a map")
}

// each calls a function for each member of the object in argument 0, in key
// order, and returns the results.
func (a args) each(m *evaluation, weight int, collect func(key string, value any) any) (any, error) {
	o, err := a.object(0)
	if err != nil {
		return nil, err
	}
	names, err := m.keys(o)
	if err != nil {
		return nil, err
	}
	if err := m.grow(len(names) * weight); err != nil {
		return nil, err
	}
	out, err := m.newList(len(names))
	for i := range out {
		out[i] = collect(names[i], o[names[i]])
	}
	return out, err
}

func keys(m *evaluation, a args) (any, error) {
	return a.each(m, weightBoxed, func(k string, _ any) any { return k })
}

func values(m *evaluation, a args) (any, error) {
	return a.each(m, 0, func(_ string, v any) any { return v })
}

func toPairs(m *evaluation, a args) (any, error) {
	weight := weightBoxed + weightList + 2*weightElement
	return a.each(m, weight, func(k string, v any) any { return []any{k, v} })
}

func fromPairs(m *evaluation, a args) (any, error) {
	pairs, err := a.list(0)
	if err != nil {
		return nil, err
	}
	if err := m.growObject(2 * len(pairs)); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, p := range pairs {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return nil, failf("argument 1 of fromPairs must be a list of [key, value]")
		}
		k, err := m.normalize(pair[0])
		if err != nil {
			return nil, err
		}
		key, err := m.key(k)
		if err != nil {
			return nil, err
		}
		if err := m.read(len(key)); err != nil {
			return nil, err
		}
		out[key] = pair[1]
	}
	return out, nil
}

func get(m *evaluation, a args) (any, error) { return m.member(a.values[0], a.values[1]) }

// uniq finds equal elements by a key instead of comparing all pairs.
func uniq(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil {
		return nil, err
	}
	seen := map[any]bool{}
	out := []any{}
	for _, item := range items {
		v, err := m.normalize(item)
		if err != nil {
			return nil, err
		}
		k, err := m.identity(v)
		if err != nil {
			return nil, err
		}
		if seen[k] {
			continue
		}
		if err := m.grow(2*weightElement + weightKey); err != nil {
			return nil, err
		}
		seen[k] = true
		out = append(out, v)
	}
	return out, nil
}

// jsonKey is a separate type so that a list never equals a string with its JSON.
type jsonKey string

// fileKey is a separate type so that a file never equals the text of its id.
type fileKey string

// identity returns a key that is the same for equal values.
func (m *evaluation) identity(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return v, m.read(len(v))
	case float64:
		return compact(v), m.spend(1)
	case time.Time:
		return v.UTC().Round(0), m.spend(1)
	case []any, map[string]any:
		text, err := m.text(v)
		return jsonKey(text), err
	case *File:
		return fileKey(v.ID), m.spend(1)
	}
	return v, m.spend(1)
}
