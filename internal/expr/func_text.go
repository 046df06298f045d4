package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func textFunctions() []function {
	return []function{
		fn("upper", "upper(text) string", "The text in upper case.", 1, 1, mapText(strings.ToUpper),
			`upper("order")`, `"ORDER"`),
		fn("lower", "lower(text) string", "The text in lower case.", 1, 1, mapText(strings.ToLower),
			`lower("ORDER")`, `"order"`),
		fn("trim", "trim(text[, chars]) string", "The text without whitespace, or without the given characters, at both ends.", 1, 2, trim,
			`trim("  a b ")`, `"a b"`, `trim("--a--", "-")`, `"a"`),
		fn("trimPrefix", "trimPrefix(text, prefix) string", "The text without the prefix, if it has it.", 2, 2, affix(strings.TrimPrefix),
			`trimPrefix("refs/heads/main", "refs/heads/")`, `"main"`),
		fn("trimSuffix", "trimSuffix(text, suffix) string", "The text without the suffix, if it has it.", 2, 2, affix(strings.TrimSuffix),
			`trimSuffix("report.pdf", ".pdf")`, `"report"`),
		fn("split", "split(text, separator[, limit]) array", "The parts of the text between separators, at most limit parts; an empty separator splits into characters.", 2, 3, split,
			`split("a,b,c", ",")`, `["a","b","c"]`, `split("a,b,c", ",", 2)`, `["a","b,c"]`),
		fn("join", "join(list[, separator]) string", "The elements as text, joined by the separator.", 1, 2, join,
			`join(["a", "b", 3], "-")`, `"a-b-3"`),
		fn("replace", "replace(text, old, new) string", "The text with every occurrence of old replaced by new.", 3, 3, replace,
			`replace("a.b.c", ".", "/")`, `"a/b/c"`),
		fn("slug", "slug(text) string", "The text for use in a URL or a file name: lower case, words joined by hyphens, accents of Latin letters removed.", 1, 1, slug,
			`slug("Crème brûlée, 2 pcs!")`, `"creme-brulee-2-pcs"`),
	}
}

func searchFunctions() []function {
	return []function{
		fn("hasPrefix", "hasPrefix(text, prefix) bool", "Whether the text begins with the prefix, like the operator startsWith.", 2, 2, affix(strings.HasPrefix),
			`hasPrefix("invoice-7", "invoice")`, `true`),
		fn("hasSuffix", "hasSuffix(text, suffix) bool", "Whether the text ends with the suffix, like the operator endsWith.", 2, 2, affix(strings.HasSuffix),
			`hasSuffix("a.pdf", ".pdf")`, `true`),
		fn("indexOf", "indexOf(text, part) int", "The position of the first occurrence of the part, in characters from 0, or -1.", 2, 2, indexOf,
			`indexOf("größe", "ß")`, `3`, `indexOf("abc", "x")`, `-1`),
		fn("lastIndexOf", "lastIndexOf(text, part) int", "The position of the last occurrence of the part, in characters from 0, or -1.", 2, 2, lastIndexOf,
			`lastIndexOf("a/b/c", "/")`, `3`),
	}
}

// mapText returns a function of one string. Changing the case can lengthen a text
// by half, which is charged afterwards.
func mapText(change func(string) string) func(*evaluation, args) (any, error) {
	return func(m *evaluation, a args) (any, error) {
		s, err := a.text(0)
		if err != nil {
			return nil, err
		}
		if err := m.growText(len(s)); err != nil {
			return nil, err
		}
		if err := m.spend(len(s) / 8); err != nil {
			return nil, err
		}
		out := change(s)
		return out, m.grow(max(0, len(out)-len(s)))
	}
}

func trim(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if !a.has(1) {
		return strings.TrimSpace(s), m.read(len(s))
	}
	chars, err := a.text(1)
	if err != nil {
		return nil, err
	}
	// Each character of the text may be looked up in all of chars.
	if len(chars) > maxPattern {
		return nil, failf("argument 2 of trim has more than %d bytes", maxPattern)
	}
	if err := m.read(len(s) * (1 + len(chars))); err != nil {
		return nil, err
	}
	return strings.Trim(s, chars), nil
}

// affix returns a function of a text and a prefix or suffix, which reads no more of the text
// than that has.
func affix[T any](of func(s, affix string) T) func(*evaluation, args) (any, error) {
	return func(m *evaluation, a args) (any, error) {
		s, err := a.texts(2)
		return of(s[0], s[1]), or(err, m.read(len(s[1])))
	}
}

func or(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func indexOf(m *evaluation, a args) (any, error) {
	s, err := a.texts(2)
	if err != nil {
		return nil, err
	}
	i, err := m.index(s[0], s[1])
	return characters(s[0], i), err
}

func lastIndexOf(m *evaluation, a args) (any, error) {
	s, err := a.texts(2)
	if err != nil {
		return nil, err
	}
	i, err := m.lastIndex(s[0], s[1])
	return characters(s[0], i), err
}

// characters converts an index in bytes to an index in characters.
func characters(s string, i int) int {
	if i < 0 {
		return i
	}
	return utf8.RuneCountInString(s[:i])
}

// slug keeps only letters and digits, of every script.
func slug(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.growText(2 * len(s)); err != nil {
		return nil, err
	}
	if err := m.spend(len(s)); err != nil {
		return nil, err
	}
	var b strings.Builder
	gap := false
	for _, r := range s {
		r = unicode.ToLower(r)
		if unicode.Is(unicode.Mn, r) {
			continue // a combining accent
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteString(unaccent(r))
	}
	return b.String(), nil
}

// unaccent returns the ASCII spelling of a Latin letter, and other letters unchanged.
func unaccent(r rune) string {
	if plain, ok := latin[r]; ok {
		return plain
	}
	return string(r)
}

// latin has the ASCII spellings of European letters. It is never changed.
var latin = latinLetters()

func latinLetters() map[rune]string {
	out := make(map[rune]string)
	for plain, letters := range map[string]string{
		"a": "àáâãäåāăą", "c": "çćĉċč", "d": "ďđð", "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ",
		"i": "ìíîïĩīĭįı", "j": "ĵ", "k": "ķ", "l": "ĺļľŀł", "n": "ñńņňŋ", "o": "òóôõöøōŏő",
		"r": "ŕŗř", "s": "śŝşšș", "t": "ţťŧț", "u": "ùúûüũūŭůűų", "w": "ŵ", "y": "ýÿŷ",
		"z": "źżž", "ss": "ß", "ae": "æ", "oe": "œ", "th": "þ",
	} {
		for _, r := range letters {
			out[r] = plain
		}
	}
	return out
}
