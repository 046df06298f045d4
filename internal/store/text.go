package store

import (
	"strings"
	"unicode/utf8"
)

// Text is a text as every database keeps it: in UTF-8, and without the byte zero,
// which one of them refuses. What others send and steps write may have both.
func Text(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
