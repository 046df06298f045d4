package trigger

import "testing"

func TestTokens(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		token := NewToken()
		if !ValidToken(token) || seen[token] || len(token) != 36 {
			t.Fatalf("%q", token)
		}
		seen[token] = true
		for _, other := range []string{"", token[:35], token + "A", "A" + token[:35], token[:32] + "....", token[1:] + token[:1]} {
			if ValidToken(other) {
				t.Fatalf("%q passes for %q", other, token)
			}
		}
	}
}
