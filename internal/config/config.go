// Package config defines the settings of a process: one struct per group. The
// command line fills them from flags and STEPMILL_* variables.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// Data holds the location of the data and the master key that encrypts it.
type Data struct {
	Dir string `name:"data-dir" env:"STEPMILL_DATA_DIR" default:"./stepmill-data" placeholder:"DIR" help:"Directory of the database and the master key (default: ${default})."`
	Database
	FilesURL      string `name:"files-url" env:"STEPMILL_FILES_URL" placeholder:"URL" help:"Bucket for the bytes of files, such as s3://bucket/prefix?region=eu-central-1, with &endpoint=URL for a server other than AWS. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (default: files in the data directory, or rows of the shared database)."`
	MasterKeyFile string `env:"STEPMILL_MASTER_KEY_FILE" placeholder:"FILE" help:"File with the master key (default: master.key in the data directory, created on first start)."`
	MasterKey     string `env:"STEPMILL_MASTER_KEY" placeholder:"KEY" help:"The master key itself, 32 bytes in base64 or hex. Prefer a file or the environment variable."`
}

// Database configures a shared database. Without a URL the data is in the data
// directory.
type Database struct {
	URL         string        `name:"database-url" env:"STEPMILL_DATABASE_URL" placeholder:"URL" help:"PostgreSQL database to share with other nodes, such as postgres://user@host/name. Without it, the data is stored in the data directory."`
	Connections int           `name:"database-connections" env:"STEPMILL_DATABASE_CONNECTIONS" default:"20" placeholder:"N" help:"Maximum number of connections of this node to the database, at least 12 (default: ${default})."`
	Pooled      bool          `name:"database-pooled" env:"STEPMILL_DATABASE_POOLED" help:"The database URL is that of a connection pooler, such as PgBouncer."`
	ListenURL   string        `name:"database-listen-url" env:"STEPMILL_DATABASE_LISTEN_URL" placeholder:"URL" help:"URL of the same database that bypasses the pooler, for LISTEN. With a pooler and without this URL, nodes poll for changes every second."`
	Timeout     time.Duration `name:"database-timeout" env:"STEPMILL_DATABASE_TIMEOUT" default:"10s" placeholder:"TIME" help:"How long a transaction on the database may take, at least 1s. Waits for connections, locks and single responses are limited to a part of it (default: ${default})."`
	// Node is the node that uses the database. It is empty for a command.
	Node string `kong:"-"`
}

// Shared reports whether the data is in a database that nodes share.
func (d Database) Shared() bool { return d.URL != "" }

// KeyFile returns the path of the master key file.
func (d Data) KeyFile() string {
	if d.MasterKeyFile != "" {
		return d.MasterKeyFile
	}
	return filepath.Join(d.Dir, "master.key")
}

// KeyLocation describes where the master key is, for messages.
func (d Data) KeyLocation() string {
	if d.MasterKey != "" {
		return "given with STEPMILL_MASTER_KEY"
	}
	return "in " + d.KeyFile()
}

// Execute holds the settings of every node that executes runs.
type Execute struct {
	EgressAllow   []Network     `env:"STEPMILL_EGRESS_ALLOW" placeholder:"CIDR" help:"Private address ranges that steps and webhooks may reach."`
	EgressProxy   ProxyURL      `env:"STEPMILL_EGRESS_PROXY" placeholder:"URL" help:"HTTP proxy for the requests of steps, polls and webhooks, such as http://user:password@proxy.example:3128. Prefer the environment variable if it contains a password."`
	JSProcesses   int           `name:"js-processes" env:"STEPMILL_JS_PROCESSES" default:"0" placeholder:"N" help:"Maximum number of code.js scripts that run concurrently, each in a separate process (default: the number of CPUs, at least 2)."`
	JSMemory      int           `name:"js-memory" env:"STEPMILL_JS_MEMORY" default:"64" placeholder:"MIB" help:"Memory limit of a code.js script, in MiB, at least 16 (default: ${default})."`
	NodeName      string        `env:"STEPMILL_NODE_NAME" placeholder:"NAME" help:"Name of this node (default: the host name)."`
	NodeLease     time.Duration `env:"STEPMILL_NODE_LEASE" default:"10s" placeholder:"TIME" help:"How long a node keeps its runs without a heartbeat, at least 1s. Must be the same on all nodes (default: ${default})."`
	MetricsListen string        `env:"STEPMILL_METRICS_LISTEN" placeholder:"ADDR" help:"Address to serve metrics and health checks on, without authentication, such as 127.0.0.1:9090 (default: none)."`
	MetricsPprof  bool          `env:"STEPMILL_METRICS_PPROF" help:"Also serve profiles of the process there, under /debug/pprof."`
	Migrate       bool          `env:"STEPMILL_MIGRATE" default:"true" negatable:"" help:"Migrate the schema of the shared database at startup. If disabled, run stepmill migrate."`
}

// Endpoint holds the addresses of a server.
type Endpoint struct {
	Listen    string    `env:"STEPMILL_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to listen on (default: ${default})."`
	PublicURL PublicURL `env:"STEPMILL_PUBLIC_URL" placeholder:"URL" help:"Public URL of this server, such as https://flows.example.com, used to build links (default: http:// and the listen address)."`
}

// Worker holds the settings of a node that executes runs and serves no requests.
type Worker struct {
	Execute
	PublicURL PublicURL `env:"STEPMILL_PUBLIC_URL" placeholder:"URL" help:"Public URL of Stepmill, such as https://flows.example.com, used to build links in runs (default: the URL set on a node that serves requests)."`
}

// Serve holds the settings of a server.
type Serve struct {
	Execute
	Endpoint
	OIDC
	PreauthRPM          int           `name:"preauth-rpm" env:"STEPMILL_PREAUTH_RPM" default:"600" placeholder:"N" help:"Failed authentications allowed per client address per minute (default: ${default})."`
	TrustedProxy        []Network     `env:"STEPMILL_TRUSTED_PROXY" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For header is trusted."`
	OAuthAppsFile       string        `name:"oauth-apps-file" env:"STEPMILL_OAUTH_APPS_FILE" placeholder:"FILE" help:"File with OAuth apps for the connections of all workspaces, a JSON list."`
	ConnsPerAddress     int           `env:"STEPMILL_CONNS_PER_ADDRESS" default:"100" placeholder:"N" help:"Open connections allowed per client, an IPv4 address or an IPv6 /64, except loopback and trusted proxies (default: ${default})."`
	StreamsPerWorkspace int           `env:"STEPMILL_STREAMS_PER_WORKSPACE" default:"100" placeholder:"N" help:"Open event streams allowed per workspace (default: ${default})."`
	DiskTimeout         time.Duration `env:"STEPMILL_DISK_TIMEOUT" default:"8s" placeholder:"TIME" help:"How long a request waits for the disk of the data directory before it gets a 503, more than 2s, or 0s for no limit (default: ${default})."`
	DiskReserve         DiskReserve   `env:"STEPMILL_DISK_RESERVE" default:"auto" placeholder:"MIB" help:"Free space on the disk of the data directory, in MiB, below which no new runs and uploads are accepted; 0 for none, auto for 512 or a tenth of a smaller disk (default: ${default})."`
	DrainDelay          time.Duration `env:"STEPMILL_DRAIN_DELAY" default:"0s" placeholder:"TIME" help:"How long to keep serving, while reporting not ready, after a signal to stop, so that load balancers notice (default: ${default})."`
	LeaveSafeMode       bool          `env:"STEPMILL_LEAVE_SAFE_MODE" help:"Execute runs again after the service entered safe mode because it crashed repeatedly during startup."`
	KeepRuns            KeepRuns      `env:"STEPMILL_KEEP_RUNS" default:"plan" placeholder:"TIME" help:"How long to keep finished runs: a time such as 90d, plan for the retention of the workspace's plan, or forever (default: ${default})."`
	UnsafeFilesystem    bool          `env:"STEPMILL_UNSAFE_FILESYSTEM" help:"Allow a data directory on a network file system, where data can be lost."`
}

// OIDC configures the identity provider that people sign in with. Without an
// issuer they can only use passwords.
type OIDC struct {
	Issuer       string `name:"oidc-issuer" env:"STEPMILL_OIDC_ISSUER" placeholder:"URL" help:"Issuer URL of the identity provider that people can sign in with, such as https://accounts.example.com."`
	ClientID     string `name:"oidc-client-id" env:"STEPMILL_OIDC_CLIENT_ID" placeholder:"ID" help:"Client id of this service at the identity provider."`
	ClientSecret string `name:"oidc-client-secret-file" env:"STEPMILL_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the client secret, if the provider requires one."`
	Role         string `name:"oidc-role" env:"STEPMILL_OIDC_ROLE" enum:",owner,editor,operator,viewer" default:"" placeholder:"ROLE" help:"Role in the first workspace for people who sign in with the provider and are not users yet: owner, editor, operator or viewer (default: they cannot sign in)."`
}

// Secret reads the client secret from its file.
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

// KeepRuns is the retention period of finished runs. The zero value means the
// period of the workspace's plan.
type KeepRuns struct {
	For     time.Duration
	Forever bool
}

// UnmarshalText parses plan, forever or a duration such as 90d.
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
	if k.For, err = clock.ParseDuration(string(text)); err != nil {
		return fmt.Errorf("%w, nor is it plan or forever", err)
	}
	return nil
}

// DiskReserve is how much of a disk is kept free. The zero value means auto.
type DiskReserve struct {
	mib int64
	set bool
}

// UnmarshalText parses auto or a number of MiB.
func (r *DiskReserve) UnmarshalText(text []byte) error {
	*r = DiskReserve{}
	if string(text) == "auto" {
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return fmt.Errorf("%q is neither auto nor a number of MiB", text)
	}
	*r = DiskReserve{int64(n), true}
	return nil
}

// Bytes returns the reserve for a disk of a size.
func (r DiskReserve) Bytes(disk int64) int64 {
	const mib, most, fraction = 1 << 20, 512, 10
	if r.set {
		return r.mib * mib
	}
	return max(0, min(most*mib, disk/fraction))
}

// Network is an address range or a single address.
type Network struct{ netip.Prefix }

// UnmarshalText parses a range such as 10.0.0.0/8 or an address such as 10.0.0.1.
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

// Prefixes converts networks to prefixes.
func Prefixes(networks []Network) []netip.Prefix {
	out := make([]netip.Prefix, len(networks))
	for i, network := range networks {
		out[i] = network.Prefix
	}
	return out
}

// Log configures logging.
type Log struct {
	Level  string `name:"log-level" env:"STEPMILL_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Minimum level to log: debug, info, warn or error."`
	Format string `name:"log-format" env:"STEPMILL_LOG_FORMAT" default:"auto" enum:"auto,json,text" help:"Log format: json, text, or auto for text on a terminal and JSON elsewhere."`
}

// Version is set by the release build.
var Version = ""

// VersionText returns the version of this binary.
func VersionText() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "dev"
}
