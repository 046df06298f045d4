// Package suggest owns "did you mean": the nearest known name to one that is
// not known.
package suggest

import "strings"

// longest is the longest name worth comparing; longer ones are no slips.
const longest = 64

// Nearest returns the candidate closest to name, or "" when none is close
// enough to be what was meant. Case and the marks between words cost nothing:
// workflowId, Workflow-ID and workflow_id are the same.
func Nearest(name string, candidates []string) string {
	if name == "" || len(name) > longest {
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

// Hint is the phrase for a message: ` (did you mean "x"?)`, or nothing.
func Hint(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	return ""
}

var marks = strings.NewReplacer("_", "", "-", "")

func fold(name string) string { return marks.Replace(strings.ToLower(name)) }

// distance is the number of insertions, deletions and replacements of single
// bytes between a and b.
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
