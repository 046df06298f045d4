package integration_test

import (
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

// BenchmarkLoad measures what the catalog costs at the start, with all manifests and with
// their index.
func BenchmarkLoad(b *testing.B) {
	for name, load := range map[string]func() (*integration.Catalog, error){
		"manifests": func() (*integration.Catalog, error) { return integration.Load(integrations.Files) },
		"index": func() (*integration.Catalog, error) {
			return integration.LoadIndexed(integrations.Files, integrations.Index)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := load(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
