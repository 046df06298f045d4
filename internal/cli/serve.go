package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/stepmill/stepmill/internal/app"
	"github.com/stepmill/stepmill/internal/config"
)

type serveCommand struct {
	config.Serve
	config.Log
}

// Run serves until it is told to stop; told twice, it stops at once.
func (c *serveCommand) Run(con *console, data config.Data) error {
	spareCollector()
	ctx, release := untilTold(con)
	defer release()
	server, err := app.NewServer(ctx, data, c.Serve, newLogger(con.err, c.Log))
	if err != nil {
		return err
	}
	server.Greet(con.out)
	return server.Run(ctx)
}

// untilTold is a context that ends when the process is told to stop. Told once
// more, the process ends at once.
func untilTold(con *console) (ctx context.Context, release context.CancelFunc) {
	ctx, release = signal.NotifyContext(con, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	return ctx, release
}

// spareCollector lets the heap grow further between collections than Go does by
// itself: what lives on is small, and collecting often cost a tenth of the
// processor under load. GOGC says otherwise if it is set.
func spareCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	// The parser has checked the name.
	_ = level.UnmarshalText([]byte(c.Level))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && terminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
