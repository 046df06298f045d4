package services_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

// replayed stands for all services. It gives the requests to a host the answers of the case
// in progress there, in order, and records them.
type replayed struct {
	mu sync.Mutex
	// cases has the case in progress by host.
	cases map[string]*replayedCase
}

// replayedCase is a case of tests.yaml in progress.
type replayedCase struct {
	exchanges []replay.Exchange
	// register has the requests that register a URL, which come at any time, and unregister
	// those that take it back, which come at the end.
	register, unregister []replay.Exchange
	sent                 []egress.Request
	ended, unregistered  bool
}

// tokens is the answer of all token endpoints.
const tokens = `{"access_token": "a-token", "token_type": "Bearer", "expires_in": 3600, "instance_url": "https://acme.my.salesforce.com", "id": "https://login.salesforce.com/id/00D/005"}`

// connectionTest is the answer of all tests of connections.
const connectionTest = `{"indexes": [{"name": "articles", "host": "articles-4zo0ijk.svc.aped-4627-b74a.pinecone.io"}]}`

// begin makes the hosts of a case answer with its exchanges.
func (s *replayed) begin(one *replayedCase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, host := range hostsOf(slices.Concat(one.exchanges, one.register, one.unregister)) {
		s.cases[host] = one
	}
}

// end expects that the URL of a case is taken back.
func (s *replayed) end(one *replayedCase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.ended = true
}

// isUnregistered reports whether the URL of a case was taken back.
func (s *replayed) isUnregistered(one *replayedCase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.unregistered
}

// hostsOf returns the hosts of the requests.
func hostsOf(exchanges []replay.Exchange) []string {
	var out []string
	for _, e := range exchanges {
		address, _, _ := strings.Cut(strings.TrimPrefix(e.Request.URL, "https://"), "/")
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}

// ServeHTTP implements http.Handler.
func (s *replayed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.cases[r.Host]
	if name := path.Base(r.URL.Path); name == "token" || name == "tokens" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, tokens)
		return
	}
	if one == nil {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, connectionTest)
		return
	}
	escaped := strings.Replace(r.URL.EscapedPath(), "/bot"+token+"/", "/{auth}/", 1)
	escaped = strings.Replace(escaped, "/file/bot"+token+"/", "/file/{auth}/", 1)
	target := "https://" + r.Host + escaped
	if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	answer, ok := one.answer(egress.Request{Method: r.Method, URL: target, Header: r.Header, Body: body})
	if !ok {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if err := answer.Send(w); err != nil {
		panic(err) // it is written to memory
	}
}

// answer records a request and returns its answer.
func (c *replayedCase) answer(sent egress.Request) (replay.Answer, bool) {
	n := len(c.sent)
	if n >= len(c.exchanges) || !isFor(c.exchanges[n].Request, sent) {
		if answer, ok := c.answerAboutHook(sent); ok {
			return answer, true
		}
	}
	c.sent = append(c.sent, sent)
	if n >= len(c.exchanges) {
		return replay.Answer{}, false
	}
	return c.exchanges[n].Answer, true
}

// answerAboutHook returns the answer to a request that registers a URL or takes it back. The
// tests of hooks can have other settings than those of the trigger, and other ids of what
// they take back.
func (c *replayedCase) answerAboutHook(sent egress.Request) (replay.Answer, bool) {
	expected := c.register
	if c.ended {
		expected = c.unregister
	}
	address, _, _ := strings.Cut(sent.URL, "?")
	host := hostsOf([]replay.Exchange{{Request: replay.Request{URL: address}}})
	at := slices.IndexFunc(expected, func(e replay.Exchange) bool {
		return sent.Method == cmp.Or(e.Request.Method, http.MethodGet) && slices.Equal(host, hostsOf([]replay.Exchange{e})) &&
			(c.ended || path.Base(address) == path.Base(e.Request.URL))
	})
	if at < 0 {
		return replay.Answer{}, false
	}
	c.unregistered = c.ended
	return expected[at].Answer, true
}

// isFor reports whether a request has the method and the URL of the expected one.
func isFor(want replay.Request, sent egress.Request) bool {
	address, _, _ := strings.Cut(sent.URL, "?")
	return address == want.URL && sent.Method == cmp.Or(want.Method, http.MethodGet)
}

// compare compares what was sent, by a run, with the exchanges.
func (s *replayed) compare(one *replayedCase, run string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, sent := range one.sent {
		if n == len(one.exchanges) {
			return fmt.Errorf("it sends a request that is not expected: %s %s", sent.Method, sent.URL)
		}
		want := one.exchanges[n].Request
		if err := want.Compare(one.asInTests(sent, want, run)); err != nil {
			return fmt.Errorf("request %d: %w", n+1, err)
		}
	}
	if len(one.sent) < len(one.exchanges) {
		missing := one.exchanges[len(one.sent)].Request
		return fmt.Errorf("it sends %d of %d requests; the next is %s %s", len(one.sent), len(one.exchanges), missing.Method, missing.URL)
	}
	return nil
}

// asInTests returns a request with what differs from run to run as in tests: the id of the
// run in keys, what is made of keys, and the present time.
func (c *replayedCase) asInTests(sent egress.Request, want replay.Request, run string) egress.Request {
	encoded, err := json.Marshal(want)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	replace := func(text string) string { return c.textAsInTests(text, string(encoded), run) }
	out := egress.Request{Method: sent.Method, Body: []byte(replace(string(sent.Body))), Header: http.Header{}}
	for name, values := range sent.Header {
		out.Header.Set(name, replace(values[0]))
	}
	address, query, hasQuery := strings.Cut(sent.URL, "?")
	out.URL = replace(address)
	if values, err := url.ParseQuery(query); err == nil && hasQuery {
		for _, list := range values {
			for i := range list {
				list[i] = replace(list[i])
			}
		}
		out.URL += "?" + values.Encode()
	}
	return out
}

var (
	// hashed matches UUIDs and other texts that are made of a key by a hash function.
	hashed    = regexp.MustCompile(`\b([0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|[0-9a-f]{25}|[0-9a-f]{64})\b`)
	epoch     = regexp.MustCompile(`\b1[78]\d{8}(\d{3})?\b`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`) // without an offset, in UTC
)

func (c *replayedCase) textAsInTests(text, want, run string) string {
	text = strings.ReplaceAll(text, run, "run_1")
	missing := slices.DeleteFunc(hashed.FindAllString(want, -1), func(one string) bool { return strings.Contains(text, one) })
	text = hashed.ReplaceAllStringFunc(text, func(found string) string {
		at := slices.IndexFunc(missing, func(one string) bool { return len(one) == len(found) })
		if at < 0 || strings.Contains(want, found) {
			return found
		}
		defer func() { missing = slices.Delete(missing, at, at+1) }()
		return missing[at]
	})
	text = epoch.ReplaceAllStringFunc(text, func(found string) string {
		for _, one := range epoch.FindAllString(want, -1) {
			if len(one) == len(found) && isLater(epochTime(found), epochTime(one)) {
				return one
			}
		}
		return found
	})
	return timestamp.ReplaceAllStringFunc(text, func(found string) string {
		at, err := timestampTime(found)
		if err != nil || strings.Contains(want, found) {
			return found
		}
		for _, one := range timestamp.FindAllString(want, -1) {
			if then, err := timestampTime(one); err == nil && isLater(at, then) {
				return one
			}
		}
		return found
	})
}

// isLater reports whether a time can be one of the tests in a run. The clock of the server
// began at the time of the tests when the server was started.
func isLater(at, inTests time.Time) bool {
	const maxDrift = 15 * time.Minute
	return !at.Before(inTests) && at.Sub(inTests) < maxDrift
}

// timestampTime returns the time that a text says which timestamp matches.
func timestampTime(text string) (time.Time, error) {
	const withoutOffset = "2006-01-02T15:04:05"
	if at, err := time.Parse(withoutOffset, text); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}

// epochTime returns the time that seconds or milliseconds say.
func epochTime(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	if len(text) > len("1794992400") {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}
