package connections_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stepmill/stepmill/test/digestserver"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// TestDigest sends JSON and a file to a server with digest authentication, and checks that
// nothing answers it elsewhere.
func TestDigest(t *testing.T) {
	t.Parallel()
	service := digestserver.Start(t, sha256.New, `qop="auth", algorithm=SHA-256`)
	other := digestserver.Start(t, md5.New, `qop="auth"`)
	s := harness.Start(t, t.TempDir(), allowLoopback)
	var made struct{ ID string }
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": "camera", "auth": "digest", "fields": map[string]string{"username": digestserver.User, "password": digestserver.Password},
		"definition": map[string]any{"hosts": []string{service.URL}},
	}).Decode(t, &made)
	status := func() (status string) {
		var shown struct{ Status string }
		s.Expect(t, http.StatusOK, "GET", "/v1/connections/"+made.ID, nil).Decode(t, &shown)
		return shown.Status
	}

	if code := call(t, s, "camera", service.URL+"/orders?a=b%20c"); code != "" || status() != "connected" {
		t.Errorf("%q, %s", code, status())
	}
	if got := service.Requests(); len(got) != 2 || !got[1].Accepted || got[1].Body == 0 {
		t.Errorf("%+v", got)
	}

	const size = 3 << 20
	depot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}))
	t.Cleanup(depot.Close)
	get := flow.Step("get", "http.request", fmt.Sprintf(`{"url": %q, "response": "file"}`, depot.URL))
	put := flow.Step("put", "http.request", fmt.Sprintf(`{"url": %q, "method": "PUT", "body": "${{ steps.get.output.body }}"}`, service.URL+"/firmware"))
	put["connection"] = "camera"
	awaitSuccess(t, s.Client, startRuns(t, s.Client, flow.Define(t, s.Client, get, put), 1))
	if got := service.Requests(); len(got) != 2 || got[1].Body != size {
		t.Errorf("%+v", got)
	}

	if code := call(t, s, "", other.URL); code != "http_error" {
		t.Errorf("without the connection: %q", code)
	}
	if code := call(t, s, "camera", other.URL); code != "egress_denied" {
		t.Errorf("another host: %q", code)
	}
	if got := other.Requests(); len(got) != 1 || got[0].Authorization != "" {
		t.Errorf("the other server received %+v", got)
	}

	service.SetPassword("another one")
	if code := call(t, s, "camera", service.URL); code != "http_error" || status() != "failing" {
		t.Errorf("a wrong password: %q, %s", code, status())
	}
}
