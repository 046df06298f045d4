// Package node describes the processes of the service that share the work.
package node

import (
	"net/netip"
	"time"
)

// Roles of a node.
const (
	// RoleServe serves requests and executes runs.
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
	// Level is the number of the node's release: see the package release.
	Level int
	// URL is the public URL of the node; empty if it has none.
	URL     string
	Listens []netip.AddrPort

	StartedAt time.Time
	SeenAt    time.Time
	// ExpiresAt is when the node counts as dead unless it sends another heartbeat; nil
	// if there is only one node.
	ExpiresAt *time.Time
	// Runs is the number of runs that the node owns.
	Runs int
	// This marks the node that serves the request.
	This bool
}

// Heartbeat is the response to a heartbeat.
type Heartbeat struct {
	// Now is the time of the database clock, and Correction is how far the steady time
	// is ahead of it.
	Now        time.Time
	Correction time.Duration
	// Dead reports whether this node has expired and others are taking its runs.
	Dead bool
	// NextExpiry is the steady time at which the first of the other nodes expires.
	NextExpiry *time.Time
	// Capacity is the number of runs that all nodes together execute at a time. Nodes
	// is the number of nodes.
	Capacity, Nodes int
	Others          Others
}

// Others are the addresses of the other nodes.
type Others struct {
	// URL is the public URL of one of them; empty if none has one.
	URL     string
	Listens []netip.AddrPort
}
