package mask

import (
	"bytes"
	"encoding/json"
)

// JSON returns JSON text with every value masked that occurs in a string or in a
// member name, in any escaping. A number, true, false or null whose text contains
// a value becomes the string "***". The result is valid JSON; text without any
// value is returned unchanged.
func (m *Masker) JSON(raw []byte) []byte {
	if m == nil {
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
