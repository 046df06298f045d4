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

// forms returns the encodings of a value to search for: plain, escaped for JSON
// and for URLs, in base64 and in hex. It may return duplicates.
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

// jsonForms returns the value as JSON encoders write it: with minimal escaping,
// with HTML characters escaped, in ASCII only, and with \/.
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

// quote returns a JSON string with minimal escaping.
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

// urlForms returns the value as part of a query and of a path, with a space as +
// and as %20, and with upper-case and lower-case escapes.
func urlForms(value string) []string {
	query := url.QueryEscape(value)
	blank := strings.ReplaceAll(query, "+", "%20")
	component := strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(blank)
	out := []string{query, blank, component, url.PathEscape(value)}
	for _, form := range out {
		out = append(out, lowerEscapes(form))
	}
	return out
}

// lowerEscapes changes %2F to %2f.
func lowerEscapes(text string) string {
	out := []byte(text)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(text[i+1:i+3]))
			i += 2
		}
	}
	return string(out)
}

// base64Forms returns the value as it appears inside base64 text: at each of the
// three alignments, without the characters that also encode neighboring bytes,
// and up to the end, with and without padding.
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
