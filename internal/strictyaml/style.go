package strictyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longLine is the length from which text that needs quotes becomes a block scalar.
const longLine = 80

// words are not strings to some YAML parsers, in any letter case.
var words = []string{"null", "true", "false", "y", "n", "yes", "no", "on", "off"}

// numberLike matches what YAML 1.1 or 1.2 may parse as a number or a time: grouped
// digits, base 2, 8, 16 or 60, with a fraction or an exponent, or a date.
var numberLike = regexp.MustCompile(`^(?:[0-9][0-9_.,:]*(?:[eE][-+]?[0-9]+)?|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9]{4}-[0-9].*)$`)

// isPlain reports whether text is a string without quotes to every YAML parser.
// It is stricter than YAML: ambiguous text is quoted.
func isPlain(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	if text == "" || !unicode.IsLetter(first) && !unicode.IsDigit(first) && !strings.ContainsRune("$/_(", first) {
		return false
	}
	if strings.HasSuffix(text, " ") || strings.HasSuffix(text, ":") || strings.Contains(text, ": ") || strings.Contains(text, " #") {
		return false
	}
	if slices.Contains(words, strings.ToLower(text)) || numberLike.MatchString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// isLiteral reports whether text can and should be a literal block scalar.
func isLiteral(text string) bool {
	if !strings.Contains(text, "\n") && utf8.RuneCountInString(text) <= longLine {
		return false
	}
	if strings.Trim(text, " \t\n") == "" {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && (!printable(r) || ambiguousBreak(r))
	})
}

// oneLine returns text on one line, in quotes unless it is plain.
func oneLine(text string) string {
	simple := !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	switch {
	case isPlain(text):
		return text
	case simple && strings.ContainsAny(text, `"\`):
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return doubleQuoted(text)
}

// doubleQuoted returns text in double quotes, with non-printable characters escaped.
func doubleQuoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xFF:
			fmt.Fprintf(&b, `\x%02X`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
