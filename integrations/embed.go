// Package integrations holds the manifests of the integrations, a folder each. It
// does not read them: internal/integration does.
package integrations

import "embed"

// Files has the manifests as <id>/integration.yaml, and their tests as <id>/tests.yaml.
//
//go:embed */integration.yaml */tests.yaml
var Files embed.FS
