package egress

import (
	"net/http"
	"net/url"
)

// Credential authenticates the requests to certain hosts.
type Credential interface {
	// Allows reports whether the credential may be sent to a URL.
	Allows(u *url.URL) bool
	// Apply adds the credential to a request, right before it is sent. It replaces
	// headers of the same name. It must not consume the body; GetBody returns another
	// reader of it.
	Apply(r *http.Request) error
	// TLS returns the settings of the connections to these hosts.
	TLS() TLS
}

// Answerer is a Credential that a server asks for: a first request is sent without it, and
// a 401 with a challenge from a host that it may be sent to is answered.
type Answerer interface {
	Credential
	// Answer adds to a request the answer to the challenge of a response. It reports false
	// if there is none to answer. isRetry says that the response is about an answer.
	Answer(r *http.Request, response http.Header, isRetry bool) (bool, error)
}

// authenticate returns the request as it is sent: with the credential, if there is
// one and it may be sent to this URL. The request itself stays without it, so that a
// redirect elsewhere, or an error, does not contain it.
func authenticate(req *http.Request, credential Credential) (*http.Request, error) {
	if credential == nil || !credential.Allows(req.URL) {
		return req, nil
	}
	sent := req.Clone(req.Context())
	if err := credential.Apply(sent); err != nil {
		return nil, fail(InvalidRequest, err, "the credential could not be added to the request: %v", err)
	}
	if !credential.Allows(sent.URL) {
		return nil, fail(Denied, nil, "the credential changed the host of the request")
	}
	return sent, nil
}

// checkCredential rejects a request to a host that must not see its credential. Only
// a redirect may lead there, and then without it.
func checkCredential(u *url.URL, credential Credential) error {
	if credential == nil || credential.Allows(u) {
		return nil
	}
	secure := *u
	secure.Scheme = "https"
	if u.Scheme == "http" && credential.Allows(&secure) {
		return fail(Denied, nil, "nothing was sent: the URL is on http, but the host %s of the connection means https; if the server has no TLS, the connection needs the host http://%s", u.Host, u.Host)
	}
	return fail(Denied, nil, "nothing was sent: the connection must not be used for %s://%s, which is not one of its hosts", u.Scheme, u.Host)
}
