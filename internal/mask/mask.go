// Package mask removes secrets from text that is stored or shown. It finds
// values, including their common encodings, and replaces them. It does not find
// a value that was split, reversed, hashed or encrypted.
package mask

import (
	"cmp"
	"slices"
	"strings"
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

// Masker masks values. It is immutable and safe to share. The nil Masker masks
// nothing.
type Masker struct {
	sets []*set
	// spaces reports whether a value contains a space, which a form encodes as +.
	spaces bool
}

// New returns a Masker for values, which must be UTF-8. It returns nil if there
// is nothing to mask. Building one takes much longer than using it on a short
// text: see [Cache].
func New(values []string) *Masker {
	m, s := &Masker{}, &set{forms: map[uint32][]form{}}
	seen := map[string]bool{}
	for _, value := range values {
		if utf8.RuneCountInString(value) < MinLength || seen[value] {
			continue
		}
		seen[value] = true
		m.spaces = m.spaces || strings.Contains(value, " ")
		s.addForms(value)
	}
	if len(seen) == 0 {
		return nil
	}
	for _, bucket := range s.forms {
		slices.SortFunc(bucket, func(a, b form) int { return b.length - a.length })
	}
	m.sets = []*set{s}
	return m
}

// Join returns a Masker for everything that the given ones mask. It is cheap.
func Join(maskers ...*Masker) *Masker {
	joined := &Masker{}
	for _, m := range maskers {
		if m == nil {
			continue
		}
		joined.spaces = joined.spaces || m.spaces
		for _, s := range m.sets {
			if !slices.Contains(joined.sets, s) {
				joined.sets = append(joined.sets, s)
			}
		}
	}
	for _, m := range maskers {
		if m != nil && len(m.sets) == len(joined.sets) {
			return m // it has everything
		}
	}
	if len(joined.sets) == 0 {
		return nil
	}
	return joined
}

// Text returns s with every value masked. Values that overlap or touch are
// masked as one. It returns a text without any value unchanged.
func (m *Masker) Text(s string) string {
	if m == nil || len(s) < window {
		return s
	}
	return replace(s, m.find(s))
}

type span struct{ from, to int }

// find returns where values are in a text, in plain form or in any encoding.
func (m *Masker) find(s string) []span {
	found := m.search(&text{s: s}, nil)
	for _, e := range escapings {
		if e.plus && !m.spaces {
			continue
		}
		if decoded := e.decode(s); decoded != nil {
			found = m.search(decoded, found)
		}
	}
	return found
}

func (m *Masker) search(t *text, found []span) []span {
	for _, s := range m.sets {
		found = s.search(t, found)
	}
	return found
}

func replace(s string, parts []span) string {
	if len(parts) == 0 {
		return s
	}
	slices.SortFunc(parts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	written := 0
	for i := 0; i < len(parts); {
		from, to := parts[i].from, parts[i].to
		for i++; i < len(parts) && parts[i].from <= to; i++ {
			to = max(to, parts[i].to)
		}
		out.WriteString(s[written:from])
		out.WriteString(Replacement)
		written = to
	}
	out.WriteString(s[written:])
	return out.String()
}
