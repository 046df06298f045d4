package app

import "testing"

// The count of starts is not worth refusing to serve.
func TestStartIsNotRecordedOnFullDisk(t *testing.T) {
	t.Parallel()
	if err := (starts{path: "/dev/full"}).write(1); err != nil {
		t.Error(err)
	}
}
