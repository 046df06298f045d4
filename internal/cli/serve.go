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

// Run serves until the process receives a signal to stop.
func (c *serveCommand) Run(con *console, data config.Data) error {
	tuneGC()
	ctx, release := notifyStop(con)
	defer release()
	server, err := app.NewServer(ctx, data, c.Serve, newLogger(con.err, c.Log), app.WithCommands(runInServer))
	if err != nil {
		return err
	}
	server.PrintWelcome(con.out)
	return server.Run(ctx)
}

// notifyStop returns a context that is canceled by the first interrupt or
// SIGTERM. A second signal ends the process immediately: the default action is
// restored before the context is canceled, so no signal that is sent after the
// shutdown has become visible is lost.
func notifyStop(con *console) (ctx context.Context, release context.CancelFunc) {
	ctx, release = context.WithCancel(con)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals)
		release()
	}()
	return ctx, release
}

// tuneGC raises the GC target: the live heap is small, and with Go's default the
// collector used a tenth of the CPU under load. GOGC overrides it.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	// The parser has checked the name.
	_ = level.UnmarshalText([]byte(c.Level))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
