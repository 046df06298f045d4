package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/subscription"
)

// consentCallback is where services send browsers back after a consent. People
// register it at the service.
const consentCallback = "/ui/v1/oauth/callback"

type appBody struct {
	ID          string            `json:"id"`
	Integration string            `json:"integration"`
	Auth        string            `json:"auth"`
	ClientID    string            `json:"client_id"`
	Fields      map[string]string `json:"fields"`
	Shared      bool              `json:"shared"`
	RedirectURL string            `json:"redirect_url"`
	Hooks       []appHook         `json:"hooks"`
	CreatedAt   string            `json:"created_at"`
	CreatedBy   *string           `json:"created_by"`
	UpdatedAt   string            `json:"updated_at"`
	UpdatedBy   *string           `json:"updated_by"`
}

// appHook is a URL at which the service calls the app.
type appHook struct {
	Hook  string `json:"hook"`
	URL   string `json:"url"`
	Setup string `json:"setup"`
}

func (s *Server) showApp(ctx context.Context, a connection.App) (appBody, error) {
	hooks, err := s.Subscriptions.OfApp(ctx, a)
	return appBody{
		ID: a.ID, Integration: a.Integration, Auth: a.Auth, ClientID: a.ClientID, Fields: a.Fields, Shared: a.Shared, RedirectURL: s.redirectURL(),
		Hooks:     showAll(hooks, func(h subscription.AppHook) appHook { return appHook{h.Name, h.URL, h.Setup} }),
		CreatedAt: clock.Format(a.CreatedAt), CreatedBy: orNull(a.CreatedBy), UpdatedAt: clock.Format(a.UpdatedAt), UpdatedBy: orNull(a.UpdatedBy),
	}, err
}

func (s *Server) listApps(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"oauth_apps"},
		func(p paging.Request) (shown paging.Page[appBody], err error) {
			found, err := s.Connections.Apps(ctx, actorOf(ctx), p)
			if err != nil {
				return shown, err
			}
			shown.Next = found.Next
			for _, one := range found.Items {
				body, err := s.showApp(ctx, one)
				if err != nil {
					return shown, err
				}
				shown.Items = append(shown.Items, body)
			}
			return shown, nil
		},
		func(body appBody) appBody { return body })
}

type appRequest struct {
	ID string `path:"id"`
}

func (s *Server) getApp(ctx context.Context, in *appRequest) (*reply, error) {
	app, err := s.Connections.App(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body, err := s.showApp(ctx, app)
	if err != nil {
		return nil, err
	}
	return ok(body), nil
}

type createAppRequest struct {
	Body struct {
		Integration  *string           `json:"integration"`
		Auth         string            `json:"auth"`
		ClientID     *string           `json:"client_id"`
		ClientSecret *string           `json:"client_secret"`
		Fields       map[string]string `json:"fields"`
		Shared       bool              `json:"shared"`
	} `body:"required"`
}

// createApp responds with 200 if it replaced the app for the same service.
func (s *Server) createApp(ctx context.Context, in *createAppRequest) (*reply, error) {
	body := in.Body
	switch {
	case body.Integration == nil:
		return nil, fault.Field("/integration", "is required")
	case body.ClientID == nil:
		return nil, fault.Field("/client_id", "is required")
	case body.ClientSecret == nil:
		return nil, fault.Field("/client_secret", "is required")
	}
	app, isNew, err := s.Connections.PutApp(ctx, actorOf(ctx), connection.NewApp{
		Integration: *body.Integration, Auth: body.Auth, ClientID: *body.ClientID, ClientSecret: *body.ClientSecret, Fields: body.Fields, Shared: body.Shared,
	})
	if err != nil {
		return nil, err
	}
	shown, err := s.showApp(ctx, app)
	if err != nil {
		return nil, err
	}
	response := ok(shown).withHeader("Location", "/v1/oauth-apps/"+app.ID)
	if !isNew {
		response.status = http.StatusOK
	}
	return response, nil
}

func (s *Server) deleteApp(ctx context.Context, in *appRequest) (*reply, error) {
	return &reply{}, s.Connections.DeleteApp(ctx, actorOf(ctx), in.ID)
}

type consentBody struct {
	// AuthorizeURL is where the person consents.
	AuthorizeURL string `json:"authorize_url"`
	RedirectURL  string `json:"redirect_url"`
}

// connect begins a connection that needs consent.
func (s *Server) connect(ctx context.Context, in *newConnectionRequest) (*reply, error) {
	wanted, err := in.wanted()
	if err != nil {
		return nil, err
	}
	if err := s.checkHost(ctx); err != nil {
		return nil, err
	}
	address, err := s.Connections.Connect(ctx, actorOf(ctx), wanted, s.redirectURL())
	if err != nil {
		return nil, err
	}
	return ok(consentBody{address, s.redirectURL()}), nil
}

type reconnectRequest struct {
	connectionRequest
	Body struct {
		Hosts []string `json:"hosts"`
	} `body:"optional"`
}

// reconnect begins to renew the consent for a connection.
func (s *Server) reconnect(ctx context.Context, in *reconnectRequest) (*reply, error) {
	if err := s.checkHost(ctx); err != nil {
		return nil, err
	}
	address, err := s.Connections.Reconnect(ctx, actorOf(ctx), in.ID, s.redirectURL(), in.Body.Hosts)
	if err != nil {
		return nil, err
	}
	return ok(consentBody{address, s.redirectURL()}), nil
}

type consentCallbackRequest struct {
	Query url.Values `query:"*"`
}

// finishConsent completes a consent and sends the browser back to the dashboard, where
// the person confirms it if they used another account than before.
func (s *Server) finishConsent(ctx context.Context, in *consentCallbackRequest) (*reply, error) {
	done, err := s.Connections.Complete(ctx, actorOf(ctx), in.Query)
	if err != nil {
		return nil, err
	}
	outcome := url.Values{"connection": {done.ID}}
	if done.Replaces != "" {
		outcome = url.Values{"confirm": {done.Name}, "account": {done.Account}, "replaces": {done.Replaces}}
	}
	return s.consentDone(in.Query.Get("state"), outcome), nil
}

type confirmConsentRequest struct {
	Body struct {
		State *string `json:"state"`
	} `body:"required"`
}

// confirmConsent reconnects a connection with another account.
func (s *Server) confirmConsent(ctx context.Context, in *confirmConsentRequest) (*reply, error) {
	if err := required(member{"/state", in.Body.State}); err != nil {
		return nil, err
	}
	c, err := s.Connections.Confirm(ctx, actorOf(ctx), *in.Body.State)
	if err != nil {
		return nil, err
	}
	return s.connectionReply(ctx, c)
}

// consentFailed sends the browser back to the dashboard, which shows why there is no
// connection.
func (s *Server) consentFailed(r *http.Request, problem *fault.Error) *reply {
	message := problem.Message
	if problem.Code == fault.Unauthorized {
		message = "you are not signed in to Stepmill in this browser: sign in, and connect again"
	}
	return s.consentDone(r.URL.Query().Get("state"), url.Values{"error": {string(problem.Code)}, "message": {message}})
}

// consentDone sends the browser to the page at the end of a consent. The state tells the
// window that asked which consent it was.
func (s *Server) consentDone(state string, outcome url.Values) *reply {
	outcome.Set("state", state)
	return redirect(s.PublicURL() + "/connections/done?" + outcome.Encode())
}

func (s *Server) redirectURL() string { return s.PublicURL() + consentCallback }

// checkHost rejects a consent that begins at another address than the public URL: the
// service would send the browser to the public URL, where it has no session.
func (s *Server) checkHost(ctx context.Context) error {
	public, err := url.Parse(s.PublicURL())
	if err != nil {
		return err
	}
	c := callerOf(ctx)
	used := &url.URL{Scheme: public.Scheme, Host: c.host}
	if origin, err := url.Parse(c.origin); err == nil && origin.Host != "" {
		used = origin
	}
	if originOf(used) == originOf(public) {
		return nil
	}
	return fault.New(fault.WrongHost, "you use Stepmill at %s, but services send browsers back to %s, where you are not signed in: "+
		"open %s and connect there, or set --public-url to the address that you use", clean(originOf(used)), originOf(public), s.PublicURL())
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
