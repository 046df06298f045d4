package account

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/fault"
)

// cheap makes hashes fast in tests that do not depend on the cost.
var cheap = Cost{Memory: 16, Passes: 1, Threads: 1}

// The default cost exceeds the minimum that OWASP recommends for argon2id (19 MiB
// with two passes).
func TestDefaultCost(t *testing.T) {
	t.Parallel()
	hash, err := NewService(nil).passwords.hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=65536,t=2,p=1$") {
		t.Errorf("a new hash is %q, %v", hash, err)
	}
}

func TestHashAndVerify(t *testing.T) {
	t.Parallel()
	h, ctx := newHasher(cheap), t.Context()
	hash, err := h.hash(ctx, "correct horse é")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=16,t=1,p=1$") {
		t.Fatalf("%q, %v", hash, err)
	}
	if again, _ := h.hash(ctx, "correct horse é"); again == hash {
		t.Error("two hashes of one password are the same")
	}
	for password, want := range map[string]bool{
		"correct horse é": true, "correct horse e\u0301": true, // decomposed
		"": false, "Correct horse é": false, "correct horse é ": false, strings.Repeat("x", 1<<20): false,
	} {
		if matches, outdated, err := h.verify(ctx, hash, password); matches != want || outdated || err != nil {
			t.Errorf("%.20q: %t, %t, %v", password, matches, outdated, err)
		}
	}
	if matches, _, err := h.verify(ctx, "", ""); matches || err != nil {
		t.Errorf("an empty password matches an empty hash: %t, %v", matches, err)
	}
	old := encode(Cost{8, 1, 1}, []byte("0123456789abcdef"), nil)
	if _, _, err := h.verify(ctx, old, "x"); err == nil {
		t.Error("a hash without a key is accepted")
	}
	key, _ := h.derive(ctx, Cost{8, 1, 1}, []byte("0123456789abcdef"), 32, "secret word")
	old = encode(Cost{8, 1, 1}, []byte("0123456789abcdef"), key)
	if matches, outdated, err := h.verify(ctx, old, "secret word"); !matches || !outdated || err != nil {
		t.Errorf("a hash of another cost: %t, %t, %v", matches, outdated, err)
	}
}

// A stored hash is decoded without loss or rejected, and its cost is bounded.
func FuzzStoredPassword(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg")
	f.Add("$argon2id$v=19$m=4294967295,t=1,p=1$AA$MDEyMzQ1Njc4OWFiY2RlZg")
	f.Add("$argon2i$v=19$m=8,t=1,p=1$AA$AA")
	f.Fuzz(func(t *testing.T, text string) {
		c, salt, key, err := decode(text)
		if err != nil {
			return
		}
		if c.Memory > maxCost.Memory || c.Passes > maxCost.Passes || c.Threads > maxCost.Threads || c.Passes == 0 || c.Threads == 0 || len(key) > 64 {
			t.Errorf("%q has the cost %+v", text, c)
		}
		again, salt2, key2, err := decode(encode(c, salt, key))
		if err != nil || again != c || string(salt2) != string(salt) || string(key2) != string(key) {
			t.Errorf("%q is decoded as %+v and then as %+v, %v", text, c, again, err)
		}
	})
}

// A few passwords are hashed at a time, some wait, and the rest are rejected.
func TestHashingIsBounded(t *testing.T) {
	t.Parallel()
	h := newHasher(cheap)
	for range maxConcurrentHashes {
		h.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		all      sync.WaitGroup
		mu       sync.Mutex
		rejected int
	)
	for range 100 {
		all.Go(func() {
			_, err := h.hash(ctx, "a password")
			mu.Lock()
			defer mu.Unlock()
			if fault.Is(err, fault.RateLimited) {
				if rejected++; rejected == 100-maxWaitingHashes-maxConcurrentHashes {
					cancel() // the waiting ones give up
				}
			} else if err == nil {
				t.Error("a password was hashed without a free slot")
			}
		})
	}
	all.Wait()
	if n := h.waiting.Load(); n != 0 {
		t.Errorf("%d are still waiting", n)
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		problem   string // part of the message; "" if the passwords are accepted
		passwords []string
	}{
		{"", []string{
			"correct horse", "correct horse battery", "twelve chars", "äöüÄÖÜßéèêçñ", "another long one", "only looking around", "a compiler of her own",
			"dk3k29fkw02k", "839265746352", "monkey dragon purple guitar", "Tr0ub4dor&3xyz", "my password is mauve", long(200),
		}},
		{"at least 12 characters", []string{"", "1234567890", "ten letter", "elevenchars", strings.Repeat("é", 11), strings.Repeat("e\u0301", 11)}},
		{"at most 200 bytes", []string{long(201), strings.Repeat("é", 101)}},
		{"too easy to guess", []string{
			"123456789012", "098765432109", "password1234", "Password2024!", "P@ssw0rd1234", "pa55word2026", "passwordpassword", "password8391", "a new password",
			"letmein12345", "iloveyou1234", "welcome12345!", "changeme1234", "administrator", "monkeydragon1", "summer winter", "Sommer2026!!", "Dezember2025",
			"qwertyuiop12", "qwertyuiopas", "q1w2e3r4t5y6", "1q2w3e4r5t6y", "1qaz2wsx3edc", "zaq12wsxcde3", "jkl;asdfjkl;", "112233445566", "abcdefghijkl", "zyxwvutsrqpo",
			"aaaaaaaaaaaa", "abababababab", "abcabcabcabc", "12341234abcd", strings.Repeat("abcd", 50), "trustno1trustno1", "correcthorsebatterystaple",
			"stepmill1234", "Stepmill2026!", "St3pm1ll-St3pm1ll", "ADA.lovelace@example.com", "ada.lovelace", "adalovelace1", "Ada Lovelace 1815", "lovelace2026!", "byron1byron2", "example12345",
		}},
	} {
		for _, password := range tc.passwords {
			err := checkPassword(password, "ada.lovelace@example.com", "Ada Byron")
			if (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%.40q: got %v, want %q (about %d bits)", password, err, tc.problem, guessBits(password, knownWords("ada.lovelace@example.com", "Ada Byron")))
			}
		}
	}
}

// long returns a password of n bytes without a pattern.
func long(n int) string {
	sum := sha256.Sum256([]byte("seed"))
	text := ""
	for len(text) < n {
		text += base64.RawStdEncoding.EncodeToString(sum[:])
		sum = sha256.Sum256(sum[:])
	}
	return text[:n]
}

// Any text has an estimate between nothing and the bits of its characters.
func FuzzGuessBits(f *testing.F) {
	f.Add("Password2024!", "ada@example.com")
	f.Add(strings.Repeat("a1B$", 50), "")
	f.Fuzz(func(t *testing.T, password, email string) {
		if len(password) > maxPassword {
			return
		}
		bits := guessBits(password, knownWords(email, ""))
		if bits < 0 || bits > letterBits*utf8.RuneCountInString(strings.ToLower(password)) {
			t.Errorf("%q has %d bits", password, bits)
		}
	})
}
