package transport

import "strings"

// mount is a prefix of the route table. The table is mounted twice: for programs
// with an API key and for people with a session. Neither mount accepts the
// credentials of the other.
type mount int

const (
	// mountPublic covers paths that need neither.
	mountPublic mount = iota
	// mountKey is /v1. It accepts a key in the Authorization header and no cookie.
	mountKey
	// mountSession is /ui/v1. It accepts a session cookie and no key.
	mountSession
)

const (
	keyPrefix     = "/v1"
	sessionPrefix = "/ui"
)

func mountOf(path string) mount {
	switch {
	case strings.HasPrefix(path, keyPrefix):
		return mountKey
	case strings.HasPrefix(path, sessionPrefix+keyPrefix):
		return mountSession
	default:
		return mountPublic
	}
}

func (m mount) prefixLocation(r *Reply) *Reply {
	if at := r.header["Location"]; m == mountSession && strings.HasPrefix(at, keyPrefix) {
		return r.WithHeader("Location", sessionPrefix+at)
	}
	return r
}

func (m mount) actorLogKey() string {
	if m == mountSession {
		return "user_id"
	}
	return "key_id"
}
