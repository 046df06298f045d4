//go:build failpoint

package egress

import (
	"context"
	"net"
	"net/netip"
	"os"
)

// machineResolver returns the resolver of the machine, or one for which every name has the
// address in FP_ADDRESS. Tests reach it through a proxy of theirs.
func machineResolver() Resolver {
	if address, err := netip.ParseAddr(os.Getenv("FP_ADDRESS")); err == nil {
		return fixedResolver{address}
	}
	return &net.Resolver{PreferGo: true}
}

type fixedResolver struct{ address netip.Addr }

// LookupNetIP implements Resolver.
func (r fixedResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{r.address}, nil
}
