package expr

import (
	"crypto/hmac"
	"crypto/sha256"
	encoding "encoding/binary"
	"encoding/hex"
	"math"
)

func randomFunctions() []function {
	return []function{
		random(fn("uuid", "uuid() string", "A random UUID, version 4.", 0, 0, uuid,
			`uuid()`, `"c45509fa-83b5-4c38-aa50-0abf16702630"`)),
		random(fn("random", "random(from, to) int", "A random whole number in the range, including both ends.", 2, 2, randomNumber,
			`random(1, 6)`, `1`)),
		random(fn("randomText", "randomText(length[, alphabet]) string", "Random text of a number of characters, by default letters and digits.", 1, 2, randomText,
			`randomText(12)`, `"mQxXjoKvhumm"`, `randomText(6, "0123456789")`, `"265792"`)),
	}
}

// random marks a function whose result depends on Env.Seed.
func random(f function) function {
	f.InSteps = true
	return f
}

const (
	hmacBytes     = 640  // allocated for one HMAC
	maxRandomText = 1000 // characters
	maxAlphabet   = 256  // characters
	alphanumeric  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// DeriveSeed returns a value for Env.Seed: the same for the same secret and parts,
// and unrelated otherwise.
func DeriveSeed(secret []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, secret)
	for _, part := range parts {
		mac.Write(encoding.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// randomStream has the random bytes of one call. It depends only on the seed and
// the number of the call, so that evaluating again gives the same values, also
// with another version of the program.
type randomStream struct {
	m     *evaluation
	seed  []byte
	call  int
	block int
	left  []byte
}

func (m *evaluation) random(a args) (*randomStream, error) {
	if len(m.env.Seed) == 0 {
		return nil, failf("%s() is not available here", a.name)
	}
	m.calls++
	return &randomStream{m: m, seed: m.env.Seed, call: m.calls}, nil
}

func (s *randomStream) next(n int) ([]byte, error) {
	if len(s.left) < n {
		if err := s.m.spend(2 * hashSteps); err != nil {
			return nil, err
		}
		if err := s.m.grow(hmacBytes); err != nil {
			return nil, err
		}
		mac := hmac.New(sha256.New, s.seed)
		mac.Write(encoding.BigEndian.AppendUint64(encoding.BigEndian.AppendUint64(nil, uint64(s.call)), uint64(s.block)))
		s.left = mac.Sum(nil)
		s.block++
	}
	out := s.left[:n]
	s.left = s.left[n:]
	return out, nil
}

// below returns a number less than n, each with the same probability.
func (s *randomStream) below(n uint64) (uint64, error) {
	limit := math.MaxUint64 - (math.MaxUint64%n+1)%n // the largest multiple of n, less 1
	for {
		b, err := s.next(8)
		if err != nil {
			return 0, err
		}
		if v := encoding.BigEndian.Uint64(b); v <= limit {
			return v % n, nil
		}
	}
}

func uuid(m *evaluation, a args) (any, error) {
	s, err := m.random(a)
	if err != nil {
		return nil, err
	}
	b, err := s.next(16)
	if err != nil {
		return nil, err
	}
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // the variant of RFC 9562
	text := hex.EncodeToString(b)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:], nil
}

func randomNumber(m *evaluation, a args) (any, error) {
	from, err := a.whole(0)
	if err != nil {
		return nil, err
	}
	to, err := a.whole(1)
	if err != nil {
		return nil, err
	}
	if to < from {
		return nil, failf("argument 2 of random must not be less than argument 1")
	}
	s, err := m.random(a)
	if err != nil {
		return nil, err
	}
	if span := uint64(to) - uint64(from); span < math.MaxUint64 {
		n, err := s.below(span + 1)
		return int(uint64(from) + n), err
	}
	b, err := s.next(8)
	if err != nil {
		return nil, err
	}
	return int(encoding.BigEndian.Uint64(b)), nil
}

func randomText(m *evaluation, a args) (any, error) {
	length, err := a.whole(0)
	if err != nil {
		return nil, err
	}
	if length < 1 || length > maxRandomText {
		return nil, failf("argument 1 of randomText must be from 1 to %d", maxRandomText)
	}
	text := alphanumeric
	if a.has(1) {
		if text, err = a.text(1); err != nil {
			return nil, err
		}
	}
	if len(text) > 4*maxAlphabet {
		return nil, failf("argument 2 of randomText must have 1 to %d characters", maxAlphabet)
	}
	alphabet := []rune(text)
	if len(alphabet) == 0 || len(alphabet) > maxAlphabet {
		return nil, failf("argument 2 of randomText must have 1 to %d characters", maxAlphabet)
	}
	s, err := m.random(a)
	if err != nil {
		return nil, err
	}
	if err := m.growText(8*length + 4*len(alphabet)); err != nil {
		return nil, err
	}
	out := make([]rune, length)
	for i := range out {
		n, err := s.below(uint64(len(alphabet)))
		if err != nil {
			return nil, err
		}
		out[i] = alphabet[n]
	}
	return string(out), nil
}
