package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is what a key may do. Scopes do not imply each other, except that
// admin has everything.
type Scope string

// The scopes, the mark of a route that needs no key at all, and that of one for
// everybody who is signed in, whatever their role.
const (
	Read    Scope = "read"
	Write   Scope = "write"
	Execute Scope = "execute"
	Admin   Scope = "admin"
	Public  Scope = "public"
	Session Scope = "session"
)

// Scopes lists what a key can hold.
func Scopes() []Scope { return []Scope{Read, Write, Execute, Admin} }

// Grants tells whether a set of scopes allows what needs the given one.
func Grants(held []Scope, needed Scope) bool {
	return needed == Public || needed == Session || slices.Contains(held, Admin) || slices.Contains(held, needed)
}

// ParseScopes checks names and brings them into a fixed order without
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

// JoinScopes writes scopes for storing.
func JoinScopes(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, ",")
}

// SplitScopes reads what JoinScopes wrote.
func SplitScopes(text string) []Scope {
	var out []Scope
	for name := range strings.SplitSeq(text, ",") {
		if name != "" {
			out = append(out, Scope(name))
		}
	}
	return out
}
