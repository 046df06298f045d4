package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Client sends requests to the outside.
type Client interface {
	Do(ctx context.Context, r egress.Request) (*egress.Response, error)
}

// tokenTimeout bounds one request to a token endpoint.
const tokenTimeout = 30 * time.Second

// oauthClient is the OAuth app that requests tokens.
type oauthClient struct{ id, secret string }

// tokenAnswer is the answer of a token endpoint.
type tokenAnswer struct {
	token Token
	// members is the whole answer, from which variables are learned.
	members map[string]any
}

// tokenError is a response of a token endpoint without a token.
type tokenError struct {
	code        string // of RFC 6749, section 5.2, or of the service; "" if it reported none
	description string
	status      int
}

func (e *tokenError) Error() string {
	what := describeError(e.code, e.description)
	if e.code == "" {
		what = strings.TrimSpace(fmt.Sprintf("it responded with %d %s", e.status, http.StatusText(e.status)))
	}
	return "the service issued no token: " + what
}

// temporary reports whether repeating the request may help. A response that is not one
// of a token endpoint, such as a page of a proxy, says nothing about the credential.
func (e *tokenError) temporary() bool {
	switch e.status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return e.code == "temporarily_unavailable" || e.code == "server_error"
	}
	return e.code == "" || e.status == http.StatusTooManyRequests || e.status >= http.StatusInternalServerError
}

// advice says what people can do about the error.
func (e *tokenError) advice() string {
	switch e.code {
	case "invalid_client":
		return "check the client ID and secret, and reconnect"
	case "unauthorized_client", "unsupported_grant_type":
		return "allow this grant for the client at the service, and reconnect"
	case "invalid_scope":
		return "allow these scopes for the client at the service, or change them, and reconnect"
	case "invalid_request":
		return "check how the client and the connection are set up, and reconnect"
	}
	return "the access may have expired or was revoked; reconnect"
}

// requestToken requests a token of a connection.
func (s *Service) requestToken(ctx context.Context, c *opened, endpoint integration.Template, params url.Values) (tokenAnswer, error) {
	asked := clock.Now()
	resp, err := s.postAsClient(ctx, c, endpoint, params, c.auth.TokenBody)
	if err != nil {
		return tokenAnswer{}, err
	}
	answer, err := parseAnswer(resp, c.auth.TokenAt, asked)
	if failure, ok := errors.AsType[*tokenError](err); ok { // some services quote what they reject
		hide := mask.New(append(c.secrets.values(), secretsOf(c.client(), params)...))
		failure.code, failure.description = hide.Text(failure.code), hide.Text(failure.description)
	}
	return answer, err
}

// postAsClient sends parameters to an endpoint of the authorization server, with the
// client's credentials and the headers of the integration. It follows no redirects,
// which would take the credentials elsewhere.
func (s *Service) postAsClient(ctx context.Context, c *opened, endpoint integration.Template, params url.Values, style string) (*egress.Response, error) {
	env := c.env()
	target, err := endpoint.URL(env)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if err := renderHeaders(header, env, c.service.Headers); err != nil {
		return nil, err
	}
	header.Set("Accept", "application/json")
	switch app := c.client(); {
	case c.auth.ClientAuth == "basic" && app.id != "":
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(app.id), url.QueryEscape(app.secret))
	case app.id != "":
		params.Set("client_id", app.id)
		if app.secret != "" {
			params.Set("client_secret", app.secret)
		}
	}
	body, media, err := encodeParams(params, style)
	if err != nil {
		return nil, err
	}
	header.Set("Content-Type", media)
	return s.client.Do(ctx, egress.Request{
		Workspace: c.WorkspaceID, Method: http.MethodPost, URL: target.String(), Header: header, Body: body, Timeout: tokenTimeout,
	})
}

// secretsOf lists what a request for a token contains that its error must not repeat.
func secretsOf(app oauthClient, params url.Values) []string {
	out := []string{app.secret, url.QueryEscape(app.secret), basicCredential(url.QueryEscape(app.id), url.QueryEscape(app.secret))}
	for name, values := range params {
		if !slices.Contains([]string{"grant_type", "client_id", "redirect_uri", "scope"}, name) {
			out = append(out, values...)
		}
	}
	return out
}

// encodeParams encodes the parameters of a request as a form or as JSON.
func encodeParams(params url.Values, style string) (body []byte, media string, err error) {
	if style != "json" {
		return []byte(params.Encode()), "application/x-www-form-urlencoded", nil
	}
	members := make(map[string]any, len(params))
	for name := range params {
		members[name] = params.Get(name)
	}
	body, err = strictjson.Encode(members)
	return body, "application/json", err
}

// parseAnswer reads the answer of a token endpoint. An answer without an access token
// is an error, whatever its status: some services respond with 200 to everything.
func parseAnswer(resp *egress.Response, tokenAt string, asked time.Time) (tokenAnswer, error) {
	members := parseMembers(resp)
	issued := members
	if inner, ok := members[tokenAt].(map[string]any); tokenAt != "" && ok {
		issued = inner
	}
	access, _ := issued["access_token"].(string)
	if access == "" || resp.Status >= http.StatusBadRequest {
		failure := &tokenError{status: resp.Status}
		failure.code, _ = members["error"].(string)
		failure.description, _ = members["error_description"].(string)
		return tokenAnswer{}, failure
	}
	answer := tokenAnswer{token: Token{Access: access, IssuedAt: asked}, members: members}
	answer.token.Refresh, _ = issued["refresh_token"].(string)
	if seconds := secondsOf(issued["expires_in"]); seconds > 0 {
		expires := asked.Add(time.Duration(seconds) * time.Second)
		answer.token.ExpiresAt = &expires
	}
	return answer, nil
}

// maxTokenLife is the longest life of a token that is believed; it keeps times valid.
const maxTokenLife = 10 * 365 * 24 * 60 * 60

// secondsOf reads a number of seconds, which some services send as text.
func secondsOf(value any) int64 {
	var text string
	switch value := value.(type) {
	case json.Number:
		text = value.String()
	case string:
		text = value
	default:
		return 0
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds < 0 {
		return 0
	}
	return int64(min(seconds, maxTokenLife))
}

// parseMembers reads a JSON object, or a form if the answer is one.
func parseMembers(resp *egress.Response) map[string]any {
	members := map[string]any{}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "application/x-www-form-urlencoded" || media == "text/plain" {
		if form, err := url.ParseQuery(string(resp.Body)); err == nil && form.Has("access_token") || form.Has("error") {
			for name := range form {
				members[name] = form.Get(name)
			}
			return members
		}
	}
	decoder := json.NewDecoder(strings.NewReader(string(resp.Body)))
	decoder.UseNumber()
	_ = decoder.Decode(&members) // what is not an object has no access token
	return members
}

// refusal returns the error with which a token endpoint refused a token for good. All
// other errors may pass.
func refusal(err error) (*tokenError, bool) {
	failure, ok := errors.AsType[*tokenError](err)
	return failure, ok && !failure.temporary()
}
