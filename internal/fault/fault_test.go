package fault_test

import (
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

func TestFound(t *testing.T) {
	t.Parallel()
	missing := func(id string) error { return fault.New(fault.RunNotFound, "there is no run %q", id) }
	value, broken := 7, errors.New("broken")
	if got, err := fault.Found(&value, nil, missing, "a"); got != 7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := fault.Found[int](nil, nil, missing, "a"); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("%v", err)
	}
	if got, err := fault.Found(&value, broken, missing, "a"); got != 0 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", got, err)
	}
}
