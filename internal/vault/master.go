package vault

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ParseMasterKey parses a master key: 32 bytes in base64 or hex.
func ParseMasterKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == keySize {
		return key, nil
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(text); err == nil && len(key) == keySize {
			return key, nil
		}
	}
	return nil, errors.New("the master key must be 32 bytes written in base64 or hex")
}

// ReadMasterKey reads the master key from a file.
func ReadMasterKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := ParseMasterKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// CreateMasterKey creates a new master key in a file that only its owner can
// read. It never replaces an existing file. The file is created atomically and is
// durable when CreateMasterKey returns: nothing may be sealed with a key that a
// crash could lose.
func CreateMasterKey(path string) ([]byte, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key)
	dir := filepath.Dir(path)
	temp, err := writeTempFile(dir, base64.StdEncoding.EncodeToString(key)+"\n")
	if err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	defer func() { _ = os.Remove(temp) }()
	// A link, unlike a rename, fails when the name is taken.
	if err := os.Link(temp, path); err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	return key, nil
}

// nextSuffix is the suffix of the staged key: the key that a rotation is about
// to make the active one.
const nextSuffix = ".next"

// StageMasterKey generates a new master key and stages it in a file beside the
// active one. It replaces a key that was staged before.
func StageMasterKey(path string) ([]byte, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key)
	return key, WriteStaged(path, key)
}

// WriteStaged stages a key in a file beside the active one.
func WriteStaged(path string, key []byte) error {
	dir := filepath.Dir(path)
	temp, err := writeTempFile(dir, base64.StdEncoding.EncodeToString(key)+"\n")
	if err == nil {
		err = os.Rename(temp, path+nextSuffix)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write the new master key: %w", err)
	}
	return nil
}

// ReadStaged reads the staged key.
func ReadStaged(path string) ([]byte, error) { return ReadMasterKey(path + nextSuffix) }

// DiscardStaged removes the staged key, if there is one. It checks first whether
// the file exists: on a read-only mount, where a key may well be, removing a
// missing file can fail with another error than fs.ErrNotExist.
func DiscardStaged(path string) error {
	staged := path + nextSuffix
	if _, err := os.Lstat(staged); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.Remove(staged)
}

// Promote makes the staged key the active one. It keeps the previous key, which
// old backups need, under another name and returns that name.
func Promote(path string, at time.Time) (kept string, err error) {
	kept = path + ".until-" + at.UTC().Format("20060102T150405Z")
	if err := os.Link(path, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep the previous master key: %w", err)
	}
	if err := os.Rename(path+nextSuffix, path); err != nil {
		return "", fmt.Errorf("activate the new master key: %w", err)
	}
	return kept, syncDir(filepath.Dir(path))
}

// writeTempFile writes a private file with a unique name.
func writeTempFile(dir, text string) (string, error) {
	file, err := os.CreateTemp(dir, ".master-*")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if err == nil {
		err = file.Sync()
	}
	return file.Name(), errors.Join(err, file.Close())
}

// ReadOrCreateMasterKey reads the master key from a file, or creates the file if it
// does not exist.
func ReadOrCreateMasterKey(path string) ([]byte, error) {
	key, err := ReadMasterKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return CreateMasterKey(path)
	}
	return key, err
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	return errors.Join(err, dir.Close())
}
