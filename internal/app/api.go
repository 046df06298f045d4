package app

import (
	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/web"
)

func (s *Server) apiOptions() (api.Options, error) {
	cursors, err := paging.NewCodec(s.data.vault.Derive("cursors"))
	if err != nil {
		return api.Options{}, err
	}
	provider, err := s.identityProvider()
	return api.Options{
		Options: transport.Options{
			Limits: s.topology.NewRateLimits(), PreauthPerMinute: s.config.PreauthRPM, StreamsPerWorkspace: s.config.StreamsPerWorkspace, BodyBytes: bodyBytes(),
			TrustedProxies: config.Prefixes(s.config.TrustedProxy), Origin: s.config.PublicURL.Origin(), Dashboard: web.Dashboard(),
			StorageStalled: s.storageStalled(), Log: s.log,
		},
		Cursors: cursors, PublicURL: s.publicURL, Version: config.VersionText(), Ready: s.ready, Warnings: s.disk.messages,
		OIDC: provider, OIDCRole: account.Role(s.config.OIDC.Role),
	}, err
}
