package strictjson

import (
	"bytes"
	"hash/maphash"
)

// fewKeys is how many keys of an object are compared one by one before a table
// takes over.
const fewKeys = 16

// keySet is a hash table of the keys of one object. It holds places in the
// list of keys, so that a big object costs no allocation per key. The seed
// keeps a stranger from choosing keys that collide.
type keySet struct {
	seed  maphash.Seed
	slots []int32 // place in the list plus one, 0 if free
}

func newKeySet(keys [][]byte) *keySet {
	t := &keySet{seed: maphash.MakeSeed()}
	t.grow(keys)
	return t
}

// add adds the last of keys, and reports whether it is the first of its kind.
func (t *keySet) add(keys [][]byte) bool {
	if 2*len(keys) > len(t.slots) {
		t.grow(keys[:len(keys)-1])
	}
	return t.insert(keys, len(keys)-1)
}

func (t *keySet) grow(keys [][]byte) {
	size := 4 * fewKeys
	for size < 4*len(keys) {
		size *= 2
	}
	t.slots = make([]int32, size)
	for i := range keys {
		t.insert(keys, i)
	}
}

func (t *keySet) insert(keys [][]byte, place int) bool {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.Bytes(t.seed, keys[place]) & mask; ; i = (i + 1) & mask {
		if t.slots[i] == 0 {
			t.slots[i] = int32(place + 1)
			return true
		}
		if bytes.Equal(keys[t.slots[i]-1], keys[place]) {
			return false
		}
	}
}
