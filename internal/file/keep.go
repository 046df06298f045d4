package file

import "sync"

// KeepBytes keeps the sweep from deleting bytes until release is called, which the
// caller must do. Rows are deleted all the same. A backup uses it: the bytes that its
// snapshot of the database refers to exist until it has copied them.
func (s *Service) KeepBytes() (release func()) {
	s.kept.mu.RLock()
	return sync.OnceFunc(s.kept.mu.RUnlock)
}

// kept prevents the deletion of bytes.
type kept struct {
	mu sync.RWMutex
	// while reports whether bytes are kept for another reason; nil: never.
	while func() bool
}

// beginDeletion returns false if bytes are kept. Otherwise they can be deleted until
// endDeletion.
func (k *kept) beginDeletion() bool {
	return (k.while == nil || !k.while()) && k.mu.TryLock()
}

func (k *kept) endDeletion() { k.mu.Unlock() }
