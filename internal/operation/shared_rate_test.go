package operation_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
)

// emptyAnswers answers every request with an empty object.
type emptyAnswers struct{}

func (emptyAnswers) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	return &egress.Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte("{}"), URL: r.URL}, nil
}

func (emptyAnswers) Stream(context.Context, egress.Request) (*egress.Stream, error) {
	panic("no operation of the test reads a file")
}

// Of services that share connections, each has its own rates beside those that they share.
func TestRatesOfServicesThatShareConnections(t *testing.T) {
	t.Parallel()
	const head = "category: productivity\ndocs: https://suite.example\nbase_url: https://suite.example\n"
	const service = head + "connection: {of: suite}\nrate: [{requests: %d, every: 1h}]\noperations: {read: {title: Read, request: {path: /%s}}}\n"
	catalog, err := integration.Load(fstest.MapFS{
		"suite/integration.yaml": {Data: []byte("id: suite\nname: Suite\n" + head + `
connection: {auth: [{kind: bearer, label: Token, help: Token}], hosts: [suite.example], test: {path: /me}, learn: {label: "${{ test.name }}"}}
rate: [{requests: 2, every: 1h}]
`)},
		"mail/integration.yaml":     {Data: []byte("id: mail\nname: Mail\n" + fmt.Sprintf(service, 1, "mail"))},
		"calendar/integration.yaml": {Data: []byte("id: calendar\nname: Calendar\n" + fmt.Sprintf(service, 5, "calendar"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	actions := operation.NewActions(catalog, emptyAnswers{})
	for i, tc := range []struct {
		connection, action string
		waits              bool
	}{
		{"office", "mail.read", false},
		{"office", "calendar.read", false}, // the rate of mail does not concern it
		{"office", "calendar.read", true},  // but that of the suite does
		{"home", "mail.read", false},
		{"home", "mail.read", true},
	} {
		entry, _ := actions.Find(tc.action)
		result, err := entry.Action.Run(t.Context(), action.Request{
			Now: clock.Now(), Began: clock.Now(), Workspace: "wsp_1", IdempotencyKey: fmt.Sprint(i),
			Connection: &action.Connection{Name: tc.connection, Integration: "suite"},
			Mask:       func(output map[string]any) (map[string]any, error) { return output, nil },
			Log:        func(action.Level, string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		if waits := result.Wait != nil || result.Checkpoint != nil; waits != tc.waits {
			t.Errorf("request %d, %s: waits is %v, want %v", i+1, tc.action, waits, tc.waits)
		}
	}
}
