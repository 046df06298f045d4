package store

import (
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/database"
)

// Text returns a text in the form that every database can store: valid UTF-8
// without zero bytes, which PostgreSQL rejects. Input from clients and steps may
// contain either.
func Text(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func scanText(r database.Row) (text string, err error) {
	err = r.Scan(&text)
	return text, err
}
