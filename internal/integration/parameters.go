package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// parameters returns an object as the parameters of a query or a form. A list repeats
// its name, and a nested value has its path in the name, as in a[b] or a[0][b]. Nil is
// left out.
func parameters(object map[string]any) (url.Values, error) {
	out := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		list, ok := object[name].([]any)
		if !ok || slices.ContainsFunc(list, isComposite) {
			if err := addNested(out, name, object[name]); err != nil {
				return nil, err
			}
			continue
		}
		for _, item := range list {
			if err := addNested(out, name, item); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func isComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func addNested(out url.Values, name string, value any) error {
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := addNested(out, name+"["+key+"]", value[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for i, item := range value {
			if err := addNested(out, name+"["+strconv.Itoa(i)+"]", item); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := scalar(value)
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	out.Add(name, text)
	return nil
}

func scalar(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case json.Number:
		return v.String(), nil
	}
	return "", errors.New("must be text, a number or a boolean")
}
