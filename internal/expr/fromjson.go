package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// FromJSON decodes data to values for an [Env]. Whole numbers become int, others
// float64. A number that neither represents exactly, such as an id of more than
// 64 bits, remains a json.Number with its original digits.
func FromJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode JSON: there is data after the value")
	}
	return numbers(v), nil
}

// numbers replaces every json.Number inside v in place, which is safe because v
// was just decoded.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	case map[string]any:
		for k, e := range v {
			switch e.(type) {
			case json.Number:
				v[k] = numbers(e)
			case []any, map[string]any:
				numbers(e)
			}
		}
	}
	return v
}

// decode implements fromJSON(). A few bytes of JSON can need much more memory, so
// it charges for the memory before decoding.
func (m *evaluation) decode(s string) (any, error) {
	cost, depth := estimateSize(s)
	if depth > maxNesting {
		return nil, failf("the JSON is nested too deeply")
	}
	if err := m.grow(cost); err != nil {
		return nil, err
	}
	if err := m.spend(len(s)/4 + 10); err != nil {
		return nil, err
	}
	v, err := FromJSON([]byte(s))
	if err != nil {
		return nil, failf("the text is not valid JSON")
	}
	return v, nil
}

// estimateSize returns an upper bound of the memory that the JSON text s decodes
// to, and its nesting depth.
func estimateSize(s string) (bytes, depth int) {
	bytes = len(s)
	open, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			bytes += weightBoxed / 2
		case quoted:
		case c == ',':
			bytes += weightElement + weightBoxed
		case c == ':':
			bytes += weightKey
		case c == '[':
			bytes += weightList + weightElement
			open++
		case c == '{':
			bytes += weightObject
			open++
		case c == ']' || c == '}':
			open--
		}
		depth = max(depth, open)
	}
	return bytes, depth
}
