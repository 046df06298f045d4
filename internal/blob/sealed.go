package blob

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The sealed format, version 1:
//
//	header   "SMB", the version 1, and a random salt of 32 bytes
//	segment  64 KiB of plain bytes, sealed with AES-256-GCM: 16 bytes more
//	…
//	segment  the last one: the rest, between 1 byte and 64 KiB. An empty blob has
//	         one segment without plain bytes
//
// The key is derived from the data key of the workspace and the salt, so each blob
// has its own. The nonce of a segment is its number and whether it is the last one
// (the STREAM construction by Hoang, Reyhanitabar, Rogaway and Vizár), so segments
// cannot be dropped, repeated, reordered or appended. The additional data is the
// header, the workspace and the id of the blob, so a blob cannot take the place of
// another one.
const (
	magic       = "SMB\x01"
	saltSize    = 32
	headerSize  = len(magic) + saltSize
	segmentSize = 64 << 10
	tagSize     = 16
	purpose     = "blobs"

	// MaxSize is the maximum size of the plain bytes of a blob, low enough that a sealed size
	// cannot overflow. The backends have lower ones.
	MaxSize = math.MaxInt64 / 2
)

// ErrCorrupt means that the stored bytes are not those that were sealed for this
// workspace and id: they are damaged, incomplete, or belong elsewhere.
var ErrCorrupt = errors.New("blob: the stored bytes are damaged, incomplete or those of another blob")

// Keys derives keys from the data key of a workspace. vault.Vault implements it.
type Keys interface {
	DeriveKey(ctx context.Context, workspaceID, purpose string, salt []byte) ([]byte, error)
}

// SealedStore seals blobs on their way to a Store, and opens them on their way
// back. An upload and a reader hold one segment in memory, 64 KiB, in addition to
// what the Store needs.
type SealedStore struct {
	store Store
	keys  Keys
}

// NewSealedStore returns a SealedStore on top of a Store. To delete, list and sweep
// blobs, callers use the Store itself.
func NewSealedStore(store Store, keys Keys) *SealedStore {
	return &SealedStore{store: store, keys: keys}
}

// Ref is what a caller has to remember about a sealed blob in order to read it.
type Ref struct {
	Workspace string
	ID        ID
	Size      int64 // of the plain bytes
}

// Digest describes the plain bytes of a blob.
type Digest struct {
	Size   int64
	SHA256 [sha256.Size]byte
}

// Begin begins the upload of a blob of a workspace. The context applies until the
// upload is committed or aborted.
func (s *SealedStore) Begin(ctx context.Context, workspaceID string, id ID) (*SealedUpload, error) {
	header := make([]byte, headerSize)
	copy(header, magic)
	_, _ = rand.Read(header[len(magic):])
	segments, err := s.newSegmentCipher(ctx, workspaceID, id, header)
	if err != nil {
		return nil, err
	}
	upload, err := s.store.Begin(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, err := upload.Write(header); err != nil {
		return nil, errors.Join(err, upload.Abort())
	}
	return &SealedUpload{
		upload: upload, cipher: segments, hash: sha256.New(),
		segment: make([]byte, 0, segmentSize+tagSize),
	}, nil
}

// Open returns a reader of at most length plain bytes of a blob from an offset on.
// It neither reads nor decrypts the segments before and after them. The offset
// must not be beyond the end of the blob. Every byte that the reader returns was
// verified; at the first segment that is not the original one it returns
// ErrCorrupt. The end of the blob is verified if the bytes extend to it.
func (s *SealedStore) Open(ctx context.Context, ref Ref, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 || offset > ref.Size || ref.Size > MaxSize {
		return nil, fmt.Errorf("blob: cannot read %d bytes from %d on of a blob with %d bytes", length, offset, ref.Size)
	}
	r := newSealedReader(ref.Size, offset, min(length, ref.Size-offset))
	start, end := r.sealedRange()
	header := make([]byte, headerSize)
	if start > 0 {
		if err := s.readHeader(ctx, ref.ID, header); err != nil {
			return nil, err
		}
	}
	var err error
	if r.source, err = s.store.Open(ctx, ref.ID, start, end-start); err != nil {
		return nil, err
	}
	if start == 0 {
		err = readExactly(r.source, header)
	}
	if err == nil {
		r.cipher, err = s.newSegmentCipher(ctx, ref.Workspace, ref.ID, header)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// readHeader reads the header of a blob of which a later part is wanted.
func (s *SealedStore) readHeader(ctx context.Context, id ID, header []byte) error {
	source, err := s.store.Open(ctx, id, 0, int64(headerSize))
	if err != nil {
		return err
	}
	return errors.Join(readExactly(source, header), source.Close())
}

// segmentCipher seals and opens the segments of one blob.
type segmentCipher struct {
	aead           cipher.AEAD
	additionalData []byte
}

func (s *SealedStore) newSegmentCipher(ctx context.Context, workspaceID string, id ID, header []byte) (*segmentCipher, error) {
	if err := id.Check(); err != nil {
		return nil, err
	}
	if string(header[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: unknown format", ErrCorrupt)
	}
	key, err := s.keys.DeriveKey(ctx, workspaceID, purpose, header[len(magic):])
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &segmentCipher{aead: aead, additionalData: fmt.Appendf(nil, "%s%s|%s|%s", header, workspaceID, purpose, id)}, nil
}

// seal seals a segment in place and appends its tag.
func (c *segmentCipher) seal(segment []byte, number int64, last bool) []byte {
	return c.aead.Seal(segment[:0], nonce(number, last), segment, c.additionalData)
}

// open opens a segment in place.
func (c *segmentCipher) open(sealed []byte, number int64, last bool) ([]byte, error) {
	plain, err := c.aead.Open(sealed[:0], nonce(number, last), sealed, c.additionalData)
	if err != nil {
		return nil, fmt.Errorf("%w: segment %d", ErrCorrupt, number)
	}
	return plain, nil
}

// nonce is unique under the key of a blob, because each number is sealed once.
func nonce(number int64, last bool) []byte {
	var n [12]byte
	binary.BigEndian.PutUint64(n[3:], uint64(number))
	if last {
		n[11] = 1
	}
	return n[:]
}

func lastSegment(size int64) int64 { return max(0, size-1) / segmentSize }

func sealedOffset(number int64) int64 { return int64(headerSize) + number*(segmentSize+tagSize) }

// SealedSize returns the size of a sealed blob with that many plain bytes.
func SealedSize(size int64) int64 { return int64(headerSize) + size + (lastSegment(size)+1)*tagSize }

// readExactly fills a buffer. A blob that ends earlier is corrupt.
func readExactly(source io.Reader, buffer []byte) error {
	_, err := io.ReadFull(source, buffer)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrCorrupt)
	}
	return err
}
