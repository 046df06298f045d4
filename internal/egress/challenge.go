package egress

import (
	"io"
	"net/http"
)

const (
	// maxAnswers is how many challenges of a server are answered for one request: the first,
	// and another one if the server says that it is only newer.
	maxAnswers = 2
	// maxChallengeBody is how much is read of a response with a challenge, so that its
	// connection can be used again.
	maxChallengeBody = 64 << 10
)

// exchange sends a request with its credential and, if the server asks for that, once more
// with the answer to its challenge. It returns the response.
func (c *Client) exchange(through route, req *http.Request, r Request) (*http.Response, error) {
	sent, err := authenticate(req, r.Credential)
	if err != nil {
		return nil, err
	}
	answerer, ok := r.Credential.(Answerer)
	if !ok || !answerer.Allows(req.URL) {
		return roundTrip(through, sent)
	}
	resp, err := ask(through, req, sent, r.Upload != nil)
	for answers := 0; err == nil && resp.StatusCode == http.StatusUnauthorized && answers < maxAnswers; answers++ {
		next, answerErr := answer(answerer, req, resp, answers > 0)
		if next == nil && answerErr == nil {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, maxChallengeBody)
		resp.Body.Close()
		if answerErr != nil {
			return nil, answerErr
		}
		resp, err = roundTrip(through, next)
	}
	return resp, err
}

// ask sends a request without an answer. A streamed body is announced first: a server that
// knows this responds with its challenge before it has read the body.
func ask(through route, req, sent *http.Request, isStreamed bool) (*http.Response, error) {
	if !isStreamed {
		return roundTrip(through, sent)
	}
	announced := sent.Clone(sent.Context())
	announced.Header.Set("Expect", "100-continue")
	resp, err := roundTrip(through, announced)
	if err != nil || resp.StatusCode != http.StatusExpectationFailed {
		return resp, err
	}
	resp.Body.Close()
	if sent.Body, err = req.GetBody(); err != nil {
		return nil, fail(InvalidRequest, err, "the body of the request could not be read")
	}
	return roundTrip(through, sent)
}

// answer returns a request with the answer to the challenge of a response, or nil if there
// is none to answer.
func answer(with Answerer, req *http.Request, resp *http.Response, isRetry bool) (*http.Request, error) {
	next, err := authenticate(req, with)
	if err != nil {
		return nil, err
	}
	answered, err := with.Answer(next, resp.Header, isRetry)
	switch {
	case err != nil:
		return nil, fail(InvalidResponse, err, "%s asks for a credential in a way that cannot be answered: %v", req.URL.Hostname(), err)
	case !answered:
		return nil, nil
	case req.ContentLength == 0:
		return next, nil
	}
	if next.Body, err = req.GetBody(); err != nil {
		return nil, fail(InvalidRequest, err, "the body of the request could not be read")
	}
	return next, nil
}

func roundTrip(through route, req *http.Request) (*http.Response, error) {
	resp, err := through.to(req.URL).RoundTrip(req)
	if err != nil {
		return nil, classifyError(req.Context(), req.URL.Hostname(), err)
	}
	return resp, nil
}
