// Package node owns what a process of the service is: one of those that share
// the work.
package node

import (
	"net/netip"
	"time"
)

// Roles of a node.
const (
	// RoleServe answers requests and executes runs.
	RoleServe = "serve"
	// RoleWorker executes runs.
	RoleWorker = "worker"
)

// Node is a process.
type Node struct {
	ID      string
	Name    string
	Version string
	Role    string
	// URL is where people and other services reach it; empty: they do not.
	URL string
	// Listens are the addresses that it listens on.
	Listens []netip.AddrPort

	StartedAt time.Time
	SeenAt    time.Time
	// ExpiresAt is when it counts as dead unless it is seen before; nil where
	// there is only one.
	ExpiresAt *time.Time
	// Runs is how many runs it holds.
	Runs int
	// This says that it is the one that answers.
	This bool
}

// Beat is what a heartbeat learns.
type Beat struct {
	// Now is the time by the clock of the database.
	Now time.Time
	// Dead says that the time of this node has run out and others take its runs.
	Dead bool
	// NextExpiry is when the time of the first other node runs out.
	NextExpiry *time.Time
	// Capacity is how many runs all nodes execute at a time, Nodes how many
	// there are.
	Capacity, Nodes int
	// Others is what this node has to know of the others.
	Others Others
}

// Others is where other nodes are.
type Others struct {
	// URL is where one of them is reached; empty: none of them is.
	URL string
	// Listens are the addresses that they listen on.
	Listens []netip.AddrPort
}
