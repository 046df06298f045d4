// Package faulttest has assertions about errors of the package fault.
package faulttest

import (
	"fmt"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

// Want fails the test unless err has the code and points at exactly the given
// fields.
func Want(t testing.TB, err error, code fault.Code, pointers ...string) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != code {
		t.Fatalf("the error is %v, want %s", err, code)
	}
	var points []string
	for _, detail := range f.Details {
		points = append(points, detail.Pointer)
	}
	if fmt.Sprint(points) != fmt.Sprint(pointers) {
		t.Fatalf("the error points at %v, want %v: %v", points, pointers, err)
	}
}
