package httprequest_test

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/egress"
)

// key is a credential for one host.
type key struct{ host string }

func (k key) Allows(u *url.URL) bool { return u.Host == k.host }

func (k key) TLS() egress.TLS { return egress.TLS{} }

func (k key) Apply(r *http.Request) error {
	r.Header.Set("X-Key", "key")
	return nil
}

// A 401 is a rejection of the credential only if it comes from a server that received
// it, and only as long as it is not known that the service accepts it. Otherwise fail_on
// decides.
func TestRejectedCredential(t *testing.T) {
	t.Parallel()
	denies := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	elsewhere := serve(t, denies)
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		denies(w, r)
	})
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	t.Cleanup(client.Close)
	to, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path     string
		failOn   string
		accepted bool
		fails    bool
		rejected bool
	}{
		"rejected":                         {"/", ">=400", false, true, true},
		"rejected although it is no fault": {"/", "never", false, true, true},
		"accepted":                         {"/", ">=400", true, true, false},
		"accepted, and no fault":           {"/", "never", true, false, false},
		"of another server":                {"/away", ">=400", false, true, false},
		"of another server, and no fault":  {"/away", ">=500", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := httprequest.Entry(client).Action.Run(t.Context(), action.Request{
				Input: map[string]any{"url": service.URL + test.path, "fail_on": test.failOn}, Now: time.Now(), Workspace: "ws_a",
				Connection: &action.Connection{Name: "shop", Credential: key{to.Host}, Accepted: test.accepted},
			})
			failure, failed := errors.AsType[*action.Failure](err)
			if failed != test.fails || failed && failure.Rejected != test.rejected {
				t.Errorf("got %+v", err)
			}
		})
	}
}
