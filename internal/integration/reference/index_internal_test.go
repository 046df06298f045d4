package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

// indexPage returns the page that lists the pages of all integrations of a catalog, in Markdown.
func indexPage(catalog *integration.Catalog) string {
	rows := map[string]string{}
	var categories []string
	list := catalog.List()
	slices.SortStableFunc(list, func(a, b *integration.Integration) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	for _, i := range list {
		operations := 0
		for _, o := range i.OperationOutlines() {
			if !o.Hidden {
				operations++
			}
		}
		if rows[i.Category] == "" {
			categories = append(categories, i.Category)
		}
		rows[i.Category] += fmt.Sprintf("| %s | [%s](%s.md) | %s | %d | %d |\n", icon(i, 20), label(i.Name), i.ID, code(i.ID), operations, len(i.TriggerNames()))
	}
	slices.Sort(categories)
	var out strings.Builder
	out.WriteString(notice + "# Services\n\nThe services to connect to, with the numbers of their operations and triggers. [integrations.md](../integrations.md) says how steps and triggers use them, and how to describe another service. [`http.request`](../actions/http.request.md) can use the connections of all of them.\n")
	for _, category := range categories {
		out.WriteString("\n## " + category + "\n\n| | service | integration | operations | triggers |\n|---|---|---|---|---|\n" + rows[category])
	}
	return out.String()
}
