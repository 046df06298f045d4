import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** editorTheme styles the editor with the design tokens, so that it follows the theme. */
export const editorTheme = [
	EditorView.theme({
		"&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12px", height: "100%" },
		"&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "0" },
		".cm-scroller": {
			fontFamily: "var(--font-mono, 'JetBrains Mono Variable', ui-monospace, monospace)",
			lineHeight: "20px",
		},
		".cm-content": { padding: "6px 0", caretColor: "var(--text)" },
		".cm-cursor": { borderLeftColor: "var(--text)" },
		".cm-line": { padding: "0 8px" },
		".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
		".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--sunken) 60%, transparent)" },
		"&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
			backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent)",
		},
		".cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "none" },
		".cm-placeholder": { color: "var(--muted)" },
		".cm-tooltip": {
			backgroundColor: "var(--surface)",
			border: "1px solid var(--border)",
			borderRadius: "8px",
			boxShadow: "var(--lift)",
			overflow: "hidden",
		},
		// The description of a completion is beside the list.
		".cm-tooltip.cm-tooltip-autocomplete": { overflow: "visible" },
		".cm-tooltip.cm-tooltip-autocomplete > ul": { borderRadius: "8px" },
		".cm-tooltip.cm-completionInfo": {
			padding: "6px 8px",
			maxWidth: "320px",
			lineHeight: "20px",
			fontFamily: "var(--font-sans, 'Inter Variable', sans-serif)",
		},
		".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 8px", lineHeight: "20px" },
		".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
			backgroundColor: "var(--accent-soft)",
			color: "var(--text)",
		},
		".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal" },
		".cm-diagnostic": { padding: "6px 8px", fontFamily: "var(--font-sans, 'Inter Variable', sans-serif)" },
		".cm-diagnostic-error": { borderLeft: "4px solid var(--failed)" },
		".cm-diagnostic-warning": { borderLeft: "4px solid var(--waiting)" },
		// CodeMirror underlines with images in data: URLs, which the content security policy forbids.
		".cm-lintRange": { backgroundImage: "none !important", paddingBottom: "0" },
		".cm-lintRange-error": { textDecoration: "underline wavy var(--failed)", textUnderlineOffset: "3px" },
		".cm-lintRange-warning": { textDecoration: "underline wavy var(--waiting)", textUnderlineOffset: "3px" },
		".cm-lintPoint:after": { borderBottomColor: "var(--failed)" },
		".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
		".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", border: "none", color: "var(--muted)" },
	}),
	syntaxHighlighting(
		HighlightStyle.define([
			{ tag: [tags.propertyName, tags.definition(tags.propertyName), tags.attributeName], color: "var(--accent)" },
			{ tag: [tags.string, tags.special(tags.string)], color: "var(--succeeded)" },
			{ tag: [tags.number, tags.bool, tags.null], color: "var(--running)" },
			{ tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--cancelled)" },
			{ tag: [tags.comment, tags.meta], color: "var(--muted)", fontStyle: "italic" },
			{ tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--waiting)" },
			{ tag: tags.invalid, color: "var(--failed)" },
		]),
	),
];
