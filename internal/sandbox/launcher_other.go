//go:build !linux

package sandbox

import "context"

type launcher struct{}

func (launcher) start(_ context.Context, command []string) (*child, error) {
	return startChild(command)
}
