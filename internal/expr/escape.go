package expr

import (
	"net/url"
	"strings"
)

// EscapeURL is the [Escape] of a URL: text becomes one segment of its path or,
// after the question mark, one value of its query, whatever it contains. Text
// at the very beginning is the part of the URL that is trusted.
func EscapeURL(before, text string) string {
	switch {
	case before == "":
		return text
	case strings.ContainsRune(before, '?'):
		return url.QueryEscape(text)
	case text == "." || text == "..":
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}
