package account

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	h, ctx := newHasher(), t.Context()
	hash, err := h.hash(ctx, "correct horse é")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=65536,t=2,p=1$") {
		t.Fatalf("%q, %v", hash, err)
	}
	if again, _ := h.hash(ctx, "correct horse é"); again == hash {
		t.Error("two hashes of one password are the same")
	}
	for password, want := range map[string]bool{
		"correct horse é": true, "correct horse e\u0301": true, // typed in another form
		"": false, "Correct horse é": false, "correct horse é ": false, strings.Repeat("x", 1<<20): false,
	} {
		if fits, outdated, err := h.verify(ctx, hash, password); fits != want || outdated || err != nil {
			t.Errorf("%.20q: %t, %t, %v", password, fits, outdated, err)
		}
	}
	if fits, _, err := h.verify(ctx, "", ""); fits || err != nil {
		t.Errorf("no password fits none: %t, %v", fits, err)
	}
	old := encode(cost{8, 1, 1}, []byte("0123456789abcdef"), nil)
	if _, _, err := h.verify(ctx, old, "x"); err == nil {
		t.Error("a hash without a key passes")
	}
	key, _ := h.derive(ctx, cost{8, 1, 1}, []byte("0123456789abcdef"), 32, "secret word")
	old = encode(cost{8, 1, 1}, []byte("0123456789abcdef"), key)
	if fits, outdated, err := h.verify(ctx, old, "secret word"); !fits || !outdated || err != nil {
		t.Errorf("a hash of another cost: %t, %t, %v", fits, outdated, err)
	}
}

// What is stored is read as it is or refused, and never asks for all memory.
func FuzzStoredPassword(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg")
	f.Add("$argon2id$v=19$m=4294967295,t=1,p=1$AA$MDEyMzQ1Njc4OWFiY2RlZg")
	f.Add("$argon2i$v=19$m=8,t=1,p=1$AA$AA")
	f.Fuzz(func(t *testing.T, text string) {
		c, salt, key, err := decode(text)
		if err != nil {
			return
		}
		if c.memory > most.memory || c.passes > most.passes || c.threads > most.threads || c.passes == 0 || c.threads == 0 || len(key) > 64 {
			t.Errorf("%q asks for %+v", text, c)
		}
		again, salt2, key2, err := decode(encode(c, salt, key))
		if err != nil || again != c || string(salt2) != string(salt) || string(key2) != string(key) {
			t.Errorf("%q is read as %+v and then as %+v, %v", text, c, again, err)
		}
	})
}

// Few are worked on at a time, some wait, and the others are sent away.
func TestPasswordsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHasher()
	for range hashesAtOnce {
		h.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		refused int
	)
	for range 100 {
		all.Go(func() {
			_, err := h.hash(ctx, "a password")
			mu.Lock()
			defer mu.Unlock()
			if fault.Is(err, fault.RateLimited) {
				if refused++; refused == 100-waitingHashes-hashesAtOnce {
					cancel() // those who wait give up
				}
			} else if err == nil {
				t.Error("a password was hashed beyond the bound")
			}
		})
	}
	all.Wait()
	if n := h.waiting.Load(); n != 0 {
		t.Errorf("%d still wait", n)
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
