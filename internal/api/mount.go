package api

import "strings"

// mount is a way to the routes: the same table is there twice, for programs with
// a key and for people with a session. What counts on one never counts on the
// other.
type mount int

const (
	// open paths need neither.
	withNothing mount = iota
	// /v1 takes the key in the Authorization header and no cookie.
	withKey
	// /ui/v1 takes the session in a cookie and no key.
	withSession
)

const (
	keyPrefix     = "/v1"
	sessionPrefix = "/ui"
)

// mountOf is the mount that a path is on.
func mountOf(path string) mount {
	switch {
	case strings.HasPrefix(path, keyPrefix):
		return withKey
	case strings.HasPrefix(path, sessionPrefix+keyPrefix):
		return withSession
	default:
		return withNothing
	}
}

// located makes the address of what was made one on the mount of the caller.
func (m mount) located(r *reply) *reply {
	if at := r.header["Location"]; m == withSession && strings.HasPrefix(at, keyPrefix) {
		return r.with("Location", sessionPrefix+at)
	}
	return r
}

// actorName is what the log calls the id of who acts.
func (m mount) actorName() string {
	if m == withSession {
		return "user_id"
	}
	return "key_id"
}
