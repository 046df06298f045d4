package app

import (
	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/web"
)

// apiOptions returns the settings of the API.
func (s *Server) apiOptions() (api.Options, error) {
	cursors, err := paging.NewCodec(s.data.vault.Derive("cursors"))
	if err != nil {
		return api.Options{}, err
	}
	provider, err := s.identityProvider()
	return api.Options{
		Limits: s.limits(), Cursors: cursors, PreauthPerMinute: s.config.PreauthRPM, BodyBytes: bodyBytes(), TrustedProxies: config.Prefixes(s.config.TrustedProxy), Ready: s.ready, Warnings: s.disk.messages, Log: s.log,
		StreamsPerWorkspace: s.config.StreamsPerWorkspace, PublicURL: s.publicURL, Origin: s.config.PublicURL.Origin(), Version: config.VersionText(), Dashboard: web.Dashboard(),
		OIDC: provider, OIDCRole: account.Role(s.config.OIDC.Role), StorageStalled: s.storageStalled(),
	}, err
}
