package connection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/mask"
)

// withKeys returns a connection with secrets.
func withKeys(keys ...string) *opened {
	c := &opened{secrets: secrets{Fields: map[string]string{}}}
	for i, key := range keys {
		c.secrets.Fields[fmt.Sprintf("key%d", i)] = key
	}
	return c
}

func TestReplacedSecretsAreLimited(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	c := withKeys("number -1")
	for i := range 2 * maxReplaced {
		next := withKeys(fmt.Sprintf("number %d", i))
		next.keepReplaced(c, at.Add(time.Duration(i)*time.Second))
		c = next
	}
	if kept := c.secrets.Replaced; len(kept) != maxReplaced || kept[0].Value != "number 126" {
		t.Errorf("%d secrets are kept, the newest is %v", len(kept), kept[0])
	}
	again := withKeys("number 100")
	again.keepReplaced(c, at.Add(time.Hour))
	for _, kept := range again.secrets.Replaced {
		if kept.Value == "number 100" {
			t.Error("a secret counts as replaced that is in use again")
		}
	}
	large := withKeys("a", strings.Repeat("b", maxReplacedBytes))
	later := withKeys("c")
	later.keepReplaced(large, at.Add(time.Hour))
	last := withKeys("d")
	last.keepReplaced(later, at.Add(time.Hour+replacedLife))
	if kept := last.secrets.Replaced; len(kept) != 1 || kept[0].Value != "c" {
		t.Errorf("%d secrets are kept after their time", len(kept))
	}
}

// Of tokens that are renewed every hour, the access tokens are not kept for long.
func TestReplacedAccessTokens(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	hour := func(n int) *opened {
		expires := at.Add(time.Duration(n)*time.Hour + 65*time.Minute)
		return &opened{secrets: secrets{Token: &Token{Access: fmt.Sprint("access ", n), Refresh: "refresh", ExpiresAt: &expires}}}
	}
	c := hour(0)
	for n := 1; n < 10; n++ {
		next := hour(n)
		next.keepReplaced(c, at.Add(time.Duration(n)*time.Hour))
		c = next
	}
	if kept := c.secrets.Replaced; len(kept) != 1 || kept[0].Value != "access 8" {
		t.Errorf("the tokens %v are kept", kept)
	}
}

func TestRecentMasksAreLimited(t *testing.T) {
	t.Parallel()
	r := recentMasks{last: map[recentKey]recentMask{}}
	for i := range 2 * maxRecent {
		r.set(Connection{ID: "conn", WorkspaceID: "ws", Name: fmt.Sprint(i)}, mask.New([]string{"swordfish"}))
	}
	if len(r.last) != maxRecent {
		t.Errorf("there are %d", len(r.last))
	}
}
