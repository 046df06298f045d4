package integration

import "strings"

// cutOff returns a hint for an expression that is not valid if YAML has taken its end as a
// comment, as in `when: any(body.list, # > 1)` without quotes, or "". A # belongs to
// expressions only inside of brackets or quotes, so one that is cut off is never valid, and
// a comment after a valid expression is just that.
func (p *parser) cutOff(pointer, source string) string {
	if p.document == nil {
		return ""
	}
	line, column, ok := p.document.At(pointer)
	if !ok {
		return ""
	}
	lines := strings.Split(strings.ReplaceAll(string(p.text), "\r\n", "\n"), "\n")
	rest := lines[line-1:]
	rest[0] = string([]rune(rest[0])[column-1:])
	if strings.HasPrefix(rest[0], `"`) || strings.HasPrefix(rest[0], "'") {
		return ""
	}
	for _, text := range rest { // plain text can have several lines
		text = strings.TrimSpace(text)
		before, comment, found := strings.Cut(text, " #")
		before = strings.TrimSpace(before)
		if !strings.HasPrefix(source, before) {
			return ""
		}
		if source = strings.TrimSpace(strings.TrimPrefix(source, before)); source == "" {
			if !found {
				return ""
			}
			return `. YAML takes "#` + comment + `" as a comment: put the whole expression in quotes`
		}
	}
	return ""
}
