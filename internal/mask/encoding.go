package mask

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// addForms adds the encodings of a value to search for: plain, in hex and in base64.
// Escapes are not among them: see escapings.
func (s *set) addForms(value string) {
	lower := hex.EncodeToString([]byte(value))
	s.add(value)
	s.add(lower)
	s.add(strings.ToUpper(lower))
	for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			s.addBase64(value, alphabet, before)
		}
	}
}

// addBase64 adds a value as it appears inside base64 text after a number of bytes:
// without the characters that also encode neighboring bytes, and up to the end, with and
// without padding.
func (s *set) addBase64(value string, alphabet *base64.Encoding, before int) {
	padded := alphabet.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	from, to := (before*8+5)/6, (before+len(value))*8/6
	s.add(padded[from:], to-from, len(strings.TrimRight(padded, "="))-from)
}

// quote returns a JSON string with minimal escaping.
func quote(value string) string {
	out, err := strictjson.Encode(value)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(out)
}
