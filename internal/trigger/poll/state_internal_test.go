package poll

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

func itemOf(n int) item {
	var k key
	binary.BigEndian.PutUint64(k[:], uint64(n)+1)
	return item{value: n, key: k}
}

// Whatever responses come, an item is new once unless more items than can be
// remembered came in between. Items that are still in the response are never
// forgotten.
func TestPollStateSeesItemsOnce(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		s, err := parseState(nil, workflow.Trigger{ID: "p"})
		if err != nil || !s.first {
			t.Fatal("a new state is not the first", err)
		}
		fired := map[key]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			found := result{keyed: true}
			from := rapid.IntRange(0, 300).Draw(t, "from")
			for n := range rapid.IntRange(0, 100).Draw(t, "items") {
				found.items = append(found.items, itemOf(from+n))
			}
			fresh := s.unseen(found.items)
			for _, i := range fresh {
				if fired[i.key] {
					t.Fatalf("%v is new once more", i.value)
				}
			}
			part := fresh[:rapid.IntRange(0, len(fresh)).Draw(t, "started")]
			for _, i := range part {
				fired[i.key] = true
			}
			next := s.withSeen(found, part)
			if s, err = parseState(next.encode(), workflow.Trigger{ID: "p"}); err != nil || s.first {
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
	s := state{Source: sourceHash(workflow.Trigger{})}
	first := result{keyed: true, items: []item{itemOf(0)}}
	s = s.withSeen(first, first.items)
	for round := range 30 {
		found := result{keyed: true, items: []item{itemOf(0)}} // it stays in the response
		for n := range 1000 {
			found.items = append(found.items, itemOf(1+round*1000+n))
		}
		s = s.withSeen(found, s.unseen(found.items))
	}
	if got := len(s.Seen) / len(key{}); got != maxItems {
		t.Errorf("%d are remembered", got)
	}
	if !s.keys()[itemOf(0).key] || !s.keys()[itemOf(30_000).key] || s.keys()[itemOf(1).key] {
		t.Error("the oldest key must be forgotten, not one that is in the response")
	}
	another, err := parseState(s.encode(), workflow.Trigger{Items: "response.body"})
	if err != nil || !another.first || another.Seen != nil {
		t.Errorf("another question goes on with the old state: %+v, %v", another.first, err)
	}
	if _, err := parseState([]byte(`{`), workflow.Trigger{}); err == nil {
		t.Error("a broken state is read")
	}
}
