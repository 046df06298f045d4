package cluster_test

import (
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/lane"
)

// The database holds files of 1 GiB. A plan that allows more does not make a client
// upload what cannot be stored.
func TestMaximumSizeOfFilesInTheDatabase(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	made := installation.New(t)
	s := harness.StartWith(t, harness.Options{Dir: made.Dir, Database: made.URL, Args: nodeArgs("a", longLease, harness.Timeout)})
	client := flow.NewWorkspace(t, s.Client.With(made.AdminKey), "enterprise")
	var usage struct {
		Limits struct {
			FileBytes int64 `json:"file_bytes"`
		}
	}
	client.Expect(t, http.StatusOK, http.MethodGet, "/v1/usage", nil).Decode(t, &usage)
	if usage.Limits.FileBytes != 1<<30 {
		t.Errorf("file_bytes is %d", usage.Limits.FileBytes)
	}
	options := client.Expect(t, http.StatusNoContent, http.MethodOptions, "/v1/files/uploads", nil)
	if got := options.Header.Get("Tus-Max-Size"); got != "1073741824" {
		t.Errorf("Tus-Max-Size is %s", got)
	}
	for size, status := range map[string]int{"1073741824": http.StatusCreated, "1073741825": http.StatusRequestEntityTooLarge} {
		client.Expect(t, status, http.MethodPost, "/v1/files/uploads", nil, "Tus-Resumable", "1.0.0", "Upload-Length", size)
	}
}
