package expr

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// text returns a value as text for a template: strings unchanged, numbers in
// their shortest form, nil as "", arrays, objects and files as compact JSON.
func (m *evaluation) text(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return string(appendFloat(nil, v)), nil
	case json.Number:
		return string(v), nil
	case time.Time:
		return timeText(v), nil
	}
	out, err := m.appendJSON(nil, v, 0)
	return string(out), err
}

// timeText formats a time like all times in Stepmill: RFC 3339, UTC, milliseconds.
func timeText(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// appendFloat formats f like JSON and JavaScript.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

// appendJSON appends v as compact JSON with sorted keys. It charges while it
// writes, because a small value can contain the same part many times.
func (m *evaluation) appendJSON(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, costf("the value is nested too deeply")
	}
	v, err := m.normalize(v)
	if err != nil {
		return nil, err
	}
	before := len(dst)
	switch v := v.(type) {
	case []any:
		return m.appendList(dst, v, depth)
	case map[string]any:
		return m.appendObject(dst, v, depth)
	case *File:
		return m.appendObject(dst, v.members, depth)
	case string:
		if err := m.extend(jsonSize(v)); err != nil {
			return nil, err
		}
		return appendString(dst, v), nil
	case float64:
		if _, err := finite(v); err != nil {
			return nil, err
		}
		dst = appendFloat(dst, v)
	case nil:
		dst = append(dst, "null"...)
	case time.Time:
		dst = append(append(append(dst, '"'), timeText(v)...), '"')
	default:
		s, _ := m.text(v)
		dst = append(dst, s...)
	}
	return dst, m.extend(len(dst) - before)
}

func (m *evaluation) appendList(dst []byte, v []any, depth int) ([]byte, error) {
	if err := m.extend(len(v) + 1); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	for i, e := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = m.appendJSON(dst, e, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (m *evaluation) appendObject(dst []byte, v map[string]any, depth int) ([]byte, error) {
	keys, err := m.keys(v)
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for i, k := range keys {
		if err := m.extend(jsonSize(k) + 2); err != nil {
			return nil, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, k), ':')
		if dst, err = m.appendJSON(dst, v[k], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// keys returns the sorted keys of an object. All iteration over objects uses it,
// because a result must not depend on Go's map order.
func (m *evaluation) keys(v map[string]any) ([]string, error) {
	if err := m.grow(len(v) * weightElement); err != nil {
		return nil, err
	}
	bytes := 0
	keys := make([]string, 0, len(v))
	for k := range v {
		bytes += len(k)
		keys = append(keys, k)
	}
	if err := m.spend(sortCost(len(v)) + bytes/bytesPerStep); err != nil {
		return nil, err
	}
	slices.Sort(keys)
	return keys, nil
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Invalid UTF-8 becomes the replacement
// character.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			dst = appendASCII(dst, b)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return append(dst, '"')
}

func appendASCII(dst []byte, b byte) []byte {
	if short := shortEscape(b); short != 0 {
		return append(dst, '\\', short)
	}
	if b < ' ' {
		return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
	}
	return append(dst, b)
}

func shortEscape(b byte) byte {
	switch b {
	case '"', '\\':
		return b
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	}
	return 0
}

// jsonSize returns the number of bytes that appendString appends.
func jsonSize(s string) int {
	size := 2
	for i := 0; i < len(s); {
		b := s[i]
		switch {
		case b >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			size += utf8.RuneLen(r)
			i += n
			continue
		case shortEscape(b) != 0:
			size += 2
		case b < ' ':
			size += 6
		default:
			size++
		}
		i++
	}
	return size
}
