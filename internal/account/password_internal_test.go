package account

import (
	"context"
	"strings"
	"sync"
	"testing"

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
	for password, ok := range map[string]bool{
		"correct horse": true, "ten letter": true, "ninechars": false, strings.Repeat("é", 10): false, "äöüÄÖÜßéèê": true,
		strings.Repeat("abcd", 50): true, strings.Repeat("abcd", 50) + "e": false, "aaaaaaaaaaaa": false, "abababababab": false,
		"ADA.lovelace@example.com": false, "ada.lovelace": false,
	} {
		if err := checkPassword(password, "ada.lovelace@example.com"); (err == nil) != ok {
			t.Errorf("%q: %v", password, err)
		}
	}
}
