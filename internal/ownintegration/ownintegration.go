// Package ownintegration owns the integrations that workspaces have described themselves:
// their manifests, and the catalogs of them that workflows and connections are resolved
// with. What a manifest can say, and what is compiled of it, belongs to package integration.
package ownintegration

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/txn"
)

// Manifest is the manifest of an integration of a workspace.
type Manifest struct {
	WorkspaceID string
	ID          string
	Text        string
	// Digest identifies the text; it is the ETag.
	Digest    string
	CreatedAt time.Time
	CreatedBy string
	UpdatedAt time.Time
	UpdatedBy string
}

// ETag returns the ETag of the manifest.
func (m Manifest) ETag() string { return `"` + m.Digest + `"` }

// Head identifies the text that an integration has.
type Head struct {
	ID     string
	Digest string
}

// The limits of a workspace. Compiled, the manifests need about ten times as much memory.
const (
	MaxManifests = 100
	MaxBytes     = 4 << 20 // of all manifests together
)

// Outcome is the outcome of a change.
type Outcome int

// The outcomes.
const (
	Done     Outcome = iota
	Exists           // there is one with the id
	Missing          // there is none with the id, or none any more
	Stale            // it has changed since it was read
	TooMany          // there are MaxManifests
	TooLarge         // they would have more than MaxBytes
	InUse            // connections belong to it
)

// Store stores manifests. Each method is one transaction. A pointer result is nil when
// there is no such row.
type Store interface {
	In(tx txn.Tx) Store
	InsertManifest(ctx context.Context, m Manifest, entry audit.Entry) (Outcome, error)
	// ReplaceManifest replaces the text if the manifest still has the digest. If there is a
	// problem, the connections of the integration have to be reconnected because of it.
	ReplaceManifest(ctx context.Context, m Manifest, wasDigest, problem string, entry audit.Entry) (Outcome, error)
	// DeleteManifest deletes the manifest and the OAuth apps of its integration, if it still
	// has the digest and no connections belong to it. Otherwise it returns the name of
	// such a connection.
	DeleteManifest(ctx context.Context, m Manifest, entry audit.Entry) (outcome Outcome, connection string, err error)
	Manifest(ctx context.Context, workspaceID, id string) (*Manifest, error)
	// ManifestHead returns what identifies the text of a manifest.
	ManifestHead(ctx context.Context, workspaceID, id string) (*Head, error)
	// ManifestHeads are those of all manifests of a workspace, ordered by id.
	ManifestHeads(ctx context.Context, workspaceID string) ([]Head, error)
}
