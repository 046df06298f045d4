package replay_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

const tests = `
operations:
  send_message:
    - name: text
      input: {chat: "1", text: Hello}
      exchanges:
        - request: {method: POST, url: "https://api.telegram.org/{auth}/sendMessage", json: {chat_id: "1", text: Hello}}
          answer: {json: {ok: true, result: {message_id: 7}}}
      output: {message_id: 7}
`

// What a test sends is compared with the recording of the vendor's client.
func TestRecordings(t *testing.T) {
	t.Parallel()
	const (
		request = `{"method": "POST", "url": "https://api.telegram.org/bot1:a/sendMessage", "json": {"chat_id": "1", "text": "Hello"}}`
		extra   = `{"method": "POST", "url": "https://api.telegram.org/bot1:a/sendMessage", "json": {"chat_id": "1", "text": "Hello", "x": 12345678901234567890}}`
		spare   = `{"at": "json/y", "ours": 1, "why": "it is better", "operation": "get_file"}`
		known   = `{"at": "json/x", "client": 12345678901234567890, "why": "nobody needs it"}`
		second  = `{"at": "json/x", "client": 12345678901234567890, "request": 2, "why": "nobody needs it"}`
		unwise  = `{"at": "json/x", "client": 12345678901234567890}`
	)
	for _, tc := range []struct {
		name, token, differences, test, requests, want string
	}{
		{"equal", "1:a", "", "text", request, ""},
		{"escaped in another way", "1:a", "", "text", strings.Replace(request, "1:a", "1%3Aa", 1), ""},
		{"another credential", "2:b", "", "text", request, "the URL is https://api.telegram.org/bot2:b/sendMessage"},
		{"another method", "1:a", "", "text", strings.Replace(request, "POST", "PUT", 1), "the method is POST, want PUT"},
		{"another body", "1:a", "", "text", extra, "the body is not as expected:\n  /x: is missing, want 12345678901234567890"},
		{"a header that is missing", "1:a", "", "text", strings.Replace(request, `"json"`, `"headers": {"authorization": "Bearer a"}, "json"`, 1), "the header authorization is"},
		{"a difference that is intended", "1:a", known, "text", extra, ""},
		{"a difference of another request", "1:a", second, "text", extra, "the body is not as expected:\n  /x: is missing, want 12345678901234567890"},
		{"a difference without a reason", "1:a", unwise, "text", extra, "does not say why"},
		{"a difference that does not exist", "1:a", spare, "text", request, "applies to no request"},
		{"one request more", "1:a", "", "text", request + "," + request, "the client sends 1 more requests"},
		{"one request less", "1:a", "", "text", "", "a request that the client does not send"},
		{"a test that does not exist", "1:a", "", "other", request, `there is no test "other" of send_message`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := problems(t, `{"client": "the client", "auth": "api_key", "secrets": {"token": "`+tc.token+`"},
				"differences": [`+tc.differences+`], "recordings": [{"operation": "send_message", "test": "`+tc.test+`", "requests": [`+tc.requests+`]}]}`)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("problems: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOperationWithoutRecording(t *testing.T) {
	t.Parallel()
	if got := problems(t, `{"client": "the client", "auth": "api_key", "without": {"send_message": "the client cannot do it"}}`); got != "" {
		t.Errorf("problems: %q", got)
	}
	if got := problems(t, `{"client": "the client", "auth": "api_key"}`); !strings.Contains(got, "send_message has no recording") {
		t.Errorf("problems: %q", got)
	}
}

// problems runs the tests against recordings.
func problems(t *testing.T, recordings string) string {
	t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	telegram := firstOperation(t, "telegram/integration.yaml")
	parsed, err := replay.Parse([]byte(tests))
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := replay.ParseRecordings([]byte(recordings))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, result := range replay.Run(t.Context(), catalog, telegram, parsed, recorded, nil) {
		if result.Problem != "" {
			out = append(out, result.Problem)
		}
	}
	return strings.Join(append(out, recorded.Check(telegram, parsed)...), "\n")
}

// firstOperation returns an integration with its first operation only.
func firstOperation(t *testing.T, file string) *integration.Integration {
	t.Helper()
	text, err := fs.ReadFile(integrations.Files, file)
	if err != nil {
		t.Fatal(err)
	}
	head, operations, _ := strings.Cut(string(text), "\noperations:\n")
	second := regexp.MustCompile(`(?m)^  \w+:$`).FindAllStringIndex(operations, 2)[1][0]
	out, err := integration.Parse([]byte(head+"\noperations:\n"+operations[:second]), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
