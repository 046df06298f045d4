package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/vault"
)

// MaxValue is the maximum size of a value in bytes.
const MaxValue = 64 << 10

func (s *Service) seal(ctx context.Context, workspaceID, name, value string) ([]byte, error) {
	switch {
	case len(value) > MaxValue:
		return nil, fault.Field("/value", "must have at most %d bytes", MaxValue)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return nil, fault.Field("/value", "must be UTF-8 text without NUL characters; encode binary data as base64")
	case utf8.RuneCountInString(value) < mask.MinLength:
		return nil, fault.Field("/value", "must have at least %d characters: shorter values cannot be masked in the data of runs", mask.MinLength)
	}
	return s.vault.Seal(ctx, sealedAt(workspaceID, name), []byte(value))
}

// sealedAt returns the location that the value of a secret is sealed for. It
// cannot be opened at another one.
func sealedAt(workspaceID, name string) vault.Ref {
	return vault.Ref{Workspace: workspaceID, Table: "secrets", ID: name}
}

// compact checks the value of a variable, which is any JSON, and removes
// insignificant white space.
func compact(_ context.Context, _, _ string, value json.RawMessage) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, value); err != nil {
		return nil, fault.Field("/value", "is not JSON")
	}
	if out.Len() > MaxValue {
		return nil, fault.Field("/value", "must have at most %d bytes", MaxValue)
	}
	return out.Bytes(), nil
}
