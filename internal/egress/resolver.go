//go:build !failpoint

package egress

import "net"

func machineResolver() Resolver { return &net.Resolver{PreferGo: true} }
