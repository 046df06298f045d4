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

// maxDialedAddrs bounds how many addresses are remembered, most recent last.
const maxDialedAddrs = 64

// addrLog remembers the addresses at which this process tried to reach the
// database. A name may resolve to several, and they may change.
type addrLog struct {
	mu    sync.Mutex
	addrs []netip.AddrPort
}

// DialedAddrs returns the addresses of databases and poolers that this process
// has connected to, or tried to.
func (db *DB) DialedAddrs() []netip.AddrPort {
	db.dialed.mu.Lock()
	defer db.dialed.mu.Unlock()
	return slices.Clone(db.dialed.addrs)
}

// Configure returns the configuration for connections outside the pools of db.
// The addresses that they dial are remembered as well.
func (db *DB) Configure(opts Options, size int) (*pgxpool.Config, error) {
	config, err := configure(opts, size)
	if err == nil {
		config.ConnConfig.DialFunc = db.dialed.wrap(config.ConnConfig.DialFunc)
	}
	return config, err
}

func (d *addrLog) wrap(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if at, err := netip.ParseAddrPort(address); err == nil {
			d.add(at)
		}
		return dial(ctx, network, address)
	}
}

func (d *addrLog) add(at netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.addrs, at) {
		return
	}
	if len(d.addrs) == maxDialedAddrs {
		d.addrs = d.addrs[1:]
	}
	d.addrs = append(d.addrs, at)
}
