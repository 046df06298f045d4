package postgres

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// keeperScript reads process ids, an empty line for none. The end of its
// input is the end of whoever wrote them: it ends the last process that it was
// told of, and removes the folder.
const keeperScript = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null; then
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 \
		21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$pid" 2>/dev/null
fi
rm -rf "$1"
`

// keeper is a process that outlives this one to end a server and remove its
// folder. It shares the standard error of the tests, so that whoever waits for
// all their output, as go test does, waits for it too.
type keeper struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	input io.WriteCloser
}

// keep starts a keeper of a folder.
func keep(dir string) (*keeper, error) {
	k := &keeper{cmd: exec.Command("/bin/sh", "-c", keeperScript, "keeper", dir)}
	k.cmd.Stderr, k.cmd.SysProcAttr = os.Stderr, detached()
	var err error
	if k.input, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a keeper: %w", err)
	}
	return k, nil
}

// guard names the process to end.
func (k *keeper) guard(pid int) error { return k.tell(fmt.Sprintln(pid)) }

// forget says that the process has ended.
func (k *keeper) forget() { _ = k.tell("\n") } // it may be released already

func (k *keeper) tell(line string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := io.WriteString(k.input, line); err != nil {
		return fmt.Errorf("tell the keeper: %w", err)
	}
	return nil
}

// release lets the keeper do its work at once, and waits for it.
func (k *keeper) release() error {
	k.mu.Lock()
	err := k.input.Close()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	return nil
}
