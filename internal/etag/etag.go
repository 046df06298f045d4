// Package etag owns the headers that compare ETags: If-Match, with which clients change
// only what they have read, and If-None-Match, with which caches revalidate.
package etag

import (
	"slices"
	"strings"
)

// Match is an If-Match header: the ETags that the caller accepts. The zero Match
// accepts all.
type Match struct {
	Given bool
	Any   bool
	Tags  []string
}

// ParseMatch reads an If-Match header.
func ParseMatch(header string) Match {
	m := Match{Given: header != ""}
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		m.Any = m.Any || tag == "*"
		m.Tags = append(m.Tags, tag)
	}
	return m
}

// Accepts reports whether what has the ETag may be changed.
func (m Match) Accepts(tag string) bool { return !m.Given || m.Any || slices.Contains(m.Tags, tag) }

// NoneMatches reports whether an If-None-Match header has the tag. It ignores weakness,
// which a cache in between may have added.
func NoneMatches(header, tag string) bool {
	for given := range strings.SplitSeq(header, ",") {
		given = strings.TrimSpace(given)
		if given == "*" || strings.TrimPrefix(given, "W/") == tag {
			return true
		}
	}
	return false
}
