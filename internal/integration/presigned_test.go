package integration_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// A call without the credential goes to an address that an earlier call has got, and
// nowhere else.
func TestURLWithoutCredential(t *testing.T) {
	t.Parallel()
	for url, valid := range map[string]bool{
		"${{ results.target.upload_url }}":                        true,
		"${{ results.target.private_url ?? results.target.url }}": true,
		"${{ input.url }}":                                        false,
		"${{ results.target.upload_url }}/${{ input.url }}":       false,
		"https://upload.example/${{ results.target.upload_url }}": false,
		"${{ connection.shop }}":                                  false,
		"https://upload.example":                                  false,
	} {
		_, err := integration.Parse([]byte(shop+`
operations:
  upload:
    title: Upload
    input: {url: {type: string}}
    do:
      - {id: target, path: /uploads}
      - {id: sent, method: PUT, auth: none, url: "`+url+`"}
`), nil)
		if valid && err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if !valid && (err == nil || !strings.Contains(err.Error(), "without the credential")) {
			t.Errorf("%s: the error is %v", url, err)
		}
	}
}
