package sandbox

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// launcher starts child processes from one thread, which has given up what a child
// must not inherit. The thread lives as long as the pool: the kernel kills a child
// when the thread that started it ends.
type launcher struct{ starts chan func(setup error) }

// start starts a child. It must not be called concurrently, or after ctx has ended.
func (l *launcher) start(ctx context.Context, command []string) (c *child, err error) {
	if l.starts == nil {
		l.starts = make(chan func(error))
		go l.run(ctx)
	}
	done := make(chan struct{})
	l.starts <- func(setup error) {
		defer close(done)
		if err = setup; err == nil {
			c, err = startChild(command)
		}
	}
	<-done
	return c, err
}

func (l *launcher) run(ctx context.Context) {
	// Never unlocked: the thread ends with this goroutine, and nothing else runs on it.
	runtime.LockOSThread()
	setup := renouncePrivileges()
	for {
		select {
		case start := <-l.starts:
			start(setup)
		case <-ctx.Done():
			return
		}
	}
}

// renouncePrivileges makes sure that programs started by this thread have no
// capabilities, even as root, and cannot gain any.
func renouncePrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	bounded := dropBoundingSet()
	for i := range sets {
		// This empties the ambient set too, which is a subset.
		sets[i].Inheritable = 0
		if !bounded {
			sets[i].Permitted, sets[i].Effective = 0, 0
		}
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return nil
}

// dropBoundingSet empties the bounding set. It reports false if the process may not do
// that. With an empty bounding set, a program starts without capabilities. The thread
// keeps its own, which it may need to reach the program: root may not be its owner.
func dropBoundingSet() bool {
	for capability := range uintptr(64) {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err {
		case nil:
		case unix.EINVAL: // the kernel knows no more
			return true
		default:
			return false
		}
	}
	return true
}
