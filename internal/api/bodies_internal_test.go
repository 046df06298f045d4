package api

import (
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

func TestBodiesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	b := &bodies{most: 100}
	of := func(length int64) *http.Request { return &http.Request{ContentLength: length} }
	first, err := b.take(of(60), 80)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.take(of(41), 80); err == nil {
		t.Fatal("101 bytes were taken")
	} else if f, ok := fault.As(err); !ok || f.Code != fault.Unavailable || f.RetryAfter == 0 {
		t.Errorf("%v", err)
	}
	second, err := b.take(of(40), 80)
	if err != nil {
		t.Fatal(err)
	}
	first()
	if _, err := b.take(of(-1), 80); err == nil {
		t.Fatal("a body of unknown length was taken as none")
	}
	second()
	if release, err := b.take(of(-1), 80); err != nil || b.held.Load() != 80 {
		t.Errorf("%v, %d held", err, b.held.Load())
	} else if release(); b.held.Load() != 0 {
		t.Errorf("%d held in the end", b.held.Load())
	}
}
