package services_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
)

const (
	slackToken  = "xoxb-the-token-of-slack"
	notionToken = "ntn_the_token_of_notion"
)

// accounts stands for Slack with two pages of channels, and for Notion with a database.
func accounts(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch r.Host + r.URL.Path {
		case "slack.com/api/conversations.list":
			if r.Header.Get("Authorization") != "Bearer "+slackToken {
				fmt.Fprint(w, `{"ok": false, "error": "invalid_auth"}`)
				return
			}
			page := map[bool]string{true: "1", false: "2"}[!strings.Contains(string(body), "cursor=")]
			next := map[string]string{"1": "two", "2": ""}[page]
			fmt.Fprintf(w, `{"ok": true, "channels": [{"id": "C%s", "name": "room-%s"}, {"id": "D%s", "name": %q}], "response_metadata": {"next_cursor": %q}}`, page, page, page, slackToken, next)
		case "slack.com/api/auth.test":
			fmt.Fprint(w, `{"ok": false, "error": "invalid_auth"}`)
		case "api.notion.com/v1/search":
			var search struct{ Query string }
			_ = json.Unmarshal(body, &search) // the test looks at the answer
			fmt.Fprintf(w, `{"results": [{"id": "db-1", "title": [{"plain_text": "Found %s"}]}], "has_more": false, "next_cursor": null}`, search.Query)
		case "api.notion.com/v1/data_sources/db-1":
			fmt.Fprint(w, `{"properties": {"n": {"name": "Name", "type": "title"}, "s": {"name": "Status", "type": "select", "select": {"options": [{"name": "Open"}, {"name": "Done"}]}}, "f": {"name": "Sum", "type": "formula"}}}`)
		case "api.notion.com/v1/data_sources/db-2":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"object": "error", "code": "object_not_found", "message": "Not found, says %s"}`, notionToken)
		default:
			t.Errorf("an unexpected request: %s %s%s", r.Method, r.Host, r.URL.Path)
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// Dropdowns and forms get what the account of a connection has: from all pages, with the
// credential sent to the service alone, and without secrets in labels or errors.
func TestListing(t *testing.T) {
	t.Parallel()
	s := newInternet(t, accounts(t)).start(t)
	connect := func(name, integration, auth, token string) string {
		var made struct{ ID string }
		s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
			"name": name, "integration": integration, "auth": auth, "fields": map[string]any{"token": token},
		}).Decode(t, &made)
		return made.ID
	}
	slack, broken, notion := connect("team", "slack", "bearer", slackToken), connect("old-team", "slack", "bearer", "xoxb-revoked"), connect("wiki", "notion", "bearer", notionToken)
	for _, tc := range []struct {
		name, connection, query string
		status                  int
		want                    string
	}{
		{
			"options of two pages", slack, `{"operation": "slack.post_message", "input": "channel"}`, http.StatusOK,
			`{"options":[{"value":"C1","label":"#room-1"},{"value":"D1","label":"#***"},{"value":"C2","label":"#room-2"},{"value":"D2","label":"#***"}],"fields":null,"more":false}`,
		},
		{
			"a search", notion, `{"operation": "notion.create_database_page", "input": "database", "search": "tasks"}`, http.StatusOK,
			`{"options":[{"value":"db-1","label":"Found tasks"}],"fields":null,"more":false}`,
		},
		{
			"fields", notion, `{"operation": "notion.create_database_page", "input": "properties", "with": {"database": "db-1"}}`, http.StatusOK,
			`{"options":null,"fields":[{"name":"Name","title":"Name","type":"string","required":false,"options":null},` +
				`{"name":"Status","title":"Status","type":"string","required":false,"options":[{"value":"Open","label":"Open"},{"value":"Done","label":"Done"}]}],"more":false}`,
		},
		{
			"an error of the service", notion, `{"operation": "notion.create_database_page", "input": "properties", "with": {"database": "db-2"}}`, http.StatusUnprocessableEntity, "service_failed: says ***",
		},
		{
			"a credential that is rejected", broken, `{"operation": "slack.post_message", "input": "channel"}`, http.StatusConflict, "connection_broken: does not accept the credential",
		},
	} {
		got, err := s.Do(t.Context(), "POST", "/v1/connections/"+tc.connection+"/options", json.RawMessage(tc.query))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(string(got.Body))
		if got.Status != tc.status {
			t.Errorf("%s: %d %s", tc.name, got.Status, text)
			continue
		}
		if code, message, ok := strings.Cut(tc.want, ": "); tc.status != http.StatusOK && ok {
			if !strings.Contains(text, `"`+code+`"`) || !strings.Contains(text, message) {
				t.Errorf("%s: %s, want %s", tc.name, text, tc.want)
			}
		} else if diff := cmp.Diff(tc.want, text); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if strings.Contains(text, notionToken) || strings.Contains(text, slackToken) {
			t.Errorf("%s: it shows a secret: %s", tc.name, text)
		}
	}
	var shown struct{ Status string }
	s.Expect(t, http.StatusOK, "GET", "/v1/connections/"+broken, nil).Decode(t, &shown)
	if shown.Status != "failing" {
		t.Errorf("the connection whose credential was rejected is %s", shown.Status)
	}
	harness.Eventually(t, "the other one is known to work", func() bool {
		s.Expect(t, http.StatusOK, "GET", "/v1/connections/"+slack, nil).Decode(t, &shown)
		return shown.Status == "connected"
	})
}
