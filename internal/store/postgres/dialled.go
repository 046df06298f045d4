package postgres

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// mostDialled is how many addresses are remembered, the last ones.
const mostDialled = 64

// dialled are the addresses at which this process has looked for the database:
// what a name stands for may change, and there may be several.
type dialled struct {
	mu sync.Mutex
	at []netip.AddrPort
}

// Dialled lists the addresses of databases and poolers that this process has
// connected to, or tried to.
func (db *DB) Dialled() []netip.AddrPort {
	db.dialled.mu.Lock()
	defer db.dialled.mu.Unlock()
	return slices.Clone(db.dialled.at)
}

// Configure is for connections beside those of the database: what they dial is
// remembered as well.
func (db *DB) Configure(opts Options, size int) (*pgxpool.Config, error) {
	config, err := configure(opts, size)
	if err == nil {
		config.ConnConfig.DialFunc = db.dialled.noting(config.ConnConfig.DialFunc)
	}
	return config, err
}

// noting remembers what is dialled.
func (d *dialled) noting(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if at, err := netip.ParseAddrPort(address); err == nil {
			d.note(at)
		}
		return dial(ctx, network, address)
	}
}

func (d *dialled) note(at netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.at, at) {
		return
	}
	if len(d.at) == mostDialled {
		d.at = d.at[1:]
	}
	d.at = append(d.at, at)
}
