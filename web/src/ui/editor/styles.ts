import { StyleModule } from "style-mod";

/**
 * The editor's styles come from scripts, as <style> elements, which the policy of
 * the dashboard forbids. In a shadow root the same package uses style sheets made
 * by script, which are allowed: this stands in for such a root.
 */
const standIn = {
	ownerDocument: document,
	get adoptedStyleSheets() {
		return document.adoptedStyleSheets;
	},
	set adoptedStyleSheets(sheets) {
		document.adoptedStyleSheets = sheets;
	},
};

const mount = StyleModule.mount;
StyleModule.mount = (root, modules, options) =>
	mount.call(StyleModule, root === document ? (standIn as unknown as ShadowRoot) : root, modules, options);
