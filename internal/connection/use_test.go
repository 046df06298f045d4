package connection_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// denying starts a service that responds to its test with a status, and with 401 to
// everything else.
func denying(t *testing.T, testStatus *atomic.Int32) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/me" {
			w.WriteHeader(int(testStatus.Load()))
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestOther401s checks that a 401 that is not about the credential changes neither the
// token nor the status of a connection.
func TestOther401s(t *testing.T) {
	t.Parallel()
	in, oauth := newInstallation(t), oauthserver.Start(t)
	var testStatus atomic.Int32
	testStatus.Store(http.StatusOK)
	service := denying(t, &testStatus)
	const clientCredentials = `{"hosts": [%q], "token_url": %q%s}`
	fields := map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret}
	for name, more := range map[string]string{"tested": fmt.Sprintf(`, "test_url": %q`, service.URL+"/me"), "untested": ""} {
		definition := fmt.Appendf(nil, clientCredentials, service.URL, oauth.URL+"/token", more)
		if _, err := in.Create(t.Context(), in.owner, connection.New{Name: name, Auth: integration.OAuth2, Definition: definition, Fields: fields}); err != nil {
			t.Fatal(err)
		}
	}
	// call requests what the service denies. It returns whether each request came from a
	// connection that was accepted.
	call := func(name string) (accepted []bool, err error) {
		err = in.Use(t.Context(), in.owner.Workspace.ID, name, time.Minute, func(ctx context.Context, c action.Connection) error {
			accepted = append(accepted, c.Accepted)
			resp, err := in.client.Do(ctx, egress.Request{URL: service.URL + "/denied", Credential: c.Credential, Workspace: in.owner.Workspace.ID})
			if err != nil {
				return err
			}
			return &action.Failure{Code: "http_error", Message: fmt.Sprint(resp.Status), Rejected: !c.Accepted}
		})
		return accepted, err
	}
	status := func(name string) connection.Status {
		c, err := in.store.Connections.SealedConnection(t.Context(), in.owner.Workspace.ID, name)
		if err != nil {
			t.Fatal(err)
		}
		return c.Status
	}

	for range 5 {
		accepted, err := call("tested")
		failure, ok := errors.AsType[*action.Failure](err)
		if fmt.Sprint(accepted) != "[false true]" || !ok || failure.Rejected || failure.Retryable {
			t.Errorf("calls with %v: %+v", accepted, err)
		}
	}
	if n := oauth.Requests("client_credentials"); n != 1 || status("tested") != connection.Untested {
		t.Errorf("%d tokens were issued, and the connection is %s", n, status("tested"))
	}

	testStatus.Store(http.StatusServiceUnavailable)
	accepted, err := call("tested")
	if failure, ok := errors.AsType[*action.Failure](err); fmt.Sprint(accepted) != "[false]" || !ok || failure.Rejected || !failure.Retryable {
		t.Errorf("calls with %v: %+v", accepted, err)
	}
	if n := oauth.Requests("client_credentials"); n != 1 || status("tested") != connection.Untested {
		t.Errorf("%d tokens were issued, and the connection is %s", n, status("tested"))
	}

	testStatus.Store(http.StatusUnauthorized)
	if _, err := call("tested"); err == nil || status("tested") != connection.Failing {
		t.Errorf("%v, and the connection is %s", err, status("tested"))
	}
	if n := oauth.Requests("client_credentials"); n != 2 {
		t.Errorf("%d tokens were issued", n)
	}

	// Without a test, a token that is rejected although it is new is not renewed again.
	for range 5 {
		if _, err := call("untested"); err == nil {
			t.Error("there is no error")
		}
	}
	if n := oauth.Requests("client_credentials"); n != 4 || status("untested") != connection.Failing {
		t.Errorf("%d tokens were issued, and the connection is %s", n, status("untested"))
	}
}
