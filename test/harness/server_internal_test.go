package harness

import (
	"regexp"
	"testing"
)

func TestExpectedErrors(t *testing.T) {
	t.Parallel()
	const (
		store  = `{"level":"ERROR","msg":"cannot claim a run; retrying","error":"unavailable: the database is not responding; nothing was changed: timeout: context deadline exceeded"}`
		river  = `{"level":"ERROR","msg":"Client: Failed to send job insert notification","queues":"runs","err":"timeout: context deadline exceeded"}`
		idle   = `{"level":"ERROR","msg":"producer: Error fetching jobs","err":"FATAL: terminating connection due to idle-in-transaction timeout (SQLSTATE 25P03)"}`
		syntax = `{"level":"ERROR","msg":"producer: Error fetching jobs","err":"ERROR: syntax error (SQLSTATE 42601)"}`
		busy   = `{"level":"ERROR","msg":"cannot claim a run; retrying","error":"unavailable: the store is busy; try again"}`
		panics = `{"level":"ERROR","msg":"panic in an action","panic":"the store is busy"}`
	)
	expected := regexp.MustCompile("the store is busy")
	for _, tc := range []struct {
		server Server
		line   string
		want   bool
	}{
		{Server{shared: true}, store, true},
		{Server{shared: true}, river, true},
		{Server{shared: true}, idle, true},
		{Server{shared: true}, syntax, false},
		{Server{shared: true}, busy, false},
		{Server{}, store, false},
		{Server{expectedErrors: expected}, busy, true},
		{Server{expectedErrors: expected}, panics, false},
	} {
		if got := tc.server.isExpected(tc.line); got != tc.want {
			t.Errorf("shared %t: expected is %t for %s", tc.server.shared, got, tc.line)
		}
	}
}
