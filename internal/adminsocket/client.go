package adminsocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// Client sends a command to the server of a data directory.
type Client struct{ conn net.Conn }

// Connect connects with the server that uses a data directory. It returns
// ErrNoServer if there is none.
func Connect(ctx context.Context, dir string) (*Client, error) {
	if _, err := os.Stat(filepath.Join(dir, fileName)); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoServer
	}
	path, release, err := shortPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("connect with the server: %w: run the command as the user of the server", err)
	}
	if err != nil {
		return nil, ErrNoServer // the socket of a process that was killed
	}
	return &Client{conn}, nil
}

// Run runs a command line in the server, copies its output, and returns its exit
// status. A client runs one command.
func (c *Client) Run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int, err error) {
	defer func() { _ = c.conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })()
	sender := json.NewEncoder(c.conn)
	if err := sender.Encode(request{Args: args, Confirms: true}); err != nil {
		return 0, fmt.Errorf("send the command to the server: %w", err)
	}
	frames := json.NewDecoder(c.conn)
	for {
		var f frame
		if err := frames.Decode(&f); err != nil {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, errors.New("the server stopped before it had run the command; it is not known whether it took effect")
		}
		_, outErr := stdout.Write(f.Stdout)
		_, errErr := stderr.Write(f.Stderr)
		if err := errors.Join(outErr, errErr); err != nil {
			return 0, err
		}
		if f.Confirm {
			_ = sender.Encode(confirmation{}) // if it fails, so does reading the next frame
		}
		if f.Exit != nil {
			return *f.Exit, nil
		}
	}
}
