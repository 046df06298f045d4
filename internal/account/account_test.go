package account_test

import (
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
			t.Errorf("%q became %q, %v", given, got, err)
		}
		if f, ok := fault.As(err); err != nil && (!ok || f.Details[0].Pointer != "/email") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// An address that was accepted is in its one form already.
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
			t.Errorf("%q became %q and then %q, %v", text, email, again, err)
		}
		if strings.ContainsAny(email, " \r\n\t<>,;") || strings.Count(email, "@") != 1 || len(email) > 254 {
			t.Errorf("%q became %q", text, email)
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
