package connection

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/digest"
)

// digestCredential answers the challenges of HTTP digest authentication. It implements
// egress.Answerer.
type digestCredential struct {
	credential
	with digest.Credentials
}

// Apply removes what a step has set in its place: a server challenges only requests
// without it.
func (c digestCredential) Apply(r *http.Request) error {
	r.Header.Del("Authorization")
	return c.credential.Apply(r)
}

// Answer answers the challenge of a response. If the server rejects an answer, another one
// would not help, unless the server says so.
func (c digestCredential) Answer(r *http.Request, response http.Header, isRetry bool) (bool, error) {
	challenge, err := digest.Find(response)
	switch {
	case isRetry && (challenge == nil || !challenge.Stale):
		return false, nil
	case challenge == nil:
		return false, err
	}
	value, err := challenge.Answer(c.with, r.Method, r.URL.RequestURI(), r.GetBody)
	if err == nil {
		r.Header.Set("Authorization", value)
	}
	return err == nil, err
}
