package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is a permission of an API key. Scopes do not imply each other, except
// that admin implies all others.
type Scope string

// The scopes. Public and Session cannot be given to a key: they mark routes that
// need no key at all, and routes for signed-in users of any role.
const (
	Read    Scope = "read"
	Write   Scope = "write"
	Execute Scope = "execute"
	Admin   Scope = "admin"
	Public  Scope = "public"
	Session Scope = "session"
)

// Scopes lists the scopes that a key can have.
func Scopes() []Scope { return []Scope{Read, Write, Execute, Admin} }

// Grants reports whether the held scopes satisfy the needed one.
func Grants(held []Scope, needed Scope) bool {
	return needed == Public || needed == Session || slices.Contains(held, Admin) || slices.Contains(held, needed)
}

// ParseScopes returns the scopes with the given names, in a fixed order and without
// duplicates.
func ParseScopes(names []string) ([]Scope, error) {
	var out []Scope
	for _, name := range names {
		if !slices.Contains(Scopes(), Scope(name)) {
			return nil, fmt.Errorf("unknown scope %q: choose from read, write, execute, admin", name)
		}
	}
	for _, scope := range Scopes() {
		if slices.Contains(names, string(scope)) {
			out = append(out, scope)
		}
	}
	return out, nil
}

// JoinScopes returns scopes in the form in which they are stored.
func JoinScopes(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, ",")
}

// SplitScopes parses the result of JoinScopes.
func SplitScopes(text string) []Scope {
	var out []Scope
	for name := range strings.SplitSeq(text, ",") {
		if name != "" {
			out = append(out, Scope(name))
		}
	}
	return out
}
