package connection_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// issuer is a server that publishes documents by path. ISSUER in them is its URL.
func issuer(t *testing.T, documents map[string]string) string {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(document, "http"):
			http.Redirect(w, r, document, http.StatusFound)
		default:
			_, _ = fmt.Fprint(w, strings.ReplaceAll(document, "ISSUER", server.URL))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const (
	openID  = "/.well-known/openid-configuration"
	rfc8414 = "/.well-known/oauth-authorization-server"
)

var client = map[string]string{"client_id": oauthserver.ClientID, "client_secret": oauthserver.ClientSecret}

// TestDiscovery checks what is filled in from the metadata of an issuer.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path, document string
		issuer         string // its path
		more           string // of the definition
		want           map[string]any
	}{
		"everything": {
			openID, `{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t", "revocation_endpoint": "ISSUER/r",
				"token_endpoint_auth_methods_supported": ["client_secret_post"], "code_challenge_methods_supported": ["plain"],
				"authorization_response_iss_parameter_supported": true}`, "", "",
			map[string]any{"authorize_url": "ISSUER/a", "token_url": "ISSUER/t", "revoke_url": "ISSUER/r", "client_auth": "body", "pkce": false, "iss_required": true},
		},
		"defaults": {
			openID, `{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t"}`, "", "",
			map[string]any{"authorize_url": "ISSUER/a", "token_url": "ISSUER/t", "revoke_url": nil, "client_auth": "basic", "pkce": true, "iss_required": nil},
		},
		"basic is preferred": {
			openID, `{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t", "code_challenge_methods_supported": ["plain", "S256"],
				"token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]}`, "", "",
			map[string]any{"client_auth": "basic", "pkce": true},
		},
		"members that are given stay": {
			openID, `{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t", "token_endpoint_auth_methods_supported": ["private_key_jwt"]}`, "",
			`, "token_url": "https://other.example/t", "client_auth": "body", "pkce": false`,
			map[string]any{"authorize_url": "ISSUER/a", "token_url": "https://other.example/t", "client_auth": "body", "pkce": false},
		},
		"a path, after OpenID Connect": {
			"/tenant" + openID, `{"issuer": "ISSUER/tenant", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t"}`, "/tenant", "",
			map[string]any{"token_url": "ISSUER/t"},
		},
		"a path, after RFC 8414": {
			rfc8414 + "/tenant", `{"issuer": "ISSUER/tenant/", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t"}`, "/tenant/", "",
			map[string]any{"token_url": "ISSUER/t"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, at := newInstallation(t), issuer(t, map[string]string{tc.path: tc.document})
			resolved, err := in.Discover(t.Context(), in.owner, connection.New{
				Auth: integration.OAuth2, Definition: []byte(fmt.Sprintf(`{"hosts": ["api.example.com"], "issuer": %q %s}`, at+tc.issuer, tc.more)),
			})
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(resolved.Definition, &got); err != nil {
				t.Fatal(err)
			}
			for member, want := range tc.want {
				if text, ok := want.(string); ok {
					want = strings.ReplaceAll(text, "ISSUER", at)
				}
				if got[member] != want {
					t.Errorf("%s is %v, want %v", member, got[member], want)
				}
			}
		})
	}
}

func TestFailedDiscovery(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		document string
		issuer   string // "" for that of the server
		want     string
	}{
		"not a URL":               {"", "id.example.com", "must be an absolute https URL"},
		"a query":                 {"", "https://id.example.com/?x=1", "must be an absolute https URL"},
		"an address inside":       {"", "http://10.0.0.1", "cannot be read"},
		"no document":             {"", "", "publishes neither"},
		"no JSON":                 {"<html>", "", "publishes neither"},
		"a redirect":              {"https://other.example", "", "publishes neither"},
		"too long":                {`{"issuer": "` + strings.Repeat("x", 300<<10) + `"}`, "", "cannot be read"},
		"another issuer":          {`{"issuer": "https://other.example", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t"}`, "", `"https://other.example": enter that`},
		"another slash":           {`{"issuer": "ISSUER/", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t"}`, "", "enter that"},
		"no token endpoint":       {`{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a"}`, "", "does not publish its token_url"},
		"no authorize endpoint":   {`{"issuer": "ISSUER", "token_endpoint": "ISSUER/t"}`, "", "does not publish its authorize_url"},
		"an unusable endpoint":    {`{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "javascript:x"}`, "", "publishes a token_url that is not"},
		"no usable client method": {`{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t", "token_endpoint_auth_methods_supported": ["private_key_jwt"]}`, "", "private_key_jwt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, at := newInstallation(t), issuer(t, map[string]string{openID: tc.document})
			if tc.issuer != "" {
				at = tc.issuer
			}
			_, err := in.Connect(t.Context(), in.owner, connection.New{
				Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: []byte(fmt.Sprintf(`{"hosts": ["api.example.com"], "issuer": %q}`, at)),
			}, redirect)
			faulttest.Want(t, err, fault.InvalidRequest, "/definition/issuer")
			if !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestIssuerOfConnections connects by issuer, in both grants. What the issuer publishes
// later changes nothing, and another issuer does not get the secret.
func TestIssuerOfConnections(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	documents := map[string]string{openID: fmt.Sprintf(`{"issuer": "ISSUER", "authorization_endpoint": "%[1]s/authorize", "token_endpoint": "%[1]s/token", "revocation_endpoint": "%[1]s/revoke"}`, s.URL)}
	at := issuer(t, documents)
	defined := func(issuer, more string) []byte {
		return []byte(fmt.Sprintf(`{"hosts": [%q], "issuer": %q %s}`, s.URL, issuer, more))
	}
	address, err := in.Connect(t.Context(), in.owner, connection.New{Name: "person", Auth: integration.OAuth2, Fields: client, Definition: defined(at, "")}, redirect)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(address); err != nil || u.Query().Get("code_challenge") == "" {
		t.Errorf("%s, %v", address, err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Fatal(err)
	}
	wanted, err := in.Discover(t.Context(), in.owner, connection.New{Name: "client", Auth: integration.OAuth2, Fields: client, Definition: defined(at, `, "grant": "client_credentials"`)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := in.Create(t.Context(), in.owner, wanted)
	if err != nil {
		t.Fatal(err)
	}
	evil := issuer(t, map[string]string{openID: `{"issuer": "ISSUER", "authorization_endpoint": "ISSUER/a", "token_endpoint": "ISSUER/t"}`})
	_, err = in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: defined(evil, `, "grant": "client_credentials"`)})
	faulttest.Want(t, err, fault.InvalidRequest, "/fields/client_secret")
	_, err = in.Update(t.Context(), in.owner, c.ID, connection.Patch{Definition: defined("https://id.invalid", "")})
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/issuer")
	delete(documents, openID)
	for _, name := range []string{"person", "client"} {
		s.ExpireAll()
		if err := in.call(in.parts, s, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	for definition, pointer := range map[string]string{
		`"grant": "implicit", "token_url": "https://id.example/t"`:                                                    "/definition/grant",
		`"grant": "authorization_code", "token_url": "https://id.example/t"`:                                          "/definition/authorize_url",
		`"grant": "client_credentials", "token_url": "https://id.example/t", "authorize_url": "https://id.example/a"`: "/definition/authorize_url",
		`"grant": "client_credentials"`:                                                                               "/definition/token_url",
	} {
		_, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: []byte(`{"hosts": ["api.example.com"], ` + definition + `}`)})
		faulttest.Want(t, err, fault.InvalidRequest, pointer)
	}
	_, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "s3cret"}, Definition: []byte(`{"hosts": ["api.example.com"], "issuer": "https://id.example", "grant": "client_credentials"}`)})
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/issuer", "/definition/grant")
}

// TestIssuerOfAnswers completes consents with the issuer that the answer names.
func TestIssuerOfAnswers(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	const (
		issuer = "https://id.example/tenant"
		known  = `, "issuer": "` + issuer + `"`
	)
	for i, tc := range []struct{ definition, iss, want string }{
		{"", "", ""},
		{"", s.URL, ""},
		{"", s.URL + "/tenant", ""},
		{"", issuer, "set issuer in the definition"},
		{"", "https://" + strings.TrimPrefix(s.URL, "http://"), "set issuer in the definition"},
		{known, "", ""},
		{known, issuer, ""},
		{known, issuer + "/", "instead of " + issuer},
		{known, s.URL, "instead of " + issuer},
		{known + `, "iss_required": true`, issuer, ""},
		{known + `, "iss_required": true`, "", "without the name of the authorization server"},
	} {
		address, err := in.Connect(t.Context(), in.owner, connection.New{
			Name: fmt.Sprint("c", i), Auth: integration.OAuth2, Fields: client,
			Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q %s`, s.URL+"/authorize", tc.definition)),
		}, redirect)
		if err != nil {
			t.Fatal(err)
		}
		back := s.Consent(t, address)
		if tc.iss != "" {
			back.Set("iss", tc.iss)
		}
		exchanged := s.Requests("authorization_code")
		_, err = in.Complete(t.Context(), in.owner, back)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s, %q: %v", tc.definition, tc.iss, err)
			}
			continue
		}
		faulttest.Want(t, err, fault.ConsentRefused)
		if !strings.Contains(fmt.Sprint(err), tc.want) || s.Requests("authorization_code") != exchanged {
			t.Errorf("%s, %q: %v, %d codes were exchanged", tc.definition, tc.iss, err, s.Requests("authorization_code")-exchanged)
		}
	}
	_, err := in.Connect(t.Context(), in.owner, connection.New{
		Name: "c", Auth: integration.OAuth2, Fields: client, Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q, "iss_required": true`, s.URL+"/authorize")),
	}, redirect)
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/iss_required")
}
