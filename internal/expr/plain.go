package expr

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// normalize converts a value from the environment to a type that evaluations
// use: nil, bool, int, float64, string, []any, map[string]any, time.Time, *File, or
// json.Number for a number that neither int nor float64 represents. It must be
// called on everything read from the environment.
func (m *evaluation) normalize(v any) (any, error) {
	switch v.(type) {
	case nil, bool, int, float64, string, []any, map[string]any, time.Time, *File:
		return v, nil
	}
	return m.convert(v)
}

func (m *evaluation) convert(v any) (any, error) {
	switch v := v.(type) {
	case []string:
		if err := m.grow(weightList + len(v)*(weightElement+weightBoxed)); err != nil {
			return nil, err
		}
		return stringList(v), nil
	case map[string]string:
		if err := m.growObject(len(v)); err != nil {
			return nil, err
		}
		return stringObject(v), nil
	case []map[string]any:
		if err := m.growList(len(v)); err != nil {
			return nil, err
		}
		return objectList(v), nil
	}
	return scalar(v)
}

func stringList(v []string) []any {
	out := make([]any, len(v))
	for i, s := range v {
		out[i] = s
	}
	return out
}

func stringObject(v map[string]string) map[string]any {
	out := make(map[string]any, len(v))
	for k, s := range v {
		out[k] = s
	}
	return out
}

func objectList(v []map[string]any) []any {
	out := make([]any, len(v))
	for i, o := range v {
		out[i] = o
	}
	return out
}

// scalar converts the other number types of Go.
func scalar(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return number(v), nil
	case int64:
		return int(v), nil
	case int32:
		return int(v), nil
	case int16:
		return int(v), nil
	case int8:
		return int(v), nil
	case uint8:
		return int(v), nil
	case uint16:
		return int(v), nil
	case uint32:
		return int(v), nil
	case uint:
		return number(json.Number(strconv.FormatUint(uint64(v), 10))), nil
	case uint64:
		return number(json.Number(strconv.FormatUint(v, 10))), nil
	case float32:
		return float64(v), nil
	}
	return nil, failf("the data holds a value that is not JSON")
}

// number returns n as an int if it is whole, as a float64 if it has a fraction,
// and unchanged if both would lose digits, so that a long id passes through
// unchanged.
func number(n json.Number) any {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return int(i)
		}
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return n
	}
	return f
}

// kind returns the name of a value's type, for messages and type().
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "bool"
	case int:
		return "int"
	case float64, json.Number:
		return "float"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "map"
	case time.Time:
		return "time"
	case *File:
		return "file"
	}
	return "unknown"
}

// got describes a value of the wrong type. The items of a list file are not in memory.
func got(v any) string {
	if f, ok := v.(*File); ok && f.List != nil {
		return "a list file: loop over it with foreach, or use its count and its first items"
	}
	return kind(v)
}

// elements returns v as a list. Nil is an empty list, because the output of a
// skipped step is nil.
func elements(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	}
	return nil, failf("expected an array, got %s", got(v))
}

// asCondition returns v as a bool. Nil is false, because a missing key is nil.
func asCondition(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	}
	return false, failf("expected true or false, got %s", kind(v))
}
