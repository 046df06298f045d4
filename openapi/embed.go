// Package openapi holds the contract of the HTTP API: the OpenAPI document that the service publishes and that tests
// validate every response against. It knows nothing about the handlers, and no Go code is generated from it.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
)

// YAML is the source of the document, served at GET /v1/openapi.yaml. Callers must not modify it.
//
//go:embed openapi.yaml
var YAML []byte

// JSON returns the document served at GET /v1/openapi.json. It is converted on first use and shared by all callers,
// which must not modify it.
func JSON() ([]byte, error) { return convert() }

var convert = sync.OnceValues(func() ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(YAML, &doc); err != nil {
		return nil, fmt.Errorf("parse openapi.yaml: %w", err)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode openapi.yaml as JSON: %w", err)
	}
	return buf.Bytes(), nil
})
