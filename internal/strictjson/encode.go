package strictjson

import (
	"bytes"
	"encoding/json"
)

// Encode returns a value as compact JSON with minimal escaping.
func Encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// NormalizeStrings returns valid JSON with its strings written the way encoding/json
// writes them. The rest of the text stays as it is.
func NormalizeStrings(text []byte) ([]byte, error) {
	if bytes.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		start := bytes.IndexByte(text, '"')
		if start < 0 {
			break
		}
		end := endOfString(text, start)
		var value string
		if err := json.Unmarshal(text[start:end], &value); err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out = append(append(out, text[:start]...), encoded...)
		text = text[end:]
	}
	return append(out, text...), nil
}

// endOfString returns the position after the string that begins at start.
func endOfString(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
