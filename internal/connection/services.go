package connection

import (
	"context"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/vault"
)

// Services are the parts of this package, assembled by NewServices.
type Services struct {
	Connections *Service
	Apps        *Apps
	Consents    *Consents
	Opener      *Opener
	Renewer     *Renewer
	Tester      *Tester

	persister *persister
}

// Deps are what the Services depend on.
type Deps struct {
	Store  Stores
	Vault  Vault
	Client Client
	// Catalog has the integrations that ship with Stepmill, and Own those that workspaces have
	// described themselves; nil if there are none.
	Catalog *integration.Catalog
	Own     Own
	// Node is the id of this node, which claims renewals.
	Node string
	Log  *slog.Logger
}

// Vault seals credentials.
type Vault interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Stores is everything that the Services store.
type Stores interface {
	// In returns the stores as a part of a transaction.
	In(tx txn.Tx) Stores
	Store
	AppStore
	ConsentStore
	EndingStore
	Recorder
}

// NewServices assembles the services on a store.
func NewServices(d Deps) Services {
	repo := &repository{store: d.Store, vault: d.Vault, integrations: &integrations{catalog: d.Catalog, own: d.Own}}
	servers, persister := &authServers{d.Client, d.Log}, newPersister(d.Log)
	s := Services{
		Connections: &Service{repo: repo, servers: servers, log: d.Log},
		Apps:        &Apps{repo: repo},
		Renewer: &Renewer{
			repo: repo, ending: d.Store, servers: servers, persister: persister, node: d.Node, log: d.Log,
			failed: pauses{first: time.Second, longest: time.Minute},
		},
		persister: persister,
	}
	s.Opener = &Opener{
		repo: repo, renewer: s.Renewer, client: d.Client, masks: mask.NewCache(maskMemory), recent: recentMasks{last: map[recentKey]recentMask{}}, log: d.Log,
		rejected: pauses{first: time.Minute, longest: time.Minute}, used: map[string]time.Time{},
	}
	s.Tester = &Tester{repo: repo, connections: s.Connections, opener: s.Opener, renewer: s.Renewer, client: d.Client, audit: d.Store}
	s.Consents = &Consents{
		repo: repo, store: d.Store, connections: s.Connections, apps: s.Apps, tester: s.Tester, servers: servers, persister: persister,
	}
	return s
}

// Shutdown waits until renewals and background writes have finished, but not longer than the
// context: a token that was issued but not stored would be lost. Call it when nothing uses
// connections any more.
func (s Services) Shutdown(ctx context.Context) { s.persister.shutdown(ctx) }
