package connection_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
)

// endpoint is a token endpoint without a network. It can hang.
type endpoint struct {
	mu      sync.Mutex
	issued  int
	hanging chan struct{}    // nil: it does not hang
	next    *egress.Response // instead of the next token; nil: none
}

func (i *endpoint) Do(ctx context.Context, _ egress.Request) (*egress.Response, error) {
	i.mu.Lock()
	hanging := i.hanging
	i.mu.Unlock()
	if hanging != nil {
		select {
		case <-hanging:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if next := i.next; next != nil {
		i.next = nil
		return next, nil
	}
	i.issued++
	body, err := json.Marshal(map[string]any{"access_token": "token-" + string(rune('0'+i.issued)), "expires_in": 3600})
	return &egress.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, err
}

// hang makes the endpoint hang until the returned function is called.
func (i *endpoint) hang() (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	hanging := make(chan struct{})
	i.hanging = hanging
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		close(hanging)
		i.hanging = nil
	}
}

// withEndpoint returns an installation with a connection with client credentials, and a
// function that returns the token that a step sends.
func withEndpoint(t *testing.T) (in *installation, tokens *endpoint, id string, send func(wait time.Duration) (string, error)) {
	t.Helper()
	in, tokens = newInstallation(t), &endpoint{}
	in.client = tokens
	in.parts = in.node("node_1")
	c, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Definition: []byte(`{"hosts": ["api.example.com"], "token_url": "https://id.example.com/token"}`),
		Fields: map[string]string{"client_id": "client", "client_secret": "the secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	send = func(wait time.Duration) (token string, err error) {
		err = in.Use(t.Context(), in.owner.Workspace.ID, "shop", wait, func(_ context.Context, c action.Connection) error {
			r := http.Request{Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: "api.example.com"}}
			err := c.Credential.Apply(&r)
			token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			return err
		})
		return token, err
	}
	return in, tokens, c.ID, send
}

// A token that is still valid is used while it is renewed. One that has expired is waited
// for, but not for longer than the step may take.
func TestHangingTokenEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, tokens, _, send := withEndpoint(t)
		if token, err := send(time.Minute); token != "token-1" || err != nil {
			t.Fatalf("%s, %v", token, err)
		}
		time.Sleep(50 * time.Minute)
		release, begun := tokens.hang(), time.Now()
		if token, err := send(time.Minute); token != "token-1" || err != nil || time.Since(begun) != 0 {
			t.Errorf("%s, %v after %v", token, err, time.Since(begun))
		}
		release()
		synctest.Wait()
		if token, err := send(time.Minute); token != "token-2" || err != nil {
			t.Errorf("%s, %v", token, err)
		}
		time.Sleep(2 * time.Hour)
		release, begun = tokens.hang(), time.Now()
		_, err := send(10 * time.Second)
		if failure, ok := errors.AsType[*action.Failure](err); !ok || failure.Code != action.TimedOut || !failure.Retryable || time.Since(begun) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		release()
		synctest.Wait()
		if token, err := send(time.Minute); token != "token-3" || err != nil {
			t.Errorf("%s, %v", token, err)
		}
	})
}

// Whoever waits for a renewal while the connection is changed gets a token of the changed
// connection, whatever the renewal of the old one ends with.
func TestChangeDuringRenewal(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]*egress.Response{
		"the old token is issued": nil,
		"the old one is refused":  {Status: http.StatusUnauthorized, Body: []byte(`{"error": "invalid_client"}`)},
		"the service fails":       {Status: http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, tokens, id, send := withEndpoint(t)
				release := tokens.hang()
				tokens.next = old
				sent := make(chan string, 3)
				for range cap(sent) {
					go func() {
						token, err := send(time.Minute)
						if err != nil {
							t.Error(err)
						}
						sent <- token
					}()
				}
				synctest.Wait()
				if _, err := in.Update(t.Context(), in.owner, id, connection.Patch{Fields: map[string]string{"client_secret": "another secret"}}); err != nil {
					t.Fatal(err)
				}
				release()
				want := "token-2"
				if old != nil {
					want = "token-1"
				}
				for range cap(sent) {
					if token := <-sent; token != want {
						t.Errorf("sent %q", token)
					}
				}
			})
		})
	}
}

// Whoever waits for a renewal while the connection is deleted, and another one gets its
// name, uses that one.
func TestReplacedDuringRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, tokens, id, send := withEndpoint(t)
		release := tokens.hang()
		tokens.next = &egress.Response{Status: http.StatusUnauthorized, Body: []byte(`{"error": "invalid_client"}`)}
		sent := make(chan string)
		go func() {
			token, err := send(time.Minute)
			if err != nil {
				t.Error(err)
			}
			sent <- token
		}()
		synctest.Wait()
		if err := in.Delete(t.Context(), in.owner, id); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Create(t.Context(), in.owner, connection.New{
			Name: "shop", Auth: integration.Bearer, Definition: []byte(`{"hosts": ["api.example.com"]}`), Fields: map[string]string{"token": "another one"},
		}); err != nil {
			t.Fatal(err)
		}
		release()
		if token := <-sent; token != "another one" {
			t.Errorf("sent %q", token)
		}
	})
}

// A connection that nobody consents to learns from its first token: the first step knows
// the host of the account, and may send the credential there.
func TestLearnedFromTokenWithoutConsent(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	in.client = &endpoint{next: &egress.Response{
		Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: []byte(`{"access_token": "a-token", "instance_url": "https://acme.my.salesforce.com", "id": "https://login.salesforce.com/id/00D/005"}`),
	}}
	in.parts = in.node("node_1")
	if _, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "crm", Integration: "salesforce", Auth: "client_credentials", Fields: map[string]string{"client_id": "client", "client_secret": "the secret"},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when it is read again
		err := in.Use(t.Context(), in.owner.Workspace.ID, "crm", time.Minute, func(_ context.Context, c action.Connection) error {
			host, err := url.Parse(c.Variables["instance_url"])
			if err != nil || host.Host != "acme.my.salesforce.com" || !c.Credential.Allows(host) {
				t.Errorf("the variables are %v, error %v", c.Variables, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
