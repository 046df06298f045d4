package account_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

func TestEmail(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		" Ada@Example.COM ":                    "ada@example.com",
		"a@b":                                  "a@b",
		"first.last+tag@sub.example.co.uk":     "first.last+tag@sub.example.co.uk",
		"o'brien@example.com":                  "o'brien@example.com",
		"jose\u0301@example.com":               "josé@example.com",
		"ada@münchen.example":                  "ada@münchen.example",
		strings.Repeat("a", 64) + "@b.c":       strings.Repeat("a", 64) + "@b.c",
		strings.Repeat("a", 65) + "@b.c":       "",
		"a@" + strings.Repeat("b.", 130) + "c": "",
		"a@" + strings.Repeat("b", 64):         "",
		"":                                     "", "ada": "", "@example.com": "", "ada@": "", "a@b@c": "", "a b@c": "", "a@b c": "", "a@.c": "", "a@c.": "",
		"a@b..c": "", "a@-b": "", "a@b-": "", "<a@b.c>": "", "a@b.c\r\nBcc: x@y.z": "", "a,b@c": "", "a\x00@b": "", "a\xff@b": "", "a@[127.0.0.1]": "", "a\u200b@b": "",
	} {
		got, err := account.Email("/email", given)
		if (err == nil) != (want != "") || got != want {
			t.Errorf("%q: got %q, %v", given, got, err)
		}
		if f, ok := fault.As(err); err != nil && (!ok || f.Details[0].Pointer != "/email") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// Normalizing an accepted address again does not change it.
func FuzzEmail(f *testing.F) {
	for _, seed := range []string{"Ada@Example.com", "jose\u0301@example.com", "İ@example.com", "a@b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		email, err := account.Email("/email", text)
		if err != nil {
			return
		}
		again, err := account.Email("/email", email)
		if err != nil || again != email {
			t.Errorf("%q: got %q, then %q, %v", text, email, again, err)
		}
		if strings.ContainsAny(email, " \r\n\t<>,;") || strings.Count(email, "@") != 1 || len(email) > 254 {
			t.Errorf("%q: got %q", text, email)
		}
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	want := map[account.Role][]auth.Scope{
		account.Owner:    {auth.Read, auth.Write, auth.Execute, auth.Admin},
		account.Editor:   {auth.Read, auth.Write, auth.Execute},
		account.Operator: {auth.Read, auth.Execute},
		account.Viewer:   {auth.Read},
	}
	got := map[account.Role][]auth.Scope{}
	for _, role := range account.Roles() {
		got[role] = role.Scopes()
		if parsed, err := account.ParseRole("/role", string(role)); err != nil || parsed != role {
			t.Errorf("%s: %v, %v", role, parsed, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"", "Owner", "admin", "owner "} {
		if role, err := account.ParseRole("/role", name); err == nil || role.Scopes() != nil {
			t.Errorf("%q is a role", name)
		}
	}
}

// A long user agent is truncated at a character boundary.
func TestUserAgentIsTruncated(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.member(h.Admin, account.Viewer, "ada@example.com")
	for given, want := range map[string]string{
		strings.Repeat("a", 300):       strings.Repeat("a", 300),
		strings.Repeat("a", 301):       strings.Repeat("a", 300),
		strings.Repeat("é", 301):       strings.Repeat("é", 300),
		strings.Repeat("a", 299) + "é": strings.Repeat("a", 299) + "é",
	} {
		in := h.mustSignIn(h.people.SignIn(t.Context(), "ada@example.com", password, account.ClientInfo{Agent: given}))
		if got := h.wantIn(in).Session.Agent; got != want {
			t.Errorf("%q is stored as %q", given, got)
		}
	}
}

// A new user whose name is missing or invalid is named after the address.
func TestNameFromIdentityProvider(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60) + "@" + strings.Repeat("y", 60) + ".example"
	wide := strings.Repeat("é", 30) + "@" + strings.Repeat("ü", 30) + "." + strings.Repeat("ü", 30) + "." + strings.Repeat("ü", 30)
	h := newEnv(t)
	for i, tc := range []struct{ name, email, want string }{
		{" Ada  Lovelace ", "a@example.com", "Ada  Lovelace"},
		{"", "b@example.com", "b@example.com"},
		{"line\nbreak", "c@example.com", "c@example.com"},
		{strings.Repeat("n", 101), "d@example.com", "d@example.com"},
		{"", long, long[:100]},
		{"", wide, string([]rune(wide)[:100])},
	} {
		identity := account.Identity{Issuer: "https://id.example", Subject: fmt.Sprint(i), Email: tc.email, Verified: true, Name: tc.name}
		in := h.mustSignIn(h.people.SignInAs(t.Context(), identity, account.Viewer, account.ClientInfo{}))
		if got := h.user(in.User.ID).Name; got != tc.want {
			t.Errorf("name %q, address %q: the user is named %q, want %q", tc.name, tc.email, got, tc.want)
		}
	}
}
