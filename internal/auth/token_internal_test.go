package auth

import (
	"regexp"
	"strings"
	"testing"
)

var form = regexp.MustCompile(`^smk_[0-9A-Za-z]{8}_[0-9A-Za-z]{46}$`)

func TestTokenFormat(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		token, lookup := newToken()
		if !form.MatchString(token) || seen[token] {
			t.Fatalf("%q", token)
		}
		seen[token] = true
		if got, ok := parseToken(token); !ok || got != lookup {
			t.Fatalf("%q: got %q, %v", token, got, ok)
		}
	}
}

func TestParseTokenRejectsMalformed(t *testing.T) {
	t.Parallel()
	token, _ := newToken()
	for i := range token {
		changed := []byte(token)
		changed[i] = 'x'
		if token[i] == 'x' {
			changed[i] = 'y'
		}
		if _, ok := parseToken(string(changed)); ok {
			t.Fatalf("changing character %d is not detected", i)
		}
	}
	for _, text := range []string{"", "smk_", token + "0", token[1:], strings.ToLower(token), strings.Repeat("a", len(token))} {
		if _, ok := parseToken(text); ok && text != token {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, scope := range Scopes() {
		if !Grants([]Scope{Admin}, scope) || !Grants([]Scope{scope}, scope) || Grants(nil, scope) {
			t.Errorf("%s", scope)
		}
		for _, other := range Scopes() {
			if other != scope && other != Admin && Grants([]Scope{other}, scope) {
				t.Errorf("%s implies %s", other, scope)
			}
		}
	}
	if !Grants(nil, Public) {
		t.Error("a public route requires a scope")
	}
	scopes, err := ParseScopes([]string{"write", "read", "write"})
	if err != nil || JoinScopes(scopes) != "read,write" {
		t.Errorf("%v, %v", scopes, err)
	}
	if _, err := ParseScopes([]string{"root"}); err == nil {
		t.Error("an unknown scope is accepted")
	}
}
