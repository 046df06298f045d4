package txn_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/txn"
)

func TestMustBeOutside(t *testing.T) {
	t.Parallel()
	txn.MustBeOutside(t.Context())
	defer func() {
		if recover() == nil {
			t.Error("slow work inside a transaction did not panic")
		}
	}()
	txn.MustBeOutside(txn.Mark(t.Context()))
}
