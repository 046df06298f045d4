package fuzzapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// readBuffer is how much net/http reads before it looks at the request line.
const readBuffer = 4 << 10

// Fuzzer sends generated requests and checks the responses.
type Fuzzer struct {
	Checker    *Checker
	Sender     *Sender
	Identities []*Identity
	// Report is called with each new problem and a short request that shows it.
	Report func(Problem, *Request)
	// AfterResponse is called with each response, for callers whose session ended.
	AfterResponse func(*Request, *Response)

	Sent, Unavailable, Limited, GaveUp atomic.Int64

	mu       sync.Mutex
	busy     map[string]int // what unavailable responses said
	seen     map[string]bool
	statuses map[string]map[int]int // by operation
}

// Run sends requests for all operations in random order, over and over, until more
// returns false.
func (f *Fuzzer) Run(ctx context.Context, random *rand.Rand, more func() bool) {
	g := &generator{random: random, known: f.Checker.Known}
	for {
		for _, i := range random.Perm(len(f.Checker.Document.Operations)) {
			if !more() || ctx.Err() != nil {
				return
			}
			f.try(ctx, f.next(g, f.Checker.Document.Operations[i]))
		}
	}
}

// next generates a request.
func (f *Fuzzer) next(g *generator, op *Operation) *Request {
	as := f.Identities[0]
	if g.chance(40) {
		as = pick(g.random, f.Identities)
	}
	if op.SessionOnly && !as.Session && g.chance(90) {
		for _, other := range g.random.Perm(len(f.Identities)) {
			if f.Identities[other].Session {
				as = f.Identities[other]
			}
		}
	}
	g.edge = g.chance(10)
	d := g.draft(op, as)
	g.edge = false
	g.mutate(d, pick(g.random, []int{0, 0, 1, 1, 1, 1, 2, 3}))
	return d.finish()
}

// try sends a request. If there is a problem, it looks for a smaller request with the
// same problem and reports it.
func (f *Fuzzer) try(ctx context.Context, q *Request) {
	problems := f.send(ctx, q)
	if len(problems) == 0 || !f.isNew(q, problems[0]) {
		return
	}
	found := problems[0]
	smallest := shrink(q, func(smaller *Request) bool {
		for _, again := range f.send(ctx, smaller) {
			if again.Kind == found.Kind {
				found = again
				return true
			}
		}
		return false
	})
	f.Report(found, smallest)
}

// isNew reports whether a problem of this kind was not found for the operation before.
func (f *Fuzzer) isNew(q *Request, found Problem) bool {
	id := "unknown"
	if op := f.Checker.Document.Find(q.Method, q.path()); op != nil {
		id = op.ID
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	known := f.seen[id+found.Kind]
	f.seen[id+found.Kind] = true
	return !known
}

// send sends a request and returns the problems of its response.
func (f *Fuzzer) send(ctx context.Context, q *Request) []Problem {
	response, err := f.Sender.Send(ctx, q)
	f.Sent.Add(1)
	switch {
	case errors.Is(err, errGaveUp):
		f.GaveUp.Add(1)
		return nil
	case ctx.Err() != nil:
		return nil
	case err != nil && q.needsWire() && q.malformed() && len(q.wire()) > readBuffer:
		return nil // net/http closes the connection with unread data, which resets it
	case errors.Is(err, io.ErrUnexpectedEOF) && (q.Raw != nil || q.Cut > 0) && f.isStream(q):
		return nil // a client that sends no more has gone away: its stream ends before it begins
	case err != nil:
		return problem("no response", "%v", err)
	}
	f.count(q, response)
	found := f.Checker.Check(q, response)
	if q.Method == http.MethodDelete && response.Status == http.StatusNoContent {
		f.Checker.Known.forget(idInPath.FindAllString(q.path(), -1))
	}
	if response.Status < 300 && !strings.Contains(q.path(), "/openapi.") { // whose examples have ids
		f.Checker.Known.Learn(q.As.Workspace, response.Body)
		f.Checker.Known.Add("etags", response.Header.Get("ETag"))
	}
	if f.AfterResponse != nil {
		f.AfterResponse(q, response)
	}
	return found
}

// isStream reports whether the operation of a request returns a stream.
func (f *Fuzzer) isStream(q *Request) bool {
	op := f.Checker.Document.Find(q.Method, q.path())
	return op != nil && op.node.At("responses", "200", "content").has("text/event-stream")
}

func (f *Fuzzer) count(q *Request, a *Response) {
	switch a.Status {
	case 429:
		f.Limited.Add(1)
	case 503:
		f.Unavailable.Add(1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Status == http.StatusServiceUnavailable {
		if f.busy == nil {
			f.busy = map[string]int{}
		}
		f.busy[message(a)]++
	}
	op := f.Checker.Document.Find(q.Method, q.path())
	if op == nil {
		return
	}
	if f.statuses == nil {
		f.statuses = map[string]map[int]int{}
	}
	if f.statuses[op.ID] == nil {
		f.statuses[op.ID] = map[int]int{}
	}
	f.statuses[op.ID][a.Status]++
}

// Busy returns what unavailable responses said, with their number.
func (f *Fuzzer) Busy() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.busy)
}

// Unreached returns the operations that no request succeeded with.
func (f *Fuzzer) Unreached() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, op := range f.Checker.Document.Operations {
		reached := false
		for status := range f.statuses[op.ID] {
			reached = reached || status < 400
		}
		if !reached {
			out = append(out, fmt.Sprintf("%s %v", op.ID, f.statuses[op.ID]))
		}
	}
	return out
}
