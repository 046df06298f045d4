package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
)

// Exchange is a request that an operation must send, and the answer to it.
type Exchange struct {
	Request Request `json:"request"`
	Answer  Answer  `json:"answer"`
}

// Request is an expected request. Query and body must be equal; of the headers, those
// that are listed.
type Request struct {
	Method    string            `json:"method"` // GET if empty
	URL       string            `json:"url"`    // without its query
	Query     map[string]any    `json:"query"`  // text, or a list of texts
	Headers   map[string]string `json:"headers"`
	JSON      json.RawMessage   `json:"json"`
	Form      map[string]any    `json:"form"`
	Multipart map[string]any    `json:"multipart"` // text, or {filename, type, text}
	Text      *string           `json:"text"`
	Message   *Message          `json:"message"` // an e-mail message
	Size      *int              `json:"size"`    // the length of a body whose bytes do not count
}

// Answer is the answer to a request.
type Answer struct {
	Status  int               `json:"status"` // 200 if zero
	Headers map[string]string `json:"headers"`
	JSON    json.RawMessage   `json:"json"`
	Text    string            `json:"text"`
}

// server takes the place of all servers.
type server struct {
	integration *integration.Integration
	variables   map[string]string // of the connection
	exchanges   []Exchange
	next        int
	recordings  *Recordings
	recorded    []Request // of this test, nil if there are none
	problem     error     // the first one
}

// Do implements transfer.Client.
func (s *server) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	answer, header, err := s.exchange(r)
	if err != nil {
		return nil, err
	}
	return &egress.Response{Status: answer.status(), Header: header, Body: answer.body(), URL: r.URL}, nil
}

// Stream implements transfer.Client.
func (s *server) Stream(_ context.Context, r egress.Request) (*egress.Stream, error) {
	answer, header, err := s.exchange(r)
	if err != nil {
		return nil, err
	}
	return egress.NewStream(answer.status(), header, r.URL, answer.body()), nil
}

func (s *server) exchange(r egress.Request) (Answer, http.Header, error) {
	if s.problem == nil {
		s.problem = s.check(r)
	}
	if s.problem != nil {
		return Answer{}, nil, &egress.Error{Code: egress.InvalidRequest, Message: s.problem.Error()}
	}
	answer := s.exchanges[s.next].Answer
	s.next++
	return answer, answer.header(), nil
}

func (a Answer) header() http.Header {
	out := http.Header{"Content-Type": {"application/json"}}
	if a.JSON == nil {
		out.Set("Content-Type", "text/plain; charset=utf-8")
	}
	for name, value := range a.Headers {
		out.Set(name, value)
	}
	return out
}

// Send sends the answer.
func (a Answer) Send(w http.ResponseWriter) error {
	maps.Copy(w.Header(), a.header())
	w.WriteHeader(a.status())
	body := a.body()
	if len(body) == 0 {
		return nil // some statuses allow none
	}
	_, err := w.Write(body)
	return err
}

func (a Answer) status() int {
	if a.Status == 0 {
		return http.StatusOK
	}
	return a.Status
}

func (a Answer) body() []byte {
	if a.JSON != nil {
		return a.JSON
	}
	return []byte(a.Text)
}

func (s *server) check(r egress.Request) error {
	if s.next == len(s.exchanges) {
		return fmt.Errorf("it sends a request that is not expected: %s %s", r.Method, r.URL)
	}
	want := s.exchanges[s.next].Request
	if err := want.Compare(r); err != nil {
		return fmt.Errorf("request %d: %w", s.next+1, err)
	}
	return s.checkRecorded(r)
}

// checkRecorded compares a request with the one that the vendor's client has sent.
func (s *server) checkRecorded(r egress.Request) error {
	switch {
	case s.recorded == nil:
		return nil
	case s.next == len(s.recorded):
		return fmt.Errorf("it sends a request that %s does not send: %s %s", s.recordings.Client, r.Method, r.URL)
	}
	want := s.recorded[s.next]
	sent, err := s.recordings.authenticate(s.integration, s.variables, r)
	if err == nil {
		err = want.Compare(sent)
	}
	if got := sent.Header.Get("Authorization"); err == nil && want.header("Authorization") == "" && got != "" {
		err = fmt.Errorf("there is a header Authorization: %s", got)
	}
	if err != nil {
		return fmt.Errorf("request %d differs from that of %s: %w", s.next+1, s.recordings.Client, err)
	}
	return nil
}

func (s *server) left() error {
	if left := len(s.exchanges) - s.next; left > 0 {
		missing := s.exchanges[s.next].Request
		return fmt.Errorf("it does not send %d of the expected requests, the first is %s %s", left, missing.method(), missing.URL)
	}
	if left := len(s.recorded) - s.next; s.recorded != nil && left > 0 {
		return fmt.Errorf("%s sends %d more requests, the first is %s %s", s.recordings.Client, left, s.recorded[s.next].Method, s.recorded[s.next].URL)
	}
	return nil
}

func (want Request) method() string { return cmp.Or(want.Method, http.MethodGet) }

func (want Request) header(name string) string {
	for given, value := range want.Headers {
		if strings.EqualFold(given, name) {
			return value
		}
	}
	return ""
}

// Compare compares a request with the expected one. The error says what differs.
func (want Request) Compare(r egress.Request) error {
	u, err := url.Parse(r.URL)
	if err != nil {
		return err
	}
	if r.Credential != nil && !r.Credential.Allows(u) {
		return fmt.Errorf("the host %s must not receive the credential", u.Host)
	}
	query := u.Query()
	target, expected := canonical(r.URL), canonical(want.URL)
	if r.Method != want.method() {
		return fmt.Errorf("the method is %s, want %s", r.Method, want.method())
	}
	if target != expected {
		return fmt.Errorf("the URL is %s, want %s", target, expected)
	}
	if err := equalFields("the query", query, want.Query); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want.Headers)) {
		if got := r.Header.Get(name); got != want.Headers[name] {
			return fmt.Errorf("the header %s is %q, want %q", name, got, want.Headers[name])
		}
	}
	return want.compareBody(r)
}

// canonical returns a URL without its query, and with the segments of its path escaped in
// one way: clients do not agree on characters such as @ and {.
func canonical(text string) string {
	address, _, _ := strings.Cut(text, "?")
	segments := strings.Split(address, "/")
	for i, segment := range segments {
		if plain, err := url.PathUnescape(segment); err == nil && i > 2 { // after https://host
			segments[i] = url.PathEscape(plain)
		}
	}
	return strings.ReplaceAll(strings.Join(segments, "/"), "%7Bauth%7D", integration.AuthSegment)
}

func (want Request) compareBody(r egress.Request) error {
	body, err := bodyOf(r)
	if err != nil {
		return err
	}
	contentType := r.Header.Get("Content-Type")
	switch {
	case want.JSON != nil:
		if !strings.Contains(contentType, "json") {
			return fmt.Errorf("the Content-Type is %q", contentType)
		}
		return equalJSON("the body", body, want.JSON)
	case want.Form != nil:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return err
		}
		return equalFields("the form", form, want.Form)
	case want.Multipart != nil:
		got, err := readMultipart(contentType, body)
		if err != nil {
			return err
		}
		return equalValues("the multipart body", sortJSON(got), sortJSON(want.Multipart))
	case want.Message != nil || want.Text != nil && strings.HasPrefix(contentType, messageType):
		return want.compareMessage(body)
	case want.Size != nil && len(body) != *want.Size:
		return fmt.Errorf("the body has %d bytes, want %d", len(body), *want.Size)
	case want.Size != nil:
		return nil
	case want.Text != nil && string(body) != *want.Text:
		return fmt.Errorf("the body is %q, want %q", body, *want.Text)
	case want.Text == nil && len(body) > 0:
		return fmt.Errorf("there is a body: %s", body)
	}
	return nil
}

func bodyOf(r egress.Request) ([]byte, error) {
	if r.Upload == nil {
		return r.Body, nil
	}
	body, err := r.Upload()
	if err != nil {
		return nil, err
	}
	read, err := io.ReadAll(body)
	return read, errors.Join(err, body.Close())
}

// readMultipart returns the parts of a body: texts, and files as objects. One that is
// repeated is a list.
func readMultipart(contentType string, body []byte) (map[string]any, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		var value any = string(content)
		if name := part.FileName(); name != "" {
			value = map[string]any{"filename": name, "type": part.Header.Get("Content-Type"), "text": string(content)}
		}
		switch before := out[part.FormName()].(type) {
		case nil:
			out[part.FormName()] = value
		case []any:
			out[part.FormName()] = append(before, value)
		default:
			out[part.FormName()] = []any{before, value}
		}
	}
}

// equalFields compares the parameters of a query or a form.
func equalFields(what string, got url.Values, want map[string]any) error {
	given := map[string]any{}
	for name, values := range got {
		if given[name] = values[0]; len(values) > 1 {
			list := make([]any, len(values))
			for i, value := range values {
				list[i] = value
			}
			given[name] = list
		}
	}
	expected := map[string]any{}
	for name, value := range want {
		if list, ok := value.([]any); ok && len(list) == 1 {
			value = list[0]
		}
		if _, isList := value.([]any); !isList {
			value = fmt.Sprint(value)
		}
		expected[name] = value
	}
	return equalValues(what, sortJSON(given), sortJSON(expected))
}

// sortJSON orders the members of JSON texts in a form: clients do not agree on it.
func sortJSON(form map[string]any) map[string]any {
	out := maps.Clone(form)
	for name, value := range form {
		text, isText := value.(string)
		if !isText || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
			continue
		}
		if decoded, err := expr.FromJSON([]byte(text)); err == nil {
			if sorted, err := json.Marshal(decoded); err == nil {
				out[name] = string(sorted)
			}
		}
	}
	return out
}

func equalValues(what string, got, want any) error {
	if found := differences("", got, want); found != nil {
		return fmt.Errorf("%s is not as expected:\n%s", what, strings.Join(found, "\n"))
	}
	return nil
}

// equalJSON compares two JSON texts as values.
func equalJSON(what string, got, want []byte) error {
	if len(want) == 0 {
		return fmt.Errorf("%s is %s, and nothing is expected", what, got)
	}
	one, err := expr.FromJSON(got)
	if err != nil {
		return fmt.Errorf("%s is not JSON: %w", what, err)
	}
	other, err := expr.FromJSON(want)
	if err != nil {
		return err
	}
	return equalValues(what, one, other)
}

// credential stands for the credential of a connection. It changes nothing: tests show
// what a manifest sends, and {auth} where the credential is part of a path.
type credential struct{ hosts []string }

// Allows implements egress.Credential.
func (c credential) Allows(u *url.URL) bool {
	return u.Scheme == "https" && slices.Contains(c.hosts, u.Host)
}

// Apply implements egress.Credential.
func (credential) Apply(*http.Request) error { return nil }

// TLS implements egress.Credential.
func (credential) TLS() egress.TLS { return egress.TLS{} }
