package connection

import (
	"sync"
	"time"
)

// rejections remembers credentials that a service rejected right after they had been
// renewed. Renewing them again for every step would not help: a service may respond with
// 401 to whatever it does not allow.
type rejections struct {
	mu   sync.Mutex
	last map[string]rejection // by connection id
}

type rejection struct {
	epoch int64
	at    time.Time
}

// renewPause is how long a rejected credential is not renewed after its last renewal.
const renewPause = time.Minute

// note records that the credential of an epoch was rejected although it was new.
func (r *rejections) note(id string, epoch int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]rejection{}
	}
	for other, old := range r.last {
		if now.Sub(old.at) >= renewPause {
			delete(r.last, other)
		}
	}
	r.last[id] = rejection{epoch, now}
}

// forget makes the next rejection count as the first: somebody wants to know.
func (r *rejections) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, id)
}

// mayRenew reports whether the credential of an epoch, which was rejected, may be renewed.
func (r *rejections) mayRenew(id string, epoch int64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[id]
	return !ok || last.epoch != epoch || now.Sub(last.at) >= renewPause
}
