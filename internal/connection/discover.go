package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

const (
	// metadataTimeout limits a request for the metadata of an issuer.
	metadataTimeout = 10 * time.Second
	maxMetadata     = 256 << 10
)

// Discover reads the metadata of the issuer of a custom connection, and fills in what its
// definition leaves out. It sends requests, so it must not be called inside a transaction.
func (s *Service) Discover(ctx context.Context, actor auth.Actor, in New) (New, error) {
	if in.Integration != "" {
		return in, nil
	}
	var err error
	in.Definition, err = s.discover(ctx, actor.Workspace.ID, in.Auth, in.Definition)
	return in, err
}

func (s *Service) discover(ctx context.Context, workspaceID, kind string, definition json.RawMessage) (json.RawMessage, error) {
	if err := checkSize(definition); err != nil {
		return nil, err
	}
	issuer, ca := integration.UnresolvedIssuer(kind, definition)
	if issuer == "" {
		return definition, nil
	}
	if err := checkCA(ca); err != nil {
		return nil, err
	}
	metadata, err := s.servers.readMetadata(ctx, workspaceID, issuer, egress.TLS{CAs: ca})
	if err == nil {
		definition, err = metadata.Resolve(definition)
	}
	if err != nil {
		return nil, fault.Field("/definition/issuer", "%v", err)
	}
	return definition, nil
}

// readMetadata reads the metadata of an issuer. The requests contain no secret.
func (a *authServers) readMetadata(ctx context.Context, workspaceID, issuer string, tls egress.TLS) (metadata integration.ServerMetadata, err error) {
	targets, err := integration.MetadataURLs(issuer)
	if err != nil {
		return metadata, err
	}
	for _, target := range targets {
		resp, err := a.client.Do(ctx, egress.Request{
			Workspace: workspaceID, URL: target, Header: http.Header{"Accept": {"application/json"}}, Timeout: metadataTimeout, MaxBody: maxMetadata,
			Credential: tlsOnly(target, tls),
		})
		if failure, ok := errors.AsType[*egress.Error](err); ok {
			return metadata, fmt.Errorf("cannot be read: %s", failure.Message)
		}
		if err != nil {
			return metadata, err
		}
		if resp.Status == http.StatusOK && json.Unmarshal(resp.Body, &metadata) == nil && metadata.Issuer != "" {
			return metadata, nil
		}
	}
	return metadata, fmt.Errorf("publishes neither %s nor %s: check the issuer, or enter authorize_url and token_url instead", targets[0], targets[1])
}
