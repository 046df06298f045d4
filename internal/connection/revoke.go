package connection

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// revokeTimeout bounds a revocation. Whoever deletes a connection waits for it.
const revokeTimeout = 10 * time.Second

// revokeDeleted revokes the token of a connection that was deleted.
//
// Reconnecting does not revoke the previous token: many services have one grant for a
// person and an app, and would end the new one too.
func (s *Service) revokeDeleted(ctx context.Context, deleted Sealed) {
	c, err := s.unseal(ctx, deleted)
	if err != nil {
		s.log.Warn("a connection was deleted without revoking its token", "connection_id", deleted.ID, "error", err)
		return
	}
	s.revoke(ctx, c)
}

// revoke revokes the token of a connection where its service allows that (RFC 7009): the
// refresh token, or the access token if there is none. It can fail without
// consequences for us, so a failure is only logged.
func (s *Service) revoke(ctx context.Context, c *opened) {
	if c.secrets.Token == nil || c.auth.RevokeURL.IsZero() {
		return
	}
	// A browser that goes away does not keep the token alive.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	params := url.Values{c.auth.RevokeParam: {cmp.Or(c.secrets.Token.Refresh, c.secrets.Token.Access)}}
	resp, err := s.postAsClient(ctx, c, c.auth.RevokeURL, params, c.auth.RevokeBody)
	if err == nil && resp.Status >= http.StatusMultipleChoices {
		err = fmt.Errorf("the service responded with %d %s", resp.Status, http.StatusText(resp.Status))
	}
	if err != nil {
		s.log.Warn("the token of a deleted connection could not be revoked", "connection_id", c.ID, "workspace_id", c.WorkspaceID, "error", err)
	}
}
