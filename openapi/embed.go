// Package openapi holds the contract of the HTTP API: the OpenAPI document that the service publishes and that tests
// validate every response against. It knows nothing about the handlers, and no Go code is generated from it. What other
// packages declare, such as the inputs of actions, is in sections that `make gen` writes.
package openapi

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/stepmill/stepmill/internal/strictyaml"
)

// YAML is the source of the document, served at GET /v1/openapi.yaml. Callers must not modify it.
//
//go:embed openapi.yaml
var YAML []byte

// JSON returns the document served at GET /v1/openapi.json. It is converted on first use and shared by all callers,
// which must not modify it.
func JSON() ([]byte, error) { return convert() }

var convert = sync.OnceValues(func() ([]byte, error) {
	document, err := strictyaml.Decode(YAML)
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return append(document.JSON, '\n'), nil
})
