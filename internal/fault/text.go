package fault

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name checks a short text that people see in lists: it is trimmed, must have
// between 1 and limit characters and stay on one line.
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

// Text checks a longer text of at most limit characters; line breaks and tabs
// are welcome, other control characters are not.
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
