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

// ParseMasterKey reads a master key from text: 32 bytes in base64 or hex.
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

// CreateMasterKey makes a new master key in a file that only its owner can
// read. It never replaces an existing one. The file appears whole or not at all,
// and is on disk before this returns: nothing may be sealed with a key that a
// crash could take away.
func CreateMasterKey(path string) ([]byte, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key)
	dir := filepath.Dir(path)
	draft, err := writeDraft(dir, base64.StdEncoding.EncodeToString(key)+"\n")
	if err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	defer func() { _ = os.Remove(draft) }()
	// A link, unlike a rename, fails when the name is taken.
	if err := os.Link(draft, path); err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return nil, fmt.Errorf("write the master key: %w", err)
	}
	return key, nil
}

// nextSuffix marks the key that a rotation is about to put in the place of the
// one in force.
const nextSuffix = ".next"

// DraftMasterKey makes the key that is to follow, in a file beside the one in
// force, and replaces an earlier draft.
func DraftMasterKey(path string) ([]byte, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key)
	return key, Draft(path, key)
}

// Draft writes the key that is to follow beside the one in force.
func Draft(path string, key []byte) error {
	dir := filepath.Dir(path)
	draft, err := writeDraft(dir, base64.StdEncoding.EncodeToString(key)+"\n")
	if err == nil {
		err = os.Rename(draft, path+nextSuffix)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write the new master key: %w", err)
	}
	return nil
}

// ReadDraft reads the key that is to follow.
func ReadDraft(path string) ([]byte, error) { return ReadMasterKey(path + nextSuffix) }

// DropDraft forgets the key that was to follow, if there is one. It looks first:
// where nothing can be written, the removal of what is not there fails too, and a
// key that is only read may well be in such a place.
func DropDraft(path string) error {
	draft := path + nextSuffix
	if _, err := os.Lstat(draft); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.Remove(draft)
}

// Promote puts the key that is to follow in force. The one before is kept under
// another name, which it returns: old backups need it.
func Promote(path string, at time.Time) (kept string, err error) {
	kept = path + ".until-" + at.UTC().Format("20060102T150405Z")
	if err := os.Link(path, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep the master key: %w", err)
	}
	if err := os.Rename(path+nextSuffix, path); err != nil {
		return "", fmt.Errorf("put the new master key in force: %w", err)
	}
	return kept, syncDir(filepath.Dir(path))
}

// writeDraft writes a private file of a name of its own.
func writeDraft(dir, text string) (string, error) {
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

// ReadOrCreateMasterKey reads the file, or makes it when it is missing.
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
