// Package jsonpointer owns the writing of JSON pointers (RFC 6901), with which
// problems name their place in a document.
package jsonpointer

import "strings"

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// Of is the pointer that leads through the given members.
func Of(members ...string) string {
	var b strings.Builder
	for _, member := range members {
		b.WriteByte('/')
		b.WriteString(escape.Replace(member))
	}
	return b.String()
}
