package mask

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// form is one way a value can be written. A long one is known by its hash
// alone: that is compared in one step, however often a text begins to look like
// it, and takes no memory.
type form struct {
	length int
	short  string
	hash   uint64
}

const longestShort = 32

func newForm(s string, point uint64) form {
	if len(s) <= longestShort {
		return form{length: len(s), short: s}
	}
	whole := text{s: s, point: point}
	return form{length: len(s), hash: whole.hash(0, len(s))}
}

// text is what is searched, with the hashes of its beginnings once they are
// needed.
type text struct {
	s      string
	point  uint64
	hashes []uint64
	powers []uint64
}

// longest returns the length of the first of the forms, sorted by length, that
// stands at i; zero when none does.
func (t *text) longest(i int, forms []form) int {
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

// prime is 2⁶¹-1: hashes are polynomials modulo it, at a point that nobody can
// know beforehand.
const prime = 1<<61 - 1

func randomPoint() uint64 {
	var raw [8]byte
	_, _ = rand.Read(raw[:])
	return binary.LittleEndian.Uint64(raw[:])%(prime-(1<<32)) + (1 << 31)
}

// hash is that of s[from:to], from the hashes of the beginnings up to there.
func (t *text) hash(from, to int) uint64 {
	if t.hashes == nil {
		t.hashes, t.powers = make([]uint64, len(t.s)+1), make([]uint64, len(t.s)+1)
		t.powers[0] = 1
		for i := range len(t.s) {
			t.hashes[i+1] = (times(t.hashes[i], t.point) + uint64(t.s[i]) + 1) % prime
			t.powers[i+1] = times(t.powers[i], t.point)
		}
	}
	return (t.hashes[to] + prime - times(t.hashes[from], t.powers[to-from])) % prime
}

// times multiplies modulo prime.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	sum := low&prime + (low>>61 | high<<3)
	return sum % prime
}
