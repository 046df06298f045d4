package mask

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// forms are the ways in which a value is looked for: as it is, escaped for JSON
// and for URLs, in base64 and in hex. Some may be the same.
func forms(value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, group := range []func(string) []string{plainForms, jsonForms, urlForms, base64Forms} {
			for _, form := range group(value) {
				if !yield(form) {
					return
				}
			}
		}
	}
}

func plainForms(value string) []string {
	lower := hex.EncodeToString([]byte(value))
	return []string{value, lower, strings.ToUpper(lower)}
}

// jsonForms are the value as encoders of JSON write it: with what has to be
// escaped, with the marks of HTML too, in ASCII alone, and with \/.
func jsonForms(value string) []string {
	html, err := json.Marshal(value)
	if err != nil {
		panic(err) // a string always encodes
	}
	least := quote(value)
	least = least[1 : len(least)-1]
	ascii := toASCII(least)
	slashes := strings.NewReplacer("/", `\/`)
	return []string{string(html[1 : len(html)-1]), least, ascii, slashes.Replace(least), slashes.Replace(ascii)}
}

// quote writes a JSON string and escapes no more than has to be.
func quote(value string) string {
	out, err := strictjson.Encode(value)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(out)
}

func toASCII(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// urlForms are the value as part of a query and of a path, with a blank as +
// and as %20, and with the digits of escapes in capitals and in small letters.
func urlForms(value string) []string {
	query := url.QueryEscape(value)
	blank := strings.ReplaceAll(query, "+", "%20")
	component := strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(blank)
	out := []string{query, blank, component, url.PathEscape(value)}
	for _, form := range out {
		out = append(out, smallEscapes(form))
	}
	return out
}

// smallEscapes writes %2F as %2f.
func smallEscapes(text string) string {
	out := []byte(text)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(text[i+1:i+3]))
			i += 2
		}
	}
	return string(out)
}

// base64Forms are what the value looks like inside base64: after 0, 1 or 2
// bytes of something else, without the characters that also depend on what
// stands beside it, and up to the end, with and without padding.
func base64Forms(value string) []string {
	var out []string
	for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			padded := alphabet.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			from := (before*8 + 5) / 6
			to := (before + len(value)) * 8 / 6
			out = append(out, padded[from:to], strings.TrimRight(padded, "=")[from:], padded[from:])
		}
	}
	return out
}
