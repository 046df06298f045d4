package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// diskCheckEvery is how often the disk is looked at.
const diskCheckEvery = time.Second

// disk watches the disk of the embedded database and what the database takes of it.
type disk struct {
	db  *sqlite.DB
	log *slog.Logger
	// reserve is the free space, in bytes, below which no new runs and uploads are
	// accepted, so that runs in flight can end, and data be deleted.
	reserve int64
	// awaitsSpace reports whether no runs are executed because the server was started on
	// a full disk.
	awaitsSpace func() bool

	low     atomic.Bool             // the free space is below the reserve
	full    atomic.Bool             // writes fail for lack of space, although it is not
	logHeld atomic.Pointer[warning] // the log exceeds its limit; nil if it does not
}

// open sets the database and looks at its disk for the first time.
func (d *disk) open(ctx context.Context, db *sqlite.DB, reserve config.DiskReserve) {
	d.db = db
	_, total := db.Space()
	d.reserve = reserve.Bytes(total)
	d.check(ctx)
}

// warning is a problem with which the service still works.
type warning struct {
	reason  string // a label of telemetry.Warnings
	message string
}

// The reasons of warnings.
const (
	warnLogSize   = "log_size"
	warnDiskSpace = "disk_space"
)

func (d *disk) watch(ctx context.Context) error {
	for clock.Sleep(ctx, diskCheckEvery) {
		d.check(ctx)
	}
	return nil
}

func (d *disk) check(ctx context.Context) {
	d.checkLog(d.db.Log())
	free, _ := d.db.Space()
	d.checkSpace(free)
	// Where the free space is not known, or a quota applies, only a write shows whether
	// there is space for one.
	d.full.Store(!d.low.Load() && d.db.Full() && fault.Is(d.db.Probe(ctx), fault.StorageFull))
}

// checkSpace compares the free space with the reserve. It takes a quarter more to end the
// restriction, so that it does not begin and end all the time.
func (d *disk) checkSpace(free int64) {
	low := free >= 0 && free < d.reserve
	if d.low.Load() {
		low = free >= 0 && free < d.reserve+d.reserve/4
	}
	switch was := d.low.Swap(low); {
	case low && !was:
		d.log.Warn("the service is restricted", "reason", d.lowMessage(), "free_bytes", free)
	case was && !low:
		d.log.Info("the disk has enough free space again: new runs and uploads are accepted", "free_bytes", free)
	}
}

func (d *disk) lowMessage() string {
	const mib = 1 << 20
	return fmt.Sprintf("the disk of the data directory has less than %d MiB of free space: no new runs and uploads are accepted, and runs in flight continue while there is space", d.reserve/mib)
}

// admitRun returns a fault while no new run may start.
func (d *disk) admitRun() error {
	if d.low.Load() {
		return fault.New(fault.StorageFull, "the server's disk is almost full, so no new runs are accepted; nothing was changed")
	}
	return nil
}

// admitFile returns a fault while files must not take more space. Those that runs in flight
// create may take half of the reserve.
func (d *disk) admitFile(inRun bool) error {
	least := d.reserve
	if inRun {
		least /= 2
	}
	// Large files grow quickly, so the disk is asked each time.
	if free, _ := d.db.Space(); d.low.Load() && !inRun || free >= 0 && free < least {
		return fault.New(fault.StorageFull, "the server's disk is almost full; the file was not stored")
	}
	return nil
}

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

func (d *disk) warnings() []warning {
	var list []warning
	switch {
	case d.low.Load():
		list = append(list, warning{warnDiskSpace, d.lowMessage()})
	case d.full.Load() || d.awaitsSpace():
		list = append(list, warning{warnDiskSpace, errAwaitsSpace.Error()})
	}
	if w := d.logHeld.Load(); w != nil {
		list = append(list, *w)
	}
	return list
}

func (d *disk) messages() []string {
	list := []string{}
	for _, w := range d.warnings() {
		list = append(list, w.message)
	}
	return list
}
