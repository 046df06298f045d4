package expr

import (
	"maps"
	"strings"
)

// Tags that the HTML standard treats in the same way.
var (
	voidTags = tagSet("area base br col embed hr img input link meta source track wbr")
	// blockTags end a paragraph.
	blockTags = tagSet(`address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure
		footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p pre search section summary table ul xmp`)
	tableTags = tagSet("caption table tbody td tfoot th thead tr")
	// specialTags are not ended by the end tags of other elements in a line of text.
	specialTags = tagSet(`address applet area article aside base blockquote body br button caption center col colgroup dd details
		dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html
		iframe img input li link listing main marquee menu meta nav noembed noframes noscript object ol p param plaintext pre
		script search section select source style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp`)
	// The scopes are tags that an end tag does not reach beyond.
	tableScope  = tagSet("table template")
	cellScope   = tagSet("applet caption marquee object table td template th")
	buttonScope = tagSet("applet button caption marquee object table td template th")
	itemScope   = without(specialTags, "address div p li dd dt")
	// lineTags begin and end a line of text, besides blockTags.
	lineTags   = tagSet("body br caption html optgroup option select tbody tfoot thead title tr")
	hiddenTags = tagSet("noscript script style template")
)

func tagSet(names string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		out[name] = true
	}
	return out
}

func without(tags map[string]bool, names string) map[string]bool {
	out := maps.Clone(tags)
	for name := range strings.FieldsSeq(names) {
		delete(out, name)
	}
	return out
}
