// Package config owns the settings of a process: one struct per group, filled
// from flags and STEPMILL_* variables by the command line, never a global.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/duration"
)

// Data says where the data is and what seals it.
type Data struct {
	Dir string `name:"data-dir" env:"STEPMILL_DATA_DIR" default:"./stepmill-data" placeholder:"DIR" help:"Directory that holds the database and the master key (default: ${default})."`
	Database
	MasterKeyFile string `env:"STEPMILL_MASTER_KEY_FILE" placeholder:"FILE" help:"File with the master key (default: master.key in the data directory, made on first start)."`
	MasterKey     string `env:"STEPMILL_MASTER_KEY" placeholder:"KEY" help:"The master key itself, 32 bytes in base64 or hex. Prefer a file, or the environment."`
}

// Database says where the data is when it is not in the data directory.
type Database struct {
	URL         string `name:"database-url" env:"STEPMILL_DATABASE_URL" placeholder:"URL" help:"PostgreSQL database to share with other nodes, such as postgres://user@host/name. Without it, the data is in the data directory."`
	Connections int    `name:"database-connections" env:"STEPMILL_DATABASE_CONNECTIONS" default:"20" placeholder:"N" help:"Connections that this node may have to the database, at least 12 (default: ${default})."`
	Pooled      bool   `name:"database-pooled" env:"STEPMILL_DATABASE_POOLED" help:"The database URL leads to a pooler, such as PgBouncer."`
	ListenURL   string `name:"database-listen-url" env:"STEPMILL_DATABASE_LISTEN_URL" placeholder:"URL" help:"Address of the same database that does not lead through a pooler, to hear of news at once. With a pooler and without it, nodes look for news every second."`
	// Node is the one that uses the database; none for a command.
	Node string `kong:"-"`
}

// Shared tells whether the data is in a database that nodes share.
func (d Database) Shared() bool { return d.URL != "" }

// KeyFile is where the master key is read from.
func (d Data) KeyFile() string {
	if d.MasterKeyFile != "" {
		return d.MasterKeyFile
	}
	return filepath.Join(d.Dir, "master.key")
}

// KeyPlace tells a person where the master key is.
func (d Data) KeyPlace() string {
	if d.MasterKey != "" {
		return "given with STEPMILL_MASTER_KEY"
	}
	return "in " + d.KeyFile()
}

// Execute has the settings of every node that executes runs.
type Execute struct {
	EgressAllow   []Network     `env:"STEPMILL_EGRESS_ALLOW" placeholder:"CIDR" help:"Private address ranges that steps and webhooks may reach."`
	JSProcesses   int           `name:"js-processes" env:"STEPMILL_JS_PROCESSES" default:"0" placeholder:"N" help:"Scripts of code.js that run at the same time, each in a process of its own (default: the number of processors, at least 2)."`
	JSMemory      int           `name:"js-memory" env:"STEPMILL_JS_MEMORY" default:"64" placeholder:"MIB" help:"Memory that a script of code.js may use, in MiB, at least 16 (default: ${default})."`
	NodeName      string        `env:"STEPMILL_NODE_NAME" placeholder:"NAME" help:"Name of this node among others (default: the name of the host)."`
	NodeLease     time.Duration `env:"STEPMILL_NODE_LEASE" default:"10s" placeholder:"TIME" help:"How long a node that is not heard of keeps its runs, at least 1s; the same for all nodes (default: ${default})."`
	MetricsListen string        `env:"STEPMILL_METRICS_LISTEN" placeholder:"ADDR" help:"Address to show metrics and health on, without a key, such as 127.0.0.1:9090 (default: none)."`
	MetricsPprof  bool          `env:"STEPMILL_METRICS_PPROF" help:"Show profiles of the process there too, under /debug/pprof."`
	Migrate       bool          `env:"STEPMILL_MIGRATE" default:"true" negatable:"" help:"Bring the schema of the shared database up to date at the start; otherwise stepmill migrate does."`
}

// Place says where a server is reached.
type Place struct {
	Listen    string    `env:"STEPMILL_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to serve on (default: ${default})."`
	PublicURL PublicURL `env:"STEPMILL_PUBLIC_URL" placeholder:"URL" help:"Where people and other services reach this one, such as https://flows.example.com; links are built from it (default: http:// and the address it serves on)."`
}

// Worker has the settings of a node that executes runs and serves no requests.
type Worker struct {
	Execute
	PublicURL PublicURL `env:"STEPMILL_PUBLIC_URL" placeholder:"URL" help:"Where people and other services reach Stepmill, such as https://flows.example.com; links in runs are built from it (default: as a node that serves requests says)."`
}

// Serve has the settings of a server.
type Serve struct {
	Execute
	Place
	OIDC
	PreauthRPM          int           `name:"preauth-rpm" env:"STEPMILL_PREAUTH_RPM" default:"600" placeholder:"N" help:"Failed authentications allowed per client address and minute (default: ${default})."`
	TrustedProxy        []Network     `env:"STEPMILL_TRUSTED_PROXY" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For is believed."`
	ConnsPerAddress     int           `env:"STEPMILL_CONNS_PER_ADDRESS" default:"100" placeholder:"N" help:"Open connections allowed per client address, other than loopback and trusted proxies (default: ${default})."`
	StreamsPerWorkspace int           `env:"STEPMILL_STREAMS_PER_WORKSPACE" default:"100" placeholder:"N" help:"Open streams of events allowed per workspace (default: ${default})."`
	DrainDelay          time.Duration `env:"STEPMILL_DRAIN_DELAY" default:"0s" placeholder:"TIME" help:"How long to go on serving, unready, after a stop was asked; for load balancers (default: ${default})."`
	LeaveSafeMode       bool          `env:"STEPMILL_LEAVE_SAFE_MODE" help:"Execute runs again after the service was started without, because it had died too often before it was ready."`
	KeepRuns            KeepRuns      `env:"STEPMILL_KEEP_RUNS" default:"plan" placeholder:"TIME" help:"How long finished runs are kept, such as 90d; plan: as the plan of the workspace says; forever (default: ${default})."`
	UnsafeFilesystem    bool          `env:"STEPMILL_UNSAFE_FILESYSTEM" help:"Accept a data directory on a network file system, where data can be lost."`
}

// OIDC says with which identity provider people sign in. Without an issuer they
// sign in with passwords only.
type OIDC struct {
	Issuer       string `name:"oidc-issuer" env:"STEPMILL_OIDC_ISSUER" placeholder:"URL" help:"Identity provider with which people can sign in, such as https://accounts.example.com."`
	ClientID     string `name:"oidc-client-id" env:"STEPMILL_OIDC_CLIENT_ID" placeholder:"ID" help:"What the provider calls this service."`
	ClientSecret string `name:"oidc-client-secret-file" env:"STEPMILL_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the secret that the provider gave to this service, if it did."`
	Role         string `name:"oidc-role" env:"STEPMILL_OIDC_ROLE" enum:",owner,editor,operator,viewer" default:"" placeholder:"ROLE" help:"Role in the first workspace for people whom the provider knows and who are no users yet: owner, editor, operator or viewer (default: they cannot sign in)."`
}

// Secret reads the secret from its file.
func (o OIDC) Secret() (string, error) {
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return "", fmt.Errorf("--oidc-issuer: %q is not an absolute http or https URL", o.Issuer)
	case o.ClientID == "":
		return "", errors.New("--oidc-issuer needs --oidc-client-id")
	case o.ClientSecret == "":
		return "", nil
	}
	text, err := os.ReadFile(o.ClientSecret)
	if err != nil {
		return "", fmt.Errorf("--oidc-client-secret-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// KeepRuns is how long finished runs are kept. The zero value leaves that to the
// plan of each workspace.
type KeepRuns struct {
	For     time.Duration
	Forever bool
}

// UnmarshalText reads plan, forever or a length of time such as 90d.
func (k *KeepRuns) UnmarshalText(text []byte) error {
	*k = KeepRuns{}
	switch string(text) {
	case "plan":
		return nil
	case "forever":
		k.Forever = true
		return nil
	}
	var err error
	if k.For, err = duration.Parse(string(text)); err != nil {
		return fmt.Errorf("%w, nor plan or forever", err)
	}
	return nil
}

// Network is a range of addresses, or a single one.
type Network struct{ netip.Prefix }

// UnmarshalText reads 10.0.0.0/8 or 10.0.0.1.
func (n *Network) UnmarshalText(text []byte) error {
	if addr, err := netip.ParseAddr(string(text)); err == nil {
		n.Prefix = netip.PrefixFrom(addr, addr.BitLen())
		return nil
	}
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a range such as 10.0.0.0/8", text)
	}
	n.Prefix = prefix.Masked()
	return nil
}

// Prefixes returns the ranges as the standard library knows them.
func Prefixes(networks []Network) []netip.Prefix {
	out := make([]netip.Prefix, len(networks))
	for i, network := range networks {
		out[i] = network.Prefix
	}
	return out
}

// Log says what is logged and how.
type Log struct {
	Level  string `name:"log-level" env:"STEPMILL_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Least level that is logged: debug, info, warn or error."`
	Format string `name:"log-format" env:"STEPMILL_LOG_FORMAT" default:"auto" enum:"auto,json,text" help:"json, text, or auto: text on a terminal, JSON elsewhere."`
}

// Version is set when a release is built.
var Version = ""

// VersionText is the version of this binary.
func VersionText() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "dev"
}
