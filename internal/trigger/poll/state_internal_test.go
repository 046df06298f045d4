package poll

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/test/lane"
)

var source = Hash("a source")

func itemOf(n int) Item {
	var k Key
	binary.BigEndian.PutUint64(k[:], uint64(n)+1)
	return Item{Value: n, Key: k}
}

// Whatever responses come, an item is new once unless more items than can be
// remembered came in between. Items that are still in the response are never
// forgotten.
func TestPollStateSeesItemsOnce(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		s, err := parseState(nil, source)
		if err != nil || !s.starting {
			t.Fatal("a new state does not start", err)
		}
		fired := map[Key]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			found := Found{Keyed: true}
			from := rapid.IntRange(0, 300).Draw(t, "from")
			for n := range rapid.IntRange(0, 100).Draw(t, "items") {
				found.Items = append(found.Items, itemOf(from+n))
			}
			fresh := s.unseen(found.Items)
			for _, i := range fresh {
				if fired[i.Key] {
					t.Fatalf("%v is new once more", i.Value)
				}
			}
			part := fresh[:rapid.IntRange(0, len(fresh)).Draw(t, "started")]
			for _, i := range part {
				fired[i.Key] = true
			}
			next := s.withSeen(found, part)
			if s, err = parseState(next.encode(), source); err != nil || s.starting {
				t.Fatal("the state does not come back", err)
			}
			for k := range fired {
				if !s.keys()[k] {
					t.Fatalf("%x is forgotten", k)
				}
			}
		}
	})
}

func TestPollStateIsBounded(t *testing.T) {
	t.Parallel()
	s := state{Source: source}
	first := Found{Keyed: true, Items: []Item{itemOf(0)}}
	s = s.withSeen(first, first.Items)
	for round := range 30 {
		found := Found{Keyed: true, Items: []Item{itemOf(0)}} // it stays in the response
		for n := range 1000 {
			found.Items = append(found.Items, itemOf(1+round*1000+n))
		}
		s = s.withSeen(found, s.unseen(found.Items))
	}
	if got := len(s.Seen) / len(Key{}); got != maxItems {
		t.Errorf("%d are remembered", got)
	}
	if !s.keys()[itemOf(0).Key] || !s.keys()[itemOf(30_000).Key] || s.keys()[itemOf(1).Key] {
		t.Error("the oldest key must be forgotten, not one that is in the response")
	}
	another, err := parseState(s.encode(), Hash("another source"))
	if err != nil || !another.starting || another.Seen != nil {
		t.Errorf("another question goes on with the old state: %+v, %v", another.starting, err)
	}
	if _, err := parseState([]byte(`{`), source); err == nil {
		t.Error("a broken state is read")
	}
}
