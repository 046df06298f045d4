// Package integrations holds the manifests of the integrations, a folder each. It
// does not read them: internal/integration does.
package integrations

import "embed"

// Files has the manifests as <id>/integration.yaml.
//
//go:embed */integration.yaml
var Files embed.FS
