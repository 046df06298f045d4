// Package openapi holds the contract of the HTTP API: the OpenAPI document that the service publishes and that its
// tests hold every answer against. It does not know the handlers, and nothing is generated from it.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
)

// YAML is the document as it is written, for GET /v1/openapi.yaml. Callers must not change it.
//
//go:embed openapi.yaml
var YAML []byte

// JSON returns the document for GET /v1/openapi.json. It is converted on first use and shared by all callers, who must
// not change it.
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
