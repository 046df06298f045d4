package fault

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name trims and checks a short text that appears in lists. It must have between
// 1 and limit characters and no control characters.
func Name(pointer, value string, limit int) (string, error) {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return "", Field(pointer, "must not be empty")
	case utf8.RuneCountInString(value) > limit:
		return "", Field(pointer, "must have at most %d characters", limit)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", Field(pointer, "must not contain control characters")
	}
	return value, nil
}

// Text checks a longer text of at most limit characters. It allows line breaks
// and tabs, but no other control characters.
func Text(pointer, value string, limit int) (string, error) {
	switch {
	case utf8.RuneCountInString(value) > limit:
		return "", Field(pointer, "must have at most %d characters", limit)
	case strings.ContainsFunc(value, isOddControl):
		return "", Field(pointer, "must not contain control characters other than line breaks and tabs")
	}
	return value, nil
}

func isOddControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
}
