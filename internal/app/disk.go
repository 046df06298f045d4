package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// diskCheckEvery is how often the disk is looked at.
const diskCheckEvery = time.Second

// disk watches what the embedded database takes of its disk.
type disk struct {
	db  *sqlite.DB // nil: a shared database
	log *slog.Logger

	logHeld atomic.Pointer[warning] // the log exceeds its limit; nil if it does not
}

// warning is a problem with which the service still works.
type warning struct {
	reason  string // a label of telemetry.Warnings
	message string
}

// The reasons of warnings.
const warnLogSize = "log_size"

// watch looks at the disk until the context ends.
func (d *disk) watch(ctx context.Context) error {
	if d.db == nil {
		return nil
	}
	ticker := time.NewTicker(diskCheckEvery)
	defer ticker.Stop()
	for {
		d.check()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (d *disk) check() { d.checkLog(d.db.Log()) }

func (d *disk) checkLog(now sqlite.Log) {
	const mib = 1 << 20
	before := d.logHeld.Load()
	switch {
	case now.Exceeded:
		w := &warning{warnLogSize, fmt.Sprintf("the write-ahead log of the database is larger than %d MiB and cannot be truncated because of %s", now.Limit/mib, now.HeldBy)}
		d.logHeld.Store(w)
		if before == nil {
			d.log.Warn("the service is restricted", "reason", w.message, "bytes", now.Bytes)
		}
	case before != nil:
		d.logHeld.Store(nil)
		d.log.Info("the write-ahead log of the database is below its limit again", "bytes", now.Bytes)
	}
}

// warnings returns what restricts the service.
func (d *disk) warnings() []warning {
	var list []warning
	if w := d.logHeld.Load(); w != nil {
		list = append(list, *w)
	}
	return list
}

// messages returns the warnings as text.
func (d *disk) messages() []string {
	list := []string{}
	for _, w := range d.warnings() {
		list = append(list, w.message)
	}
	return list
}
