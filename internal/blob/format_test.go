package blob_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"testing"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
)

// openByTheBook opens a sealed blob as the decision record describes the format.
// It shares no code with the package.
func openByTheBook(t *testing.T, sealed []byte, secret string, ref blob.Ref) []byte {
	t.Helper()
	header, rest := sealed[:headerSize], sealed[headerSize:]
	if !bytes.HasPrefix(header, []byte("SMB\x01")) {
		t.Fatalf("the header is %x", header)
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), header[4:], "blobs", 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	additional := string(header) + ref.Workspace + "|blobs|" + string(ref.ID)
	var plain []byte
	for number := byte(0); number == 0 || len(rest) > 0; number++ {
		segment := rest[:min(len(rest), segment+tag)]
		rest = rest[len(segment):]
		nonce := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number, 0}
		if len(rest) == 0 {
			nonce[11] = 1
		}
		if plain, err = gcm.Open(plain, nonce, segment, []byte(additional)); err != nil {
			t.Fatalf("segment %d: %v", number, err)
		}
	}
	return plain
}

// Blobs outlive releases, so the format must not change by accident.
func TestFormat(t *testing.T) {
	t.Parallel()
	store := blobtest.NewMemory()
	s := blob.NewSealedStore(store, blobtest.Keys("a"))
	salts := map[string]bool{}
	for _, size := range []int{0, 1, segment, 3*segment + 5} {
		content := random(size)
		ref := seal(t, s, content)
		sealed := store.Bytes(ref.ID)
		if got := openByTheBook(t, sealed, "aws_a", ref); !bytes.Equal(got, content) {
			t.Errorf("%d bytes: got %d others", size, len(got))
		}
		salts[string(sealed[:headerSize])] = true
	}
	if len(salts) != 4 {
		t.Error("two blobs have the same salt")
	}
}
