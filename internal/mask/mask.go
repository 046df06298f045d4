// Package mask owns keeping secrets out of text that is stored or shown: it
// finds values, also in the encodings they commonly travel in, and covers them.
// It knows neither where the values come from nor what the text is for. A value
// that was taken apart, reversed, hashed or encrypted is not found.
package mask

import (
	"slices"
	"unicode/utf8"
)

// Cover stands where a secret stood.
const Cover = "***"

// Shortest is the number of characters that a value needs to be covered: one
// that is shorter is found in too much that has nothing to do with it.
const Shortest = 4

// window is the number of bytes by which forms are found. No form of a value
// of Shortest characters has fewer.
const window = 4

// Masker covers a set of values. It does not change and can be shared. The nil
// Masker covers nothing.
type Masker struct {
	// filter has a bit for each window that a form begins with, so that most
	// places of a text cost one look.
	filter [1 << 10]uint64
	forms  map[uint32][]form // by their first bytes, the longest first
	point  uint64            // of the hashes of long forms
}

// New makes a masker of values, which are UTF-8. It is nil when there is
// nothing to cover.
func New(values []string) *Masker {
	m := &Masker{forms: map[uint32][]form{}, point: randomPoint()}
	seen := map[string]bool{}
	for _, value := range values {
		if utf8.RuneCountInString(value) < Shortest || seen[value] {
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
	made := newForm(text, m.point)
	if slices.Contains(m.forms[first], made) {
		return
	}
	m.forms[first] = append(m.forms[first], made)
	at := spread(first)
	m.filter[at>>6] |= 1 << (at & 63)
}

// spread turns a window into the number of its bit.
func spread(first uint32) uint32 { return first * 0x9E3779B1 >> 16 }

// Text returns the text with every value covered. Values that overlap or touch
// are covered as one. A text without any is returned as it is.
func (m *Masker) Text(s string) string {
	if m == nil || len(s) < window {
		return s
	}
	var out []byte
	written, from, to := 0, 0, 0 // s[:written] is in out, s[from:to] is to be covered
	source := text{s: s, point: m.point}
	first := uint32(s[0])<<8 | uint32(s[1])<<16 | uint32(s[2])<<24
	for i := range len(s) - window + 1 {
		first = first>>8 | uint32(s[i+window-1])<<24
		if at := spread(first); m.filter[at>>6]&(1<<(at&63)) == 0 {
			continue
		}
		length := source.longest(i, m.forms[first])
		switch {
		case length == 0:
		case to > 0 && i <= to:
			to = max(to, i+length)
		default:
			if to > 0 {
				out = append(append(out, s[written:from]...), Cover...)
				written = to
			}
			from, to = i, i+length
		}
	}
	if to == 0 {
		return s
	}
	out = append(append(out, s[written:from]...), Cover...)
	return string(append(out, s[to:]...))
}
