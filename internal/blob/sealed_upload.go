package blob

import "hash"

// SealedUpload is a blob that is being sealed and written. It is not safe for
// concurrent use.
type SealedUpload struct {
	upload  Upload
	cipher  *segmentCipher
	segment []byte // plain bytes that are not sealed yet, up to segmentSize
	number  int64  // of the segment
	hash    hash.Hash
	size    int64
	err     error // why the upload can only be aborted
}

// Write seals and appends bytes in any quantity.
func (u *SealedUpload) Write(p []byte) (written int, err error) {
	if u.err == nil && int64(len(p)) > MaxSize-u.size {
		u.err = ErrTooLarge
	}
	for u.err == nil && len(p) > 0 {
		// A full segment stays until it is known whether it is the last one.
		if len(u.segment) == segmentSize {
			u.flush(false)
			continue
		}
		n := min(len(p), segmentSize-len(u.segment))
		u.segment = append(u.segment, p[:n]...)
		_, _ = u.hash.Write(p[:n])
		u.size += int64(n)
		written += n
		p = p[n:]
	}
	return written, u.err
}

func (u *SealedUpload) flush(last bool) {
	_, u.err = u.upload.Write(u.cipher.seal(u.segment, u.number, last))
	u.segment = u.segment[:0]
	u.number++
}

// Digest returns the size and the hash of the plain bytes written so far. A caller
// that has stored equal bytes before compares it after the last Write, and aborts.
func (u *SealedUpload) Digest() Digest {
	d := Digest{Size: u.size}
	u.hash.Sum(d.SHA256[:0])
	return d
}

// Commit makes the blob durable. See Upload.
func (u *SealedUpload) Commit() error {
	if u.err == nil {
		u.flush(true)
	}
	if u.err != nil {
		return u.err
	}
	u.err = ErrFinished
	return u.upload.Commit()
}

// Abort discards the upload. See Upload.
func (u *SealedUpload) Abort() error {
	if u.err == nil {
		u.err = ErrFinished
	}
	return u.upload.Abort()
}
