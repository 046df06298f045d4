// Package jsonpointer builds JSON Pointers (RFC 6901), with which errors name
// their place in a document.
package jsonpointer

import "strings"

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// Of returns the pointer made of the given reference tokens.
func Of(members ...string) string {
	var b strings.Builder
	for _, member := range members {
		b.WriteByte('/')
		b.WriteString(escape.Replace(member))
	}
	return b.String()
}
