package postgres_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/store/postgres"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:s3cret@db.example.com/flows":                      "database flows on db.example.com:5432",
		"postgres://u:s3cret@db.example.com:6000/flows?sslmode=disable": "database flows on db.example.com:6000",
		"postgres://u:s3cret@[::1]/flows":                               "database flows on [::1]:5432",
		"postgres://u:s3cret@db.example.com":                            "database u on db.example.com:5432",
		"host=db user=u password=s3cret dbname=flows":                   "database flows on db:5432",
		"postgres://u:s3cret@db:none/flows":                             "the shared database",
	} {
		got := postgres.Describe(url)
		if got != want || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
