package mask

import (
	"bytes"
	"encoding/json"
)

// JSON returns JSON text with every value covered that stands in a string or in
// the name of a member, however it is escaped there. A number, true, false or
// null whose text holds a value becomes the string "***". The result is JSON
// again; text without any value is returned as it is.
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
				return []byte(m.Text(string(raw))) // it is not JSON
			}
			masked = m.quoted(raw[i:end])
		case isLiteral(c):
			for end < len(raw) && isLiteral(raw[end]) {
				end++
			}
			if token := string(raw[i:end]); m.Text(token) != token {
				masked = []byte(`"` + Cover + `"`)
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

// quoted covers what stands in a JSON string, and answers nil when there is
// nothing to cover.
func (m *Masker) quoted(token []byte) []byte {
	var before string
	if inner := token[1 : len(token)-1]; bytes.IndexByte(inner, '\\') < 0 {
		before = string(inner)
	} else if json.Unmarshal(token, &before) != nil {
		before = string(inner) // it is not JSON, and is covered all the same
	}
	if after := m.Text(before); after != before {
		return []byte(quote(after))
	}
	return nil
}

// endOfString returns where the string that begins at i ends, zero when it does
// not.
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
