package mask

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

type set struct {
	// filter has a bit for each window that a form begins with, so that most
	// positions of a text need only one lookup.
	filter [1 << 10]uint64
	forms  map[uint32][]form // by their first bytes, the longest first
}

// add adds a text and beginnings of it, whose lengths are in ascending order.
func (s *set) add(text string, beginnings ...int) {
	first := uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
	at := filterBit(first)
	s.filter[at>>6] |= 1 << (at & 63)
	hashed, hash := 0, uint64(0)
	for _, length := range append(beginnings, len(text)) {
		f := form{length: length}
		if length <= maxShort {
			f.short = text[:length]
		} else {
			hash, hashed = addHash(hash, text[hashed:length]), length
			f.hash, f.power = hash, power(hashBase(), length)
		}
		if !slices.Contains(s.forms[first], f) {
			s.forms[first] = append(s.forms[first], f)
		}
	}
}

func filterBit(first uint32) uint32 { return first * 0x9E3779B1 >> 16 }

// search appends where forms are in a text.
func (s *set) search(t *text, found []span) []span {
	if len(t.s) < window {
		return found
	}
	first := uint32(t.s[0])<<8 | uint32(t.s[1])<<16 | uint32(t.s[2])<<24
	for i := range len(t.s) - window + 1 {
		first = first>>8 | uint32(t.s[i+window-1])<<24
		if at := filterBit(first); s.filter[at>>6]&(1<<(at&63)) == 0 {
			continue
		}
		if length := t.longestMatch(i, s.forms[first]); length > 0 {
			found = append(found, span{t.origin(i), t.origin(i + length)})
		}
	}
	return found
}

// form is one encoding of a value. A long form is represented by its hash only:
// comparing it takes constant time, even in text with many near matches, and it
// takes no memory.
type form struct {
	length int
	short  string
	hash   uint64
	power  uint64 // of the base, for the length
}

const maxShort = 32

// text is a text to search, as it is or decoded.
type text struct {
	s string
	// jumps are the places after each escape that was decoded.
	jumps []jump
	// hashes are those of the prefixes, which are computed on first use.
	hashes []uint64
}

// jump says how far a decoded text is behind the original from a place on.
type jump struct{ at, by int }

// origin returns where a place of the text is in the original.
func (t *text) origin(at int) int {
	n, found := slices.BinarySearchFunc(t.jumps, at, func(j jump, at int) int { return j.at - at })
	switch {
	case found:
		return at + t.jumps[n].by
	case n == 0:
		return at
	}
	return at + t.jumps[n-1].by
}

// longestMatch returns the length of the first form that occurs at i, or zero.
// The forms are sorted by length, the longest first.
func (t *text) longestMatch(i int, forms []form) int {
	for _, f := range forms {
		end := i + f.length
		if end > len(t.s) {
			continue
		}
		if f.short != "" && t.s[i:end] == f.short || f.short == "" && t.hash(i, end, f.power) == f.hash {
			return f.length
		}
	}
	return 0
}

// hash returns the hash of s[from:to], computed from the hashes of prefixes.
func (t *text) hash(from, to int, power uint64) uint64 {
	if t.hashes == nil {
		t.hashes = make([]uint64, len(t.s)+1)
		base := hashBase()
		for i := range len(t.s) {
			t.hashes[i+1] = nextHash(t.hashes[i], base, t.s[i])
		}
	}
	return reduce(t.hashes[to] + prime - mulMod(t.hashes[from], power))
}

// prime is 2⁶¹-1. Hashes are polynomials modulo prime, with a random base that
// an attacker cannot predict.
const prime = 1<<61 - 1

// hashBase returns the base. It never changes, so that all sets can share the hashes
// of a text.
var hashBase = sync.OnceValue(func() uint64 {
	var raw [8]byte
	_, _ = rand.Read(raw[:])
	return binary.LittleEndian.Uint64(raw[:])%(prime-(1<<32)) + (1 << 31)
})

// addHash returns the hash of a text with more text after it.
func addHash(hash uint64, more string) uint64 {
	base := hashBase()
	for i := range len(more) {
		hash = nextHash(hash, base, more[i])
	}
	return hash
}

func nextHash(hash, base uint64, c byte) uint64 { return reduce(mulMod(hash, base) + uint64(c) + 1) }

func power(base uint64, n int) uint64 {
	out := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			out = mulMod(out, base)
		}
		base = mulMod(base, base)
	}
	return out
}

func mulMod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return reduce(low&prime + (low>>61 | high<<3))
}

// reduce returns a number below 2⁶³ modulo prime.
func reduce(n uint64) uint64 {
	if n = n&prime + n>>61; n >= prime {
		n -= prime
	}
	return n
}
