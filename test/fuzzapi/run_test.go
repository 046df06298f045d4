package fuzzapi_test

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/fuzzapi"
	"github.com/stepmill/stepmill/test/harness"
)

const (
	timeVariable = "STEPMILL_FUZZ_TIME" // set by make fuzz-api
	seedVariable = "FUZZ_SEED"
	// requests is how many requests are sent without a time, with the same seed.
	requests  = 1200
	fixedSeed = 1
	// workers send requests at the same time if there is a time.
	workers = 4
	// maxProblems is after how many problems the fuzzer stops.
	maxProblems = 10
	// maxGrowth is how much more live memory the server may have at the end. What it
	// caches is far below that.
	maxGrowth = 64 << 20
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestAPI sends requests derived from the OpenAPI document to the service and checks
// the responses. With a time it does so for that long, with a new seed.
func TestAPI(t *testing.T) {
	document, err := fuzzapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	server := harness.Start(t, t.TempDir(), harness.ProfilingArgs(
		"--egress-allow", "127.0.0.0/8", "--preauth-rpm", "10000000", "--streams-per-workspace", "10000")...)
	server.Metrics(t) // finds its address before the log grows
	w := newWorld(t, server)
	sender := fuzzapi.NewSender(server.URL)
	t.Cleanup(sender.Close)
	var problems atomic.Int32
	fuzzer := &fuzzapi.Fuzzer{
		Checker:    &fuzzapi.Checker{Document: document, Known: w.known, Secrets: w.secrets, Paths: []string{server.Dir}},
		Sender:     sender,
		Identities: w.identities,
		Report: func(p fuzzapi.Problem, q *fuzzapi.Request) {
			problems.Add(1)
			t.Errorf("%s: %s\nas %s, with %v\n%s", p.Kind, p.Text, q.As.Name, q.Mutations, q.Curl(server.URL))
		},
		AfterResponse: w.renewSessions,
	}
	before := server.LiveHeap(t)
	run(t, fuzzer, func() bool { return problems.Load() < maxProblems })

	t.Logf("%d requests: %d rate limited, %d unavailable, %d not awaited", fuzzer.Sent.Load(), fuzzer.Limited.Load(), fuzzer.Unavailable.Load(), fuzzer.GaveUp.Load())
	for message, times := range fuzzer.Busy() {
		t.Logf("unavailable %d times: %s", times, message)
	}
	for _, line := range fuzzer.Unreached() {
		t.Logf("no request succeeded: %s", line)
	}
	server.Expect(t, 200, "GET", "/readyz", nil)
	server.Expect(t, 200, "GET", "/v1/workflows", nil)
	harness.Eventually(t, "the memory of the requests is released", func() bool { return server.LiveHeap(t)-before < maxGrowth })
}

func (w *world) renewSessions(q *fuzzapi.Request, a *fuzzapi.Response) {
	for _, s := range w.sessions {
		if q.As.Name == s.email {
			s.renew(q, a)
		}
	}
}

// run sends a fixed number of requests, or as many as fit in the time.
func run(t *testing.T, fuzzer *fuzzapi.Fuzzer, more func() bool) {
	t.Helper()
	text := os.Getenv(timeVariable)
	if text == "" {
		left := requests
		fuzzer.Run(t.Context(), harness.Random(fixedSeed, 0), func() bool { left--; return left >= 0 && more() })
		return
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", timeVariable, err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("seed %d (repeat with %s=%[1]d)", seed, seedVariable)
	var over atomic.Bool
	defer time.AfterFunc(duration, func() { over.Store(true) }).Stop()
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			fuzzer.Run(t.Context(), harness.Random(seed, i), func() bool { return !over.Load() && more() })
		})
	}
	group.Wait()
}
