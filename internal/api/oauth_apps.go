package api

import (
	"context"
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type oauthApps struct {
	apps          *connection.Apps
	subscriptions *subscription.Service
	publicURL     func() string
	cursors       *paging.Codec
}

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

// show returns an app with the URLs at which the service calls it.
func (h *oauthApps) show(ctx context.Context, a connection.App) (appBody, error) {
	hooks, err := h.subscriptions.HooksOfApp(ctx, a.WorkspaceID, a.Integration, a.Auth)
	if err != nil {
		return appBody{}, err
	}
	return h.showWithHooks(ctx, a, hooks)
}

func (h *oauthApps) showWithHooks(ctx context.Context, a connection.App, hooks []operation.Registration) (appBody, error) {
	urls, err := h.subscriptions.URLsOfApp(ctx, a, hooks)
	return appBody{
		ID: a.ID, Integration: a.Integration, Auth: a.Auth, ClientID: a.ClientID, Fields: a.Fields, Shared: a.Shared, RedirectURL: redirectURL(h.publicURL),
		Hooks:     showAll(urls, func(h subscription.AppHook) appHook { return appHook{h.Name, h.URL, h.Setup} }),
		CreatedAt: clock.Format(a.CreatedAt), CreatedBy: orNull(a.CreatedBy), UpdatedAt: clock.Format(a.UpdatedAt), UpdatedBy: orNull(a.UpdatedBy),
	}, err
}

func (h *oauthApps) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"oauth_apps"},
		func(p paging.Request) (shown paging.Page[appBody], err error) {
			found, err := h.apps.List(ctx, transport.Actor(ctx), p)
			if err != nil {
				return shown, err
			}
			shown.Next = found.Next
			for _, one := range found.Items {
				body, err := h.show(ctx, one)
				if err != nil {
					return shown, err
				}
				shown.Items = append(shown.Items, body)
			}
			return shown, nil
		},
		func(body appBody) appBody { return body })
}

func (h *oauthApps) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	app, err := h.apps.Get(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	body, err := h.show(ctx, app)
	if err != nil {
		return nil, err
	}
	return transport.OK(body), nil
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

type preparedApp struct {
	app   connection.SealedApp
	hooks []operation.Registration
}

func (h *oauthApps) prepareCreate(ctx context.Context, in *createAppRequest) (p preparedApp, err error) {
	body := in.Body
	switch {
	case body.Integration == nil:
		return p, fault.Field("/integration", "is required")
	case body.ClientID == nil:
		return p, fault.Field("/client_id", "is required")
	case body.ClientSecret == nil:
		return p, fault.Field("/client_secret", "is required")
	}
	p.app, err = h.apps.Prepare(ctx, transport.Actor(ctx), connection.NewApp{
		Integration: *body.Integration, Auth: body.Auth, ClientID: *body.ClientID, ClientSecret: *body.ClientSecret, Fields: body.Fields, Shared: body.Shared,
	})
	if err != nil {
		return p, err
	}
	p.hooks, err = h.subscriptions.HooksOfApp(ctx, p.app.WorkspaceID, p.app.Integration, p.app.Auth)
	return p, err
}

// create responds with 200 if it replaced the app for the same service.
func (h *oauthApps) create(ctx context.Context, tx txn.Tx, p preparedApp) (*transport.Reply, error) {
	app, isNew, err := h.apps.In(tx).Put(ctx, transport.Actor(ctx), p.app)
	if err != nil {
		return nil, err
	}
	shown, err := h.showWithHooks(ctx, app, p.hooks)
	if err != nil {
		return nil, err
	}
	response := transport.OK(shown).WithHeader("Location", "/v1/oauth-apps/"+app.ID)
	if !isNew {
		response.Status = http.StatusOK
	}
	return response, nil
}

func (h *oauthApps) remove(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.apps.Delete(ctx, transport.Actor(ctx), in.ID)
}
