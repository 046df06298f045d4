package connection

import (
	"context"
	"maps"

	"github.com/stepmill/stepmill/internal/integration"
)

// Verifying returns the secret with which the service signs its calls, from a template of
// its manifest, and the variables of the connection. The secret is "" if the connection does
// not have it.
func (s *Service) Verifying(ctx context.Context, workspaceID, name string, secret integration.Template) (text string, variables map[string]string, err error) {
	c, err := s.readAny(ctx, workspaceID, name)
	if err == nil {
		err = s.refuseUnconfirmed(ctx, c)
	}
	if err != nil {
		return "", nil, err
	}
	env := c.env()
	env.Secret = maps.Clone(env.Secret)
	if env.Secret == nil {
		env.Secret = map[string]string{}
	}
	env.Secret[integration.ClientSecret] = c.client().secret
	text, _, err = secret.Text(env)
	return text, env.Connection, err
}
