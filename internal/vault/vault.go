// Package vault owns encryption at rest: the master key, the data key of each
// workspace (stored wrapped by the master key), sealing, signing and deriving
// keys. A sealed value is bound to its workspace and row: a ciphertext that was
// moved to another row does not decrypt. The package does not store anything.
package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

const keySize = 32

// ErrSealed means that a ciphertext belongs to another row or was sealed with
// another key.
var ErrSealed = errors.New("vault: cannot decrypt sealed data")

// Keys looks up the wrapped data key of a workspace.
type Keys interface {
	DataKey(ctx context.Context, workspaceID string) ([]byte, error)
}

// Ref names the row that a sealed value belongs to.
type Ref struct{ Workspace, Table, ID string }

func (r Ref) additionalData() []byte { return []byte(r.Workspace + "|" + r.Table + "|" + r.ID) }

// Vault seals, opens and signs values. It is safe for concurrent use.
type Vault struct {
	master []byte
	wrap   cipher.AEAD
	keys   Keys

	mu       sync.RWMutex
	dataKeys map[string]*dataKey
}

// dataKey is the unwrapped key of a workspace, prepared for its uses.
type dataKey struct {
	seal   cipher.AEAD
	sign   []byte
	derive []byte
}

// New returns a vault with a 32-byte master key.
func New(master []byte, keys Keys) (*Vault, error) {
	if len(master) != keySize {
		return nil, fmt.Errorf("the master key has %d bytes, not %d", len(master), keySize)
	}
	v := &Vault{master: master, keys: keys, dataKeys: map[string]*dataKey{}}
	wrap, err := newAEAD(v.Derive("wrap data keys"))
	if err != nil {
		return nil, err
	}
	v.wrap = wrap
	return v, nil
}

// Derive derives a key for one purpose from the master key.
func (v *Vault) Derive(purpose string) []byte {
	return derive(v.master, purpose)
}

// DeriveKey derives a 32-byte key for one purpose from the data key of the
// workspace. Each salt gives another key. The key remains the same when the
// master key is rotated.
func (v *Vault) DeriveKey(ctx context.Context, workspaceID, purpose string, salt []byte) ([]byte, error) {
	key, err := v.dataKey(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	return deriveSalted(key.derive, salt, purpose), nil
}

func derive(secret []byte, purpose string) []byte { return deriveSalted(secret, nil, purpose) }

func deriveSalted(secret, salt []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, salt, "stepmill: "+purpose, keySize)
	if err != nil {
		// hkdf.Key fails only if the key is too long for the hash.
		panic(err)
	}
	return key
}

// Check returns a value that identifies the master key without revealing it.
func (v *Vault) Check() []byte {
	mac := hmac.New(sha256.New, v.Derive("key check"))
	return mac.Sum(nil)
}

// NewDataKey generates the data key of a new workspace and returns it wrapped.
func (v *Vault) NewDataKey(workspaceID string) []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key)
	return v.wrap.Seal(nil, nil, key, []byte(workspaceID))
}

// Rewrap wraps the data key of a workspace for another vault. Values that are
// sealed with the data key do not change.
func (v *Vault) Rewrap(workspaceID string, wrapped []byte, to *Vault) ([]byte, error) {
	key, err := v.wrap.Open(nil, nil, wrapped, []byte(workspaceID))
	if err != nil {
		return nil, fmt.Errorf("%w (data key of %s)", ErrSealed, workspaceID)
	}
	return to.wrap.Seal(nil, nil, key, []byte(workspaceID)), nil
}

// Sign returns a MAC of the text for one purpose, with the key of the workspace.
// It remains valid when the master key is rotated.
func (v *Vault) Sign(ctx context.Context, workspaceID, purpose string, text []byte) ([]byte, error) {
	key, err := v.dataKey(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, derive(key.sign, purpose))
	mac.Write(text)
	return mac.Sum(nil), nil
}

// Seal encrypts a value for the row that ref names.
func (v *Vault) Seal(ctx context.Context, ref Ref, plain []byte) ([]byte, error) {
	key, err := v.dataKey(ctx, ref.Workspace)
	if err != nil {
		return nil, err
	}
	return key.seal.Seal(nil, nil, plain, ref.additionalData()), nil
}

// Open decrypts a value that Seal encrypted for the same row.
func (v *Vault) Open(ctx context.Context, ref Ref, sealed []byte) ([]byte, error) {
	key, err := v.dataKey(ctx, ref.Workspace)
	if err != nil {
		return nil, err
	}
	plain, err := key.seal.Open(nil, nil, sealed, ref.additionalData())
	if err != nil {
		return nil, fmt.Errorf("%w (%s %s)", ErrSealed, ref.Table, ref.ID)
	}
	return plain, nil
}

func (v *Vault) dataKey(ctx context.Context, workspaceID string) (*dataKey, error) {
	v.mu.RLock()
	found, ok := v.dataKeys[workspaceID]
	v.mu.RUnlock()
	if ok {
		return found, nil
	}
	wrapped, err := v.keys.DataKey(ctx, workspaceID)
	if err != nil {
		return nil, fmt.Errorf("read the data key of %s: %w", workspaceID, err)
	}
	key, err := v.wrap.Open(nil, nil, wrapped, []byte(workspaceID))
	if err != nil {
		return nil, fmt.Errorf("%w (data key of %s)", ErrSealed, workspaceID)
	}
	made := &dataKey{sign: derive(key, "sign"), derive: derive(key, "derive keys")}
	if made.seal, err = newAEAD(key); err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.dataKeys[workspaceID] = made
	v.mu.Unlock()
	return made, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
