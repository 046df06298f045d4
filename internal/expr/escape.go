package expr

import (
	"encoding/xml"
	"net/url"
	"strings"
)

// EscapeURL is the [Escape] of a URL: text becomes a single segment of the path
// or, after the question mark, a single value of the query. Text at the very
// beginning is trusted and not escaped.
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

// EscapeXML is the [Escape] of an XML document: text becomes character data or the
// value of an attribute, and cannot add markup.
func EscapeXML(_, text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder accepts everything
	return out.String()
}
