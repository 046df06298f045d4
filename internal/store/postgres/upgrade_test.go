package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver for goose

	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/store/storetest"
	server "github.com/stepmill/stepmill/test/postgres"
)

func TestUpgradeMarksWaitingRuns(t *testing.T) {
	t.Parallel()
	opts := postgres.Options{URL: server.Shared(t).NewDatabase(t), Name: "test", Timeout: postgrestest.Timeout}
	migrateTo(t, opts.URL, 1)
	old, err := sql.Open("pgx", opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	for _, statement := range []string{storetest.OldRuns, storetest.OldSteps} {
		if _, err := old.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Fatal(err)
	}
	rows, err := connect(t, opts).Query(t.Context(), storetest.UpgradedRuns)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff(storetest.WantUpgradedRuns(), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
