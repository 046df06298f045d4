//go:build !failpoint

package egress

import "net"

// machineResolver returns the resolver of the machine.
func machineResolver() Resolver { return &net.Resolver{PreferGo: true} }
