package transfer

import (
	"net/http"
	"strings"
)

// NextLink returns the target of the first link with the relation next in the header
// Link (RFC 8288), or "" if there is none. Links with an anchor describe something
// else than the response.
func NextLink(header http.Header) string {
	rest := strings.Join(header.Values("Link"), ",")
	for {
		_, after, ok := strings.Cut(rest, "<")
		if !ok {
			return ""
		}
		target, params, ok := strings.Cut(after, ">")
		if !ok {
			return ""
		}
		var rel string
		var hasRel, hasAnchor bool
		rest = params
		for {
			var name, value string
			if name, value, rest, ok = nextParam(rest); !ok {
				break
			}
			switch {
			case name == "rel" && !hasRel: // only the first one counts
				rel, hasRel = value, true
			case name == "anchor":
				hasAnchor = true
			}
		}
		for relation := range strings.FieldsSeq(rel) {
			if strings.EqualFold(relation, "next") && !hasAnchor {
				return strings.TrimSpace(target)
			}
		}
	}
}

// nextParam reads a parameter of a link, such as ; rel="next". It returns false at
// the end of the link.
func nextParam(text string) (name, value, rest string, ok bool) {
	text = strings.TrimLeft(text, " \t")
	if !strings.HasPrefix(text, ";") {
		return "", "", text, false
	}
	text = strings.TrimLeft(text[1:], " \t")
	end := strings.IndexAny(text, "=;,")
	if end < 0 {
		end = len(text)
	}
	name = strings.ToLower(strings.TrimSpace(text[:end]))
	if text = text[end:]; !strings.HasPrefix(text, "=") {
		return name, "", text, true
	}
	text = strings.TrimLeft(text[1:], " \t")
	if strings.HasPrefix(text, `"`) {
		value, rest = unquote(text[1:])
		return name, value, rest, true
	}
	if end = strings.IndexAny(text, ";,"); end < 0 {
		end = len(text)
	}
	return name, strings.TrimSpace(text[:end]), text[end:], true
}

// unquote reads a quoted string after its opening quote, and returns what follows it.
func unquote(text string) (value, rest string) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), text[i+1:]
		case '\\':
			if i++; i < len(text) {
				out.WriteByte(text[i])
			}
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String(), ""
}
