package connection_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
)

// recorder stands in for all services: it issues tokens, and remembers the requests
// with their credentials.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

const (
	issuedToken  = "the-issued-token"
	clientSecret = "the-secret-of-the-client"
)

func (r *recorder) Do(_ context.Context, in egress.Request) (*egress.Response, error) {
	request, err := http.NewRequest(in.Method, in.URL, bytes.NewReader(in.Body))
	if err != nil {
		return nil, err
	}
	if in.Header != nil {
		request.Header = in.Header.Clone()
	}
	if in.Credential != nil {
		if !in.Credential.Allows(request.URL) {
			return nil, &egress.Error{Code: "egress_denied", Message: request.URL.Host}
		}
		if err := in.Credential.Apply(request); err != nil {
			return nil, err
		}
	}
	text := request.URL.String() + "\n"
	for name, values := range request.Header {
		text += name + ": " + strings.Join(values, ",") + "\n"
		if encoded, ok := strings.CutPrefix(values[0], "Basic "); ok {
			plain, _ := base64.StdEncoding.DecodeString(encoded)
			text += string(plain) + "\n"
		}
	}
	r.mu.Lock()
	r.seen = append(r.seen, text+string(in.Body))
	r.mu.Unlock()
	answer := map[string]any{"access_token": issuedToken, "refresh_token": "refresh", "expires_in": 3600, "ok": true}
	for domain, more := range told {
		if strings.Contains(request.URL.Host, domain) {
			maps.Copy(answer, more)
		}
	}
	body, err := json.Marshal(answer)
	return &egress.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, err
}

// told is what services tell with a token, by their domain.
var told = map[string]map[string]any{
	"pipedrive":  {"api_domain": "https://acme.pipedrive.com"},
	"zoho":       {"api_domain": "https://www.zohoapis.com"},
	"salesforce": {"instance_url": "https://acme.my.salesforce.com"},
}

// take returns the requests since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// sent reports whether a request contains a text, encoded or not.
func sent(request, text string) bool {
	return strings.Contains(request, text) || strings.Contains(request, url.QueryEscape(text))
}

// TestEveryWayToConnect walks every way to authenticate of every integration: it can be
// filled in, and its credential arrives at the service.
func TestEveryWayToConnect(t *testing.T) {
	t.Parallel()
	in, services := newInstallation(t), &recorder{}
	in.client = services
	node := in.node("node_1")
	in.owner.Workspace.Plan = "enterprise"
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	keyFile, _ := connection.NewKeyFile(t)
	for _, service := range catalog.List() {
		for i := range service.Connection.Auth {
			way := &service.Connection.Auth[i]
			name := strings.ReplaceAll(service.ID+"-"+way.ID, "_", "-")
			t.Run(name, func(t *testing.T) {
				fields, secrets := sampleFields(service.Fields(way), keyFile)
				wanted := connection.New{Name: name, Integration: service.ID, Auth: way.ID, Fields: fields}
				switch {
				case way.NeedsConsent():
					consentTo(t, in, node, service, way, wanted)
					secrets = append(secrets, clientSecret)
				case way.Kind == integration.OAuth2 && fields["client_secret"] == "":
					t.Fatal("there is no field for the client")
				default:
					if _, err := create(t.Context(), node.Connections, in.owner, wanted); err != nil {
						t.Fatal(err)
					}
				}
				err := node.Use(t.Context(), in.owner.Workspace.ID, name, time.Minute, func(ctx context.Context, c action.Connection) error {
					_, err := services.Do(ctx, egress.Request{Method: "GET", URL: "https://" + string(hostOf(t, in, name)) + "/" + integration.AuthSegment, Credential: c.Credential})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				requests := services.take()
				switch way.Kind {
				case integration.OAuth2, integration.ServiceAccount: // what was entered is for the token endpoint
					for _, secret := range secrets {
						if !slices.ContainsFunc(requests, func(request string) bool { return sent(request, secret) }) {
							t.Errorf("%s was not sent:\n%s", secret, strings.Join(requests, "\n"))
						}
					}
					secrets = []string{issuedToken}
				case integration.AWSSigV4: // a signature
					secrets = []string{"AWS4-HMAC-SHA256"}
				}
				last := requests[len(requests)-1]
				if !slices.ContainsFunc(secrets, func(secret string) bool { return sent(last, secret) }) {
					t.Errorf("no credential in the request:\n%s", last)
				}
			})
		}
	}
}

// sampleFields returns a value for each field, and those of them that are secrets sent as
// they are.
func sampleFields(fields []integration.Field, keyFile string) (values map[string]string, secrets []string) {
	values = map[string]string{}
	for _, f := range fields {
		if f.Format == integration.FormatJSON {
			values[f.Name] = keyFile
			continue
		}
		candidates := []string{f.Default, f.Example, "s3cret-" + f.Name, "acme", "12345"}
		for _, choice := range f.Enum {
			candidates = append(candidates, choice.Value)
		}
		for _, candidate := range candidates {
			if candidate != "" && f.Check(candidate) == nil {
				values[f.Name] = candidate
				break
			}
		}
		if f.Secret {
			secrets = append(secrets, values[f.Name])
		}
	}
	return values, secrets
}

// consentTo makes a connection by consent, with an OAuth app.
func consentTo(t *testing.T, in *installation, node *parts, service *integration.Integration, way *integration.Auth, wanted connection.New) {
	t.Helper()
	app := connection.NewApp{Integration: service.ID, Auth: way.ID, ClientID: "client", ClientSecret: clientSecret, Fields: map[string]string{}}
	for _, f := range way.AppFields {
		app.Fields[f.Name] = cmp.Or(f.Default, f.Example, "s3cret-"+f.Name)
	}
	if _, _, err := putApp(t.Context(), node.Apps, in.owner, app); err != nil {
		t.Fatal(err)
	}
	address, err := node.Connect(t.Context(), in.owner, wanted, redirect)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	callback := url.Values{"state": {u.Query().Get("state")}, "code": {"code"}}
	for name, value := range wanted.Fields {
		callback.Set(name, value)
	}
	if _, err := node.Complete(t.Context(), in.owner, callback); err != nil {
		t.Fatal(err)
	}
}

// hostOf returns a host of a connection.
func hostOf(t *testing.T, in *installation, name string) connection.Host {
	t.Helper()
	c, err := in.store.Connections.SealedConnection(t.Context(), in.owner.Workspace.ID, name)
	if err != nil || c == nil || len(c.Hosts) == 0 {
		t.Fatalf("%v, %v", c, err)
	}
	return c.Hosts[0]
}
