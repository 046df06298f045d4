package connection

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
)

// secrets are the sealed part of a connection.
type secrets struct {
	Fields map[string]string `json:"fields,omitempty"`
	// Token is the current token of a kind that has one.
	Token *Token `json:"token,omitempty"`
	// ClientID and ClientSecret belong to the OAuth app that the token was issued to.
	ClientID     string `json:"client_id,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
	// Confirmed is the Use of an own integration that somebody has confirmed.
	Confirmed string `json:"confirmed,omitempty"`
	// Replaced are the secrets that it had before, the newest first.
	Replaced []replaced `json:"replaced,omitempty"`
}

// Token is what a token endpoint issued.
type Token struct {
	Access    string     `json:"access"`
	Refresh   string     `json:"refresh,omitempty"`
	IssuedAt  time.Time  `json:"issued_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // nil: never, or unknown
	// RefreshEndsAt is when the refresh token can no longer be used; nil if that is unknown.
	RefreshEndsAt *time.Time `json:"refresh_ends_at,omitempty"`
}

const (
	// renewAhead is how long before its expiry a token is renewed, unless half of its life is
	// shorter.
	renewAhead = 15 * time.Minute
	// usableFor is how long a token must still be valid to be used, unless a quarter of its life
	// is shorter.
	usableFor = 30 * time.Second
)

// isDue reports whether a token should be renewed before it is used.
func (t *Token) isDue(now time.Time) bool {
	if t == nil {
		return true
	}
	if t.ExpiresAt == nil {
		return false
	}
	ahead := min(renewAhead, t.ExpiresAt.Sub(t.IssuedAt)/2)
	return !now.Before(t.ExpiresAt.Add(-ahead))
}

// isUsable reports whether a token stays valid long enough for a request to arrive.
func (t *Token) isUsable(now time.Time) bool {
	if t == nil || t.ExpiresAt == nil {
		return t != nil
	}
	return now.Before(t.ExpiresAt.Add(-min(usableFor, t.ExpiresAt.Sub(t.IssuedAt)/4)))
}

// values lists the secrets themselves.
func (s secrets) values() []string {
	var out []string
	for _, value := range s.Fields {
		out = append(out, value)
		out = append(out, partsOf(value)...)
	}
	if s.Token != nil {
		out = append(out, s.Token.Access, s.Token.Refresh)
	}
	out = append(out, s.ClientSecret)
	return slices.DeleteFunc(out, func(value string) bool { return value == "" })
}

// partsOf returns the private key of a key file: it must not be shown either when it
// is not quoted as a whole.
func partsOf(value string) []string {
	var file struct {
		PrivateKey string `json:"private_key"`
	}
	if !strings.HasPrefix(strings.TrimSpace(value), "{") || json.Unmarshal([]byte(value), &file) != nil {
		return nil
	}
	return []string{file.PrivateKey}
}

// credential adds a connection to requests. It implements egress.Credential.
type credential struct {
	hosts []Host
	apply func(*http.Request) error
	tls   egress.TLS
}

// Allows reports whether a URL leads to one of the hosts of the connection.
func (c credential) Allows(u *url.URL) bool { return allows(c.hosts, u) }

// Apply adds the credential to a request.
func (c credential) Apply(r *http.Request) error { return c.apply(r) }

// TLS returns the settings of connections to the hosts.
func (c credential) TLS() egress.TLS { return c.tls }

// applyTemplates returns a function that adds a credential to requests as the
// integration says.
func applyTemplates(how integration.Apply, env integration.Env) func(*http.Request) error {
	return func(r *http.Request) error {
		if how.Basic != nil {
			if err := applyBasic(r, *how.Basic, env); err != nil {
				return err
			}
		}
		for name, template := range how.Headers {
			value, ok, err := renderApplied(template, env)
			switch {
			case err != nil:
				return fmt.Errorf("the header %s: %w", name, err)
			case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
				return fmt.Errorf("the header %s would contain a line break or another control character", name)
			case ok:
				r.Header.Set(name, value)
			}
		}
		if err := applyPath(r, how.Path, env); err != nil {
			return err
		}
		return applyQuery(r, how.Query, env)
	}
}

// applyPath inserts the credential where the path of a URL says so. It stays one segment.
func applyPath(r *http.Request, segment integration.Template, env integration.Env) error {
	if segment.IsZero() {
		return nil
	}
	text, _, err := renderApplied(segment, env)
	if err != nil {
		return err
	}
	u := *r.URL
	u.RawPath = strings.ReplaceAll(strings.ReplaceAll(u.EscapedPath(), "%7Bauth%7D", integration.AuthSegment), integration.AuthSegment, url.PathEscape(text))
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return err
	}
	r.URL = &u
	return nil
}

// maxAppliedValue is the maximum size of a value that a connection adds to a request. A
// longer one would not be masked.
const maxAppliedValue = 128 << 10

// renderApplied renders a value that a connection adds to a request.
func renderApplied(template integration.Template, env integration.Env) (string, bool, error) {
	value, ok, err := template.Text(env)
	if len(value) > maxAppliedValue {
		return "", false, fmt.Errorf("it would be longer than %d KiB", maxAppliedValue>>10)
	}
	return value, ok, err
}

func applyBasic(r *http.Request, how integration.Basic, env integration.Env) error {
	user, password, err := renderBasic(how, env)
	if err == nil {
		r.Header.Set("Authorization", "Basic "+basicCredential(user, password))
	}
	return err
}

func renderBasic(how integration.Basic, env integration.Env) (user, password string, err error) {
	if user, _, err = renderApplied(how.User, env); err != nil {
		return "", "", err
	}
	if password, _, err = renderApplied(how.Password, env); err != nil {
		return "", "", err
	}
	if problem := integration.UserProblem(user); problem != "" {
		return "", "", errors.New("the user name " + problem)
	}
	return user, password, nil
}

// basicCredential returns a user name and a password as HTTP basic authentication
// encodes them.
func basicCredential(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// applyQuery replaces parameters of the query. The others stay as they are.
func applyQuery(r *http.Request, params map[string]integration.Template, env integration.Env) error {
	if len(params) == 0 {
		return nil
	}
	u := *r.URL
	kept := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		_, replaced := params[name]
		return part == "" || err == nil && replaced
	})
	added := url.Values{}
	for name, template := range params {
		value, ok, err := renderApplied(template, env)
		if err != nil {
			return fmt.Errorf("the parameter %s: %w", name, err)
		}
		if ok {
			added.Set(name, value)
		}
	}
	u.RawQuery = strings.Join(append(kept, added.Encode()), "&")
	r.URL = &u
	return nil
}
