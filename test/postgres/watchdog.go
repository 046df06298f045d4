package postgres

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// watchdogScript reads process ids; an empty line means none. At the end of its input,
// when the test process has exited, it stops the last process and removes the
// directory.
const watchdogScript = `
pid=
while read -r line; do pid=$line; done
exited() {
	n=0
	while kill -0 "$pid" 2>/dev/null; do
		[ $n -lt 100 ] || return 1
		n=$((n + 1))
		sleep 0.1
	done
}
if [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null; then
	exited || { kill -KILL "$pid" 2>/dev/null; exited; }
fi
rm -rf "$1"
`

// watchdog is a process that outlives this one, stops a server and removes its
// directory. It shares the standard error of the tests, so that go test, which waits
// for the end of their output, waits for it too.
type watchdog struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	input io.WriteCloser
}

// startWatchdog starts a watchdog for a directory.
func startWatchdog(dir string) (*watchdog, error) {
	k := &watchdog{cmd: exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", dir)}
	k.cmd.Stderr, k.cmd.SysProcAttr = os.Stderr, detached()
	var err error
	if k.input, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a watchdog: %w", err)
	}
	return k, nil
}

// watch sets the process to stop.
func (k *watchdog) watch(pid int) error { return k.tell(fmt.Sprintln(pid)) }

// forget tells the watchdog that the process has exited.
func (k *watchdog) forget() { _ = k.tell("\n") } // it may be released already

func (k *watchdog) tell(line string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := io.WriteString(k.input, line); err != nil {
		return fmt.Errorf("write to the watchdog: %w", err)
	}
	return nil
}

// release lets the watchdog clean up now and waits for it.
func (k *watchdog) release() error {
	k.mu.Lock()
	err := k.input.Close()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	return nil
}
