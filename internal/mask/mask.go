// Package mask removes secrets from text that is stored or shown. It finds
// values, including their common encodings, and replaces them. It does not find
// a value that was split, reversed, hashed or encrypted.
package mask

import (
	"slices"
	"unicode/utf8"
)

// Replacement replaces each secret.
const Replacement = "***"

// MinLength is the minimum number of characters of a value to be masked. A
// shorter value would match too much unrelated text.
const MinLength = 4

// window is the number of leading bytes by which forms are looked up. No form of
// a value of MinLength characters is shorter.
const window = 4

// Masker masks a set of values. It is immutable and safe to share. The nil
// Masker masks nothing.
type Masker struct {
	// filter has a bit for each window that a form begins with, so that most
	// positions of a text need only one lookup.
	filter   [1 << 10]uint64
	forms    map[uint32][]form // by their first bytes, the longest first
	hashBase uint64            // of the hashes of long forms
}

// New returns a Masker for values, which must be UTF-8. It returns nil if there
// is nothing to mask.
func New(values []string) *Masker {
	m := &Masker{forms: map[uint32][]form{}, hashBase: randomBase()}
	seen := map[string]bool{}
	for _, value := range values {
		if utf8.RuneCountInString(value) < MinLength || seen[value] {
			continue
		}
		seen[value] = true
		for text := range forms(value) {
			m.add(text)
		}
	}
	if len(m.forms) == 0 {
		return nil
	}
	for _, bucket := range m.forms {
		slices.SortFunc(bucket, func(a, b form) int { return b.length - a.length })
	}
	return m
}

func (m *Masker) add(text string) {
	first := uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
	made := newForm(text, m.hashBase)
	if slices.Contains(m.forms[first], made) {
		return
	}
	m.forms[first] = append(m.forms[first], made)
	at := filterBit(first)
	m.filter[at>>6] |= 1 << (at & 63)
}

// filterBit returns the index of a window's bit in the filter.
func filterBit(first uint32) uint32 { return first * 0x9E3779B1 >> 16 }

// Text returns s with every value masked. Values that overlap or touch are
// masked as one. It returns a text without any value unchanged.
func (m *Masker) Text(s string) string {
	if m == nil || len(s) < window {
		return s
	}
	var out []byte
	written, from, to := 0, 0, 0 // s[:written] is in out, s[from:to] will be masked
	source := text{s: s, base: m.hashBase}
	first := uint32(s[0])<<8 | uint32(s[1])<<16 | uint32(s[2])<<24
	for i := range len(s) - window + 1 {
		first = first>>8 | uint32(s[i+window-1])<<24
		if at := filterBit(first); m.filter[at>>6]&(1<<(at&63)) == 0 {
			continue
		}
		length := source.longestMatch(i, m.forms[first])
		switch {
		case length == 0:
		case to > 0 && i <= to:
			to = max(to, i+length)
		default:
			if to > 0 {
				out = append(append(out, s[written:from]...), Replacement...)
				written = to
			}
			from, to = i, i+length
		}
	}
	if to == 0 {
		return s
	}
	out = append(append(out, s[written:from]...), Replacement...)
	return string(append(out, s[to:]...))
}
