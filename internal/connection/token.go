package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// authServers sends requests to the authorization servers of connections: for tokens, device
// codes, revocations and metadata.
type authServers struct {
	client Client
	log    *slog.Logger
}

// Client sends requests to the outside.
type Client interface {
	Do(ctx context.Context, r egress.Request) (*egress.Response, error)
}

// tokenTimeout limits one request to a token endpoint.
const tokenTimeout = 30 * time.Second

// oauthClient is the OAuth app on whose behalf tokens are requested.
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
	return "the service issued no token: " + e.what()
}

func (e *tokenError) what() string {
	if e.code == "" {
		return strings.TrimSpace(fmt.Sprintf("it responded with %d %s", e.status, http.StatusText(e.status)))
	}
	return describeError(e.code, e.description)
}

// refuses reports whether the service issues no more tokens until a person does something about
// it. Everything else is retried: the error page of a proxy, an error of the service, and codes
// that we do not know.
func (e *tokenError) refuses(way *integration.Auth) bool {
	if e.status == http.StatusTooManyRequests || e.status >= http.StatusInternalServerError {
		return false
	}
	switch e.code {
	case "invalid_client", "unauthorized_client":
		return true
	case "invalid_grant", "unsupported_grant_type", "invalid_scope":
		// With client credentials nobody has to reconnect unless the client itself is refused.
		return way.NeedsConsent() || way.Kind == integration.ServiceAccount
	}
	return slices.Contains(way.Refusals, e.code)
}

// advice returns what people can do about the error.
func (e *tokenError) advice(c *opened) string {
	switch e.code {
	case "invalid_client":
		if c.Integration != "" && c.auth.NeedsConsent() {
			return fmt.Sprintf("check the client ID and secret of the OAuth app %q for %s, and reconnect", c.client().id, c.service.Name)
		}
		if c.auth.ClientAuth == integration.PrivateKeyJWT {
			return "check the client ID, and that the service knows the public key and the key ID, and reconnect"
		}
		return "check the client ID and secret, and reconnect"
	case "unauthorized_client", "unsupported_grant_type":
		return "allow this grant for the client at the service, and reconnect"
	case "invalid_scope":
		return "allow these scopes for the client at the service, or change them, and reconnect"
	}
	return "the access may have expired or was revoked; reconnect"
}

// requestToken requests a token for a connection.
func (a *authServers) requestToken(ctx context.Context, c *opened, endpoint integration.Template, params url.Values) (tokenAnswer, error) {
	asked := clock.Now()
	resp, err := a.postAsClient(ctx, c, endpoint, params, c.auth.TokenBody)
	if err != nil {
		return tokenAnswer{}, err
	}
	answer, err := parseAnswer(resp, c.auth.TokenAt, asked)
	if failure, ok := errors.AsType[*tokenError](err); ok { // some services quote what they reject
		failure.hide(c, params)
	}
	return answer, err
}

// hide masks the secrets of a request in what the service says about it.
func (e *tokenError) hide(c *opened, params url.Values) {
	hide := mask.New(append(c.hidden(), secretsOf(c.client(), params)...))
	e.code, e.description = hide.Text(e.code), hide.Text(e.description)
}

// postAsClient sends parameters to an endpoint of the authorization server, with the client's
// credentials and the headers of the integration. It follows no redirects, which would send the
// credentials elsewhere.
func (a *authServers) postAsClient(ctx context.Context, c *opened, endpoint integration.Template, params url.Values, style string) (*egress.Response, error) {
	if !c.isConfirmed() {
		return nil, errUnconfirmed(c)
	}
	env := c.env()
	target, err := endpoint.URL(env)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if err := c.service.SetHeaders(header, env); err != nil {
		return nil, err
	}
	header.Set("Accept", "application/json")
	switch app := c.client(); {
	case c.auth.ClientAuth == integration.PrivateKeyJWT:
		if err := c.assertClient(params); err != nil {
			return nil, err
		}
	case c.auth.ClientAuth == "basic" && app.id != "" && app.secret != "": // a public client only names itself
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
	return a.doActive(ctx, egress.Request{
		Workspace: c.WorkspaceID, Method: http.MethodPost, URL: target.String(), Header: header, Body: body,
		Credential: tlsOnly(target.String(), c.tls()),
	})
}

// doActive sends a request and waits at most tokenTimeout for the response. The time during which
// the process is paused does not count: otherwise it would discard a response that has arrived
// meanwhile, and with it a token that is issued only once.
func (a *authServers) doActive(ctx context.Context, r egress.Request) (*egress.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer clock.AfterActive(tokenTimeout, func() { cancel(errTooSlow) })()
	r.Timeout = longestPause
	resp, err := a.client.Do(ctx, r)
	if err != nil && errors.Is(context.Cause(ctx), errTooSlow) {
		err = &egress.Error{Code: egress.TimedOut, Retryable: true, Message: "the service did not send a complete response in time"}
	}
	return resp, err
}

// errTooSlow cancels a request to a token endpoint that does not respond.
var errTooSlow = errors.New("the token endpoint did not respond in time")

// longestPause limits how long a process can be paused while it waits for a token.
const longestPause = 24 * time.Hour

// secretsOf lists what a request for a token contains that its error must not repeat.
func secretsOf(app oauthClient, params url.Values) []string {
	out := []string{app.secret, url.QueryEscape(app.secret), basicCredential(url.QueryEscape(app.id), url.QueryEscape(app.secret))}
	for name, values := range params {
		if !slices.Contains([]string{"grant_type", "client_id", "client_assertion_type", "redirect_uri", "scope", "audience", "resource"}, name) {
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
		failure.code, failure.description = errorOf(members)
		return tokenAnswer{}, failure
	}
	answer := tokenAnswer{token: Token{Access: access, IssuedAt: asked}, members: members}
	answer.token.Refresh, _ = issued["refresh_token"].(string)
	if seconds := secondsOf(issued["expires_in"]); seconds > 0 {
		expires := asked.Add(time.Duration(seconds) * time.Second)
		answer.token.ExpiresAt = &expires
	}
	// RFC 6749 has no name for it. These are LinkedIn's and Google's, Keycloak's, and Intuit's.
	for _, name := range []string{"refresh_token_expires_in", "refresh_expires_in", "x_refresh_token_expires_in"} {
		if seconds := secondsOf(issued[name]); seconds > 0 {
			ends := asked.Add(time.Duration(seconds) * time.Second)
			answer.token.RefreshEndsAt = &ends
			break
		}
	}
	return answer, nil
}

// errorOf returns the code and the description of an error, as RFC 6749 defines them or
// as services deviate from it: with an object as the error, or with a status as text.
func errorOf(members map[string]any) (code, description string) {
	switch reported := members["error"].(type) {
	case string:
		code = reported
	case map[string]any:
		code = fmt.Sprint(cmp.Or(reported["code"], any("")))
		description, _ = reported["message"].(string)
	case nil:
		code, _ = members["status"].(string)
		description, _ = members["message"].(string)
	}
	if text, ok := members["error_description"].(string); ok {
		description = text
	}
	return code, description
}

// maxTokenLife is the longest life of a token in seconds. A longer one could exceed the range of
// time.Duration.
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
	_ = decoder.Decode(&members) // anything but an object has no access token
	return members
}
