package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/transport"
)

type consents struct {
	consents    *connection.Consents
	connections *connections
	publicURL   func() string
}

// consentCallback is where services send browsers back after a consent. People
// register it at the service.
const consentCallback = "/ui/v1/oauth/callback"

type consentBody struct {
	// AuthorizeURL is where the person consents.
	AuthorizeURL string `json:"authorize_url"`
	RedirectURL  string `json:"redirect_url"`
}

func (h *consents) connect(ctx context.Context, in *newConnectionRequest) (*transport.Reply, error) {
	wanted, err := in.wanted()
	if err != nil {
		return nil, err
	}
	if err := h.checkHost(ctx); err != nil {
		return nil, err
	}
	address, err := h.consents.Connect(ctx, transport.Actor(ctx), wanted, redirectURL(h.publicURL))
	if err != nil {
		return nil, err
	}
	return transport.OK(consentBody{address, redirectURL(h.publicURL)}), nil
}

type reconnectRequest struct {
	idRequest
	Body struct {
		Hosts []string `json:"hosts"`
	} `body:"optional"`
}

func (h *consents) reconnect(ctx context.Context, in *reconnectRequest) (*transport.Reply, error) {
	if err := h.checkHost(ctx); err != nil {
		return nil, err
	}
	address, err := h.consents.Reconnect(ctx, transport.Actor(ctx), in.ID, redirectURL(h.publicURL), in.Body.Hosts)
	if err != nil {
		return nil, err
	}
	return transport.OK(consentBody{address, redirectURL(h.publicURL)}), nil
}

type consentCallbackRequest struct {
	Query url.Values `query:"*"`
}

// finish completes a consent and sends the browser back to the dashboard, where
// the person confirms it if they used another account than before.
func (h *consents) finish(ctx context.Context, in *consentCallbackRequest) (*transport.Reply, error) {
	done, err := h.consents.Complete(ctx, transport.Actor(ctx), in.Query)
	if err != nil {
		return nil, err
	}
	outcome := url.Values{"connection": {done.ID}}
	if done.Replaces != "" {
		outcome = url.Values{"confirm": {done.Name}, "account": {done.Account}, "replaces": {done.Replaces}}
	}
	return h.done(in.Query.Get("state"), outcome), nil
}

type confirmConsentRequest struct {
	Body struct {
		State *string `json:"state"`
	} `body:"required"`
}

func (h *consents) confirm(ctx context.Context, in *confirmConsentRequest) (*transport.Reply, error) {
	if err := required(member{"/state", in.Body.State}); err != nil {
		return nil, err
	}
	c, err := h.consents.Confirm(ctx, transport.Actor(ctx), *in.Body.State)
	if err != nil {
		return nil, err
	}
	return h.connections.reply(ctx, c)
}

// failed sends the browser back to the dashboard, which shows why there is no
// connection.
func (h *consents) failed(r *http.Request, problem *fault.Error) *transport.Reply {
	message := problem.Message
	if problem.Code == fault.Unauthorized {
		message = "you are not signed in to Stepmill in this browser: sign in, and connect again"
	}
	return h.done(r.URL.Query().Get("state"), url.Values{"error": {string(problem.Code)}, "message": {message}})
}

// done sends the browser to the page at the end of a consent. The state tells the
// window that asked which consent it was.
func (h *consents) done(state string, outcome url.Values) *transport.Reply {
	outcome.Set("state", state)
	return redirect(h.publicURL() + "/connections/done?" + outcome.Encode())
}

// redirectURL returns the URL that people register at services.
func redirectURL(publicURL func() string) string { return publicURL() + consentCallback }

// checkHost rejects a consent that begins at another address than the public URL: the
// service would send the browser to the public URL, where it has no session.
func (h *consents) checkHost(ctx context.Context) error {
	public, err := url.Parse(h.publicURL())
	if err != nil {
		return err
	}
	c := transport.CallerOf(ctx)
	used := &url.URL{Scheme: public.Scheme, Host: c.Host}
	if origin, err := url.Parse(c.Origin); err == nil && origin.Host != "" {
		used = origin
	}
	if originOf(used) == originOf(public) {
		return nil
	}
	return fault.New(fault.WrongHost, "you use Stepmill at %s, but services send browsers back to %s, where you are not signed in: "+
		"open %s and connect there, or set --public-url to the address that you use", transport.Clean(originOf(used)), originOf(public), h.publicURL())
}

// originOf returns the origin of a URL, without the usual port of its scheme.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}
