// Package suggest finds the known name closest to an unknown one, for "did you
// mean" hints.
package suggest

import "strings"

// maxLength is the longest name that is compared; longer ones are not typos.
const maxLength = 64

// Nearest returns the candidate closest to name, or "" if none is close enough
// to be a likely typo. Case and separators do not count: workflowId, Workflow-ID
// and workflow_id are equal.
func Nearest(name string, candidates []string) string {
	if name == "" || len(name) > maxLength {
		return ""
	}
	best, bestDistance := "", min(len(name)/3+2, 4)
	for _, candidate := range candidates {
		if d := distance(fold(name), fold(candidate)); d < bestDistance && 2*d <= max(len(name), len(candidate)) {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Hint returns a phrase for an error message: ` (did you mean "x"?)`, or "".
func Hint(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	return ""
}

var separators = strings.NewReplacer("_", "", "-", "")

func fold(name string) string { return separators.Replace(strings.ToLower(name)) }

// distance returns the Levenshtein distance between a and b in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
