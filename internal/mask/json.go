package mask

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// JSON returns JSON text with every value masked that occurs in a string or in a
// member name, in any escaping. A number, true, false or null whose text contains
// a value becomes the string "***". The result is valid JSON; text without any
// value is returned unchanged.
func (m *Masker) JSON(raw []byte) []byte {
	if m == nil || !m.mayOccur(raw) {
		return raw
	}
	var out []byte
	written := 0
	for i := 0; i < len(raw); {
		end, masked := i+1, []byte(nil)
		switch c := raw[i]; {
		case c == '"':
			if end = endOfString(raw, i); end == 0 {
				return []byte(m.Text(string(raw))) // not valid JSON
			}
			masked = m.maskString(raw[i:end])
		case isLiteral(c):
			for end < len(raw) && isLiteral(raw[end]) {
				end++
			}
			if token := string(raw[i:end]); m.Text(token) != token {
				masked = []byte(`"` + Replacement + `"`)
			}
		}
		if masked != nil {
			out = append(append(out, raw[written:i]...), masked...)
			written = end
		}
		i = end
	}
	if out == nil {
		return raw
	}
	return append(out, raw[written:]...)
}

// mayOccur reports whether a value may occur in JSON text. It decodes and searches all
// strings at once, which is faster than one by one. It cannot tell if there are escapes
// in the decoded strings.
func (m *Masker) mayOccur(raw []byte) bool {
	t := &text{s: string(raw)}
	if decoded := jsonEscaping.decode(t.s); decoded != nil {
		t = decoded
	}
	return strings.ContainsAny(t.s, `\&%`) || m.spaces && strings.Contains(t.s, "+") || len(m.search(t, nil)) > 0
}

// maskString masks the content of a JSON string. It returns nil if there is
// nothing to mask.
func (m *Masker) maskString(token []byte) []byte {
	var before string
	if inner := token[1 : len(token)-1]; bytes.IndexByte(inner, '\\') < 0 {
		before = string(inner)
	} else if json.Unmarshal(token, &before) != nil {
		before = string(inner) // not valid JSON, but masked nevertheless
	}
	if after := m.Text(before); after != before {
		return []byte(quote(after))
	}
	return nil
}

// endOfString returns the end of the string that begins at i, or zero if it is
// not terminated.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

func isLiteral(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// Value returns decoded JSON with every value masked, like JSON. It never changes the
// value that it is given; values of other types than those of JSON stay as they are.
func (m *Masker) Value(value any) any {
	if m == nil {
		return value
	}
	switch v := value.(type) {
	case string:
		return m.Text(v)
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = m.Value(element)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[m.Text(name)] = m.Value(member)
		}
		return out
	case bool, int, int64, float64, json.Number:
		if text, err := strictjson.Encode(v); err == nil && m.Text(string(text)) != string(text) {
			return Replacement
		}
	}
	return value
}
