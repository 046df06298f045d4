package webhook_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
)

// lostStore has one webhook with many missed deliveries.
type lostStore struct {
	webhook.Store
	hook    webhook.Webhook
	lost    map[webhook.Status][]string // in order
	units   []int
	entries int
	// disableAfter is the number of transactions after which the webhook is disabled.
	disableAfter int
}

func (s *lostStore) Webhook(context.Context, string, string) (*webhook.Webhook, error) {
	return &s.hook, nil
}

func (s *lostStore) Redeliverable(_ context.Context, _, _ string, status webhook.Status, from, below string, limit int) ([]string, error) {
	var ids []string
	for _, id := range s.lost[status] {
		if id >= from && id < below && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (s *lostStore) Redeliver(_ context.Context, _, _ string, ids []string, _ time.Time, entry *audit.Entry) ([]string, webhook.Outcome, error) {
	if s.disableAfter > 0 && len(s.units) == s.disableAfter {
		return nil, webhook.Disabled, nil
	}
	s.units = append(s.units, len(ids))
	if entry != nil {
		s.entries++
	}
	for status, lost := range s.lost {
		if len(lost) > 0 && lost[0] == ids[0] {
			s.lost[status] = lost[len(ids):]
		}
	}
	return ids, webhook.Done, nil
}

func newLost(counts map[webhook.Status]int) *lostStore {
	s := &lostStore{hook: webhook.Webhook{ID: uid.New(uid.Webhook), Enabled: true}, lost: map[webhook.Status][]string{}}
	for status, n := range counts {
		for i := range n {
			s.lost[status] = append(s.lost[status], fmt.Sprintf("dlv_00%s%06d", status[:1], i))
		}
	}
	return s
}

func TestRedeliverRange(t *testing.T) {
	t.Parallel()
	type answer struct {
		count int
		more  bool
	}
	for name, test := range map[string]struct {
		lost     map[webhook.Status]int
		statuses []webhook.Status
		want     []answer // to one request after the other
	}{
		"nothing":                    {nil, nil, []answer{{0, false}}},
		"what did not get through":   {map[webhook.Status]int{webhook.Exhausted: 3, webhook.Dropped: 4, webhook.Delivered: 5}, nil, []answer{{7, false}, {0, false}}},
		"of one status":              {map[webhook.Status]int{webhook.Exhausted: 3, webhook.Delivered: 5}, []webhook.Status{webhook.Delivered}, []answer{{5, false}}},
		"exactly the maximum":        {map[webhook.Status]int{webhook.Exhausted: webhook.MaxRedelivered}, nil, []answer{{webhook.MaxRedelivered, false}}},
		"one too many":               {map[webhook.Status]int{webhook.Exhausted: webhook.MaxRedelivered + 1}, nil, []answer{{webhook.MaxRedelivered, true}, {1, false}}},
		"too many of another status": {map[webhook.Status]int{webhook.Exhausted: webhook.MaxRedelivered, webhook.Dropped: 2}, nil, []answer{{webhook.MaxRedelivered, true}, {2, false}}},
		"too many of both":           {map[webhook.Status]int{webhook.Exhausted: 9_900, webhook.Dropped: 200}, nil, []answer{{webhook.MaxRedelivered, true}, {100, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newLost(test.lost)
			service := webhook.NewService(store, nil, nil)
			for i, want := range test.want {
				store.entries, store.units = 0, nil
				count, more, err := service.RedeliverRange(t.Context(), auth.Actor{}, store.hook.ID, webhook.Range{Statuses: test.statuses})
				if got := (answer{count, more}); err != nil || got != want {
					t.Errorf("request %d: got %+v, %v, want %+v", i+1, got, err, want)
				}
				if recorded := store.entries == 1; recorded != (want.count > 0) {
					t.Errorf("request %d is recorded %d times", i+1, store.entries)
				}
				for _, n := range store.units {
					if n > 500 {
						t.Errorf("a transaction has %d deliveries", n)
					}
				}
			}
		})
	}
}

func TestRedeliverRangeToADisabledWebhook(t *testing.T) {
	t.Parallel()
	store := newLost(map[webhook.Status]int{webhook.Dropped: 1200})
	store.disableAfter = 1
	service := webhook.NewService(store, nil, nil)
	_, _, err := service.RedeliverRange(t.Context(), auth.Actor{}, store.hook.ID, webhook.Range{})
	if f, ok := fault.As(err); !ok || f.Code != fault.WebhookDisabled {
		t.Errorf("in the middle: %v", err)
	}
	store.hook.Enabled = false
	_, _, err = service.RedeliverRange(t.Context(), auth.Actor{}, store.hook.ID, webhook.Range{})
	if f, ok := fault.As(err); !ok || f.Code != fault.WebhookDisabled {
		t.Errorf("from the beginning: %v", err)
	}
}
