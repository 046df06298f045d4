package connection

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stepmill/stepmill/internal/integration"
)

// issue requests a new token with the grant of the connection.
func (a *authServers) issue(ctx context.Context, c *opened) (tokenAnswer, error) {
	env, params := c.env(), url.Values{}
	switch {
	case c.auth.Kind == integration.ServiceAccount:
		endpoint, err := c.auth.TokenURL.URL(env)
		if err != nil {
			return tokenAnswer{}, err
		}
		assertion, err := signAssertion(c.secrets.Fields, c.Fields["subject"], c.scopes(), endpoint.String())
		if err != nil {
			return tokenAnswer{}, err
		}
		params.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		params.Set("assertion", assertion)
	case !c.auth.NeedsConsent():
		params.Set("grant_type", "client_credentials")
		c.setScopes(params)
		if err := setParams(params, c.auth.TokenParams, env); err != nil {
			return tokenAnswer{}, err
		}
	case c.auth.Exchange != nil && c.secrets.Token != nil:
		return a.exchangeToken(ctx, c)
	case c.secrets.Token == nil:
		return tokenAnswer{}, &tokenError{status: http.StatusBadRequest, code: "invalid_grant", description: "nobody has consented since it was changed"}
	case c.secrets.Token.Refresh == "":
		return tokenAnswer{}, &tokenError{status: http.StatusBadRequest, code: "invalid_grant", description: "the token is no longer accepted, and there is no refresh token"}
	default:
		params.Set("grant_type", "refresh_token")
		params.Set("refresh_token", c.secrets.Token.Refresh)
	}
	return a.requestToken(ctx, c, c.auth.TokenURL, params)
}

// exchangeCode exchanges the code of a consent for a token.
func (a *authServers) exchangeCode(ctx context.Context, c *opened, wait pending, code string) (tokenAnswer, error) {
	params := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {wait.Redirect}}
	if c.auth.PKCE {
		params.Set("code_verifier", wait.Verifier)
	}
	if err := setParams(params, c.auth.TokenParams, c.env()); err != nil {
		return tokenAnswer{}, err
	}
	answer, err := a.requestToken(ctx, c, c.auth.TokenURL, params)
	if err != nil || c.auth.Exchange == nil {
		return answer, err
	}
	c.secrets.Token = &answer.token
	return a.exchangeToken(ctx, c)
}

// exchangeToken exchanges the token of a connection for one that lives longer.
func (a *authServers) exchangeToken(ctx context.Context, c *opened) (tokenAnswer, error) {
	params := url.Values{}
	if err := setParams(params, c.auth.Exchange.Params, c.env()); err != nil {
		return tokenAnswer{}, err
	}
	return a.requestToken(ctx, c, c.auth.Exchange.URL, params)
}

// redeemDevice polls for the token of a device code.
func (a *authServers) redeemDevice(ctx context.Context, c *opened, device deviceCode) (tokenAnswer, error) {
	params := url.Values{"grant_type": {deviceGrant}, "device_code": {device.Code}}
	if err := setParams(params, c.auth.TokenParams, c.env()); err != nil {
		return tokenAnswer{}, err
	}
	return a.requestToken(ctx, c, c.auth.TokenURL, params)
}

func setParams(params url.Values, templates map[string]integration.Template, env integration.Env) error {
	for name, template := range templates {
		value, ok, err := template.Text(env)
		if err != nil {
			return fmt.Errorf("the parameter %s: %w", name, err)
		}
		if ok {
			params.Set(name, value)
		}
	}
	return nil
}

// revokeTimeout limits a revocation: the request that deletes a connection waits for it.
const revokeTimeout = 10 * time.Second

// revoke revokes the token of a connection where its service allows that (RFC 7009): the
// refresh token, or the access token if there is none. A failure is only logged, because
// nothing here depends on it.
func (a *authServers) revoke(ctx context.Context, c *opened) {
	if c.secrets.Token == nil || c.auth.RevokeURL.IsZero() {
		return
	}
	// Go on if the browser disconnects: the token would stay valid.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	params := url.Values{c.auth.RevokeParam: {cmp.Or(c.secrets.Token.Refresh, c.secrets.Token.Access)}}
	resp, err := a.postAsClient(ctx, c, c.auth.RevokeURL, params, c.auth.RevokeBody)
	if err == nil && resp.Status >= http.StatusMultipleChoices {
		err = fmt.Errorf("the service responded with %d %s", resp.Status, http.StatusText(resp.Status))
	}
	if err != nil {
		a.log.Warn("the token of a deleted connection could not be revoked", "connection_id", c.ID, "workspace_id", c.WorkspaceID, "error", err)
	}
}
