package mask

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// form is one encoding of a value. A long form is represented by its hash only:
// comparing it takes constant time, even in text with many near matches, and it
// takes no memory.
type form struct {
	length int
	short  string
	hash   uint64
}

const maxShort = 32

func newForm(s string, base uint64) form {
	if len(s) <= maxShort {
		return form{length: len(s), short: s}
	}
	whole := text{s: s, base: base}
	return form{length: len(s), hash: whole.hash(0, len(s))}
}

// text is the text to search, with the hashes of its prefixes, which are computed
// on first use.
type text struct {
	s      string
	base   uint64
	hashes []uint64
	powers []uint64
}

// longestMatch returns the length of the first form that occurs at i, or zero.
// The forms are sorted by length, the longest first.
func (t *text) longestMatch(i int, forms []form) int {
	for _, f := range forms {
		end := i + f.length
		if end > len(t.s) {
			continue
		}
		if f.short != "" && t.s[i:end] == f.short || f.short == "" && t.hash(i, end) == f.hash {
			return f.length
		}
	}
	return 0
}

// prime is 2⁶¹-1. Hashes are polynomials modulo prime, with a random base that
// an attacker cannot predict.
const prime = 1<<61 - 1

func randomBase() uint64 {
	var raw [8]byte
	_, _ = rand.Read(raw[:])
	return binary.LittleEndian.Uint64(raw[:])%(prime-(1<<32)) + (1 << 31)
}

// hash returns the hash of s[from:to], computed from the hashes of prefixes.
func (t *text) hash(from, to int) uint64 {
	if t.hashes == nil {
		t.hashes, t.powers = make([]uint64, len(t.s)+1), make([]uint64, len(t.s)+1)
		t.powers[0] = 1
		for i := range len(t.s) {
			t.hashes[i+1] = (mulMod(t.hashes[i], t.base) + uint64(t.s[i]) + 1) % prime
			t.powers[i+1] = mulMod(t.powers[i], t.base)
		}
	}
	return (t.hashes[to] + prime - mulMod(t.hashes[from], t.powers[to-from])) % prime
}

// mulMod multiplies modulo prime.
func mulMod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	sum := low&prime + (low>>61 | high<<3)
	return sum % prime
}
