// Package integrations holds the manifests of the integrations, a folder each. It
// does not read them: internal/integration does.
package integrations

// The pages of internal/integration/reference are made of what the index has.
//
//go:generate go test . -run TestIndex -update

import "embed"

// Files has the manifests as <id>/integration.yaml, and their tests as <id>/tests.yaml, and
// their icons as <id>/icon.svg.
//
//go:embed */integration.yaml */tests.yaml */icon.svg
var Files embed.FS

// Index has the manifests as JSON, with an outline of their operations and triggers only.
// `make gen` writes it.
//
//go:embed index.json
var Index []byte
