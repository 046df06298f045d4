// Package jsonpointer builds and splits JSON Pointers (RFC 6901), with which errors name
// their place in a document.
package jsonpointer

import "strings"

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// Of returns the pointer made of the given reference tokens.
func Of(members ...string) string {
	var b strings.Builder
	for _, member := range members {
		b.WriteByte('/')
		b.WriteString(escape.Replace(member))
	}
	return b.String()
}

// Split returns the reference tokens of a pointer.
func Split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	members := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, member := range members {
		members[i] = unescape.Replace(member)
	}
	return members
}
