package strictjson

import (
	"bytes"
	"hash/maphash"
)

// linearKeys is the number of keys of an object up to which they are compared one
// by one. Larger objects use a hash table.
const linearKeys = 16

// keySet is a hash table of the keys of one object. It holds indexes into the
// list of keys, to avoid an allocation per key. The random seed prevents an
// attacker from choosing keys that collide.
type keySet struct {
	seed  maphash.Seed
	slots []int32 // index into the list plus one, 0 if free
}

func newKeySet(keys [][]byte) *keySet {
	t := &keySet{seed: maphash.MakeSeed()}
	t.grow(keys)
	return t
}

// add adds the last of keys and reports whether it is new.
func (t *keySet) add(keys [][]byte) bool {
	if 2*len(keys) > len(t.slots) {
		t.grow(keys[:len(keys)-1])
	}
	return t.insert(keys, len(keys)-1)
}

func (t *keySet) grow(keys [][]byte) {
	size := 4 * linearKeys
	for size < 4*len(keys) {
		size *= 2
	}
	t.slots = make([]int32, size)
	for i := range keys {
		t.insert(keys, i)
	}
}

func (t *keySet) insert(keys [][]byte, index int) bool {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.Bytes(t.seed, keys[index]) & mask; ; i = (i + 1) & mask {
		if t.slots[i] == 0 {
			t.slots[i] = int32(index + 1)
			return true
		}
		if bytes.Equal(keys[t.slots[i]-1], keys[index]) {
			return false
		}
	}
}
