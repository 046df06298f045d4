package blobtest

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
)

// Keys derives the keys of blobs from a text, for tests without a vault.
type Keys string

// DeriveKey implements blob.Keys.
func (k Keys) DeriveKey(_ context.Context, workspaceID, purpose string, salt []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, []byte(string(k)+workspaceID), salt, purpose, 32)
}
