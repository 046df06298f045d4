package api

import (
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

func TestBodyBudget(t *testing.T) {
	t.Parallel()
	b := &bodyBudget{limit: 100}
	of := func(length int64) *http.Request { return &http.Request{ContentLength: length} }
	first, err := b.acquire(of(60), 80)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.acquire(of(41), 80); err == nil {
		t.Fatal("101 bytes were taken")
	} else if f, ok := fault.As(err); !ok || f.Code != fault.Unavailable || f.RetryAfter == 0 {
		t.Errorf("%v", err)
	}
	second, err := b.acquire(of(40), 80)
	if err != nil {
		t.Fatal(err)
	}
	first()
	if _, err := b.acquire(of(-1), 80); err == nil {
		t.Fatal("a body of unknown length was taken as none")
	}
	second()
	if release, err := b.acquire(of(-1), 80); err != nil || b.used.Load() != 80 {
		t.Errorf("%v, %d held", err, b.used.Load())
	} else if release(); b.used.Load() != 0 {
		t.Errorf("%d held in the end", b.used.Load())
	}
}
