package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/openapi"
)

type (
	// OpenAPIOptions says what an OpenAPI document does not say about its manifest.
	OpenAPIOptions = openapi.Options
	// OpenAPIOperation is an operation of an OpenAPI document.
	OpenAPIOperation = openapi.Operation
	// OpenAPIManifest is the manifest for an OpenAPI document.
	OpenAPIManifest = openapi.Result
)

// OpenAPIOperations lists the operations of an OpenAPI document.
func OpenAPIOperations(file string) ([]OpenAPIOperation, error) {
	document, err := readOpenAPI(file)
	if err != nil {
		return nil, err
	}
	return document.Operations(), nil
}

// ConvertOpenAPI returns the manifest for an OpenAPI document.
func ConvertOpenAPI(file string, options OpenAPIOptions) (*OpenAPIManifest, error) {
	document, err := readOpenAPI(file)
	if err != nil {
		return nil, err
	}
	result, err := document.Manifest(options)
	if problem, ok := errors.AsType[*openapi.OptionError](err); ok {
		return nil, fmt.Errorf("--%s: %s", problem.Option, problem.Message)
	}
	return result, inFile(err, file)
}

func readOpenAPI(file string) (*openapi.Document, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	text, err := io.ReadAll(io.LimitReader(opened, openapi.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	document, err := openapi.Read(text)
	return document, inFile(err, file)
}

func inFile(err error, file string) error {
	if problems, ok := errors.AsType[integration.Errors](err); ok {
		return problems.In(file)
	}
	return err
}

// WriteManifest writes a manifest to a file that does not exist, and creates its folder.
func WriteManifest(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // it has nothing secret
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a manifest is not secret
	if err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
