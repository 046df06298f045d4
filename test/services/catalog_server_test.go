package services_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
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
	sent      []egress.Request
}

// tokens is the answer of all token endpoints.
const tokens = `{"access_token": "a-token", "token_type": "Bearer", "expires_in": 3600, "instance_url": "https://acme.my.salesforce.com", "id": "https://login.salesforce.com/id/00D/005"}`

// connectionTest is the answer of all tests of connections.
const connectionTest = `{"indexes": [{"name": "articles", "host": "articles-4zo0ijk.svc.aped-4627-b74a.pinecone.io"}]}`

// begin makes the hosts of a case answer with its exchanges.
func (s *replayed) begin(exchanges []replay.Exchange) *replayedCase {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &replayedCase{exchanges: exchanges}
	for _, host := range hostsOf(exchanges) {
		s.cases[host] = one
	}
	return one
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
	if strings.HasSuffix(r.URL.Path, "/token") {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, tokens)
		return
	}
	if one == nil {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, connectionTest)
		return
	}
	path := strings.Replace(r.URL.EscapedPath(), "/bot"+token+"/", "/{auth}/", 1)
	path = strings.Replace(path, "/file/bot"+token+"/", "/file/{auth}/", 1)
	target := "https://" + r.Host + path
	if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	one.sent = append(one.sent, egress.Request{Method: r.Method, URL: target, Header: r.Header, Body: body})
	if n := len(one.sent); n <= len(one.exchanges) {
		if err := one.exchanges[n-1].Answer.Send(w); err != nil {
			panic(err) // it is written to memory
		}
		return
	}
	w.WriteHeader(http.StatusTeapot)
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
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
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
	return timestamp.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339, found)
		if err != nil || strings.Contains(want, found) {
			return found
		}
		for _, one := range timestamp.FindAllString(want, -1) {
			// The clock of the server began at the time of the tests when the server was started.
			if then, err := time.Parse(time.RFC3339, one); err == nil && !at.Before(then) && at.Sub(then) < maxDrift {
				return one
			}
		}
		return found
	})
}

// maxDrift is how much later than in tests it can be.
const maxDrift = 15 * time.Minute
