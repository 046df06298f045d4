import { StyleModule } from "style-mod";

/**
 * CodeMirror injects <style> elements, which the dashboard's content security policy
 * forbids. Inside a shadow root it uses constructed style sheets, which are allowed, so
 * this object poses as a shadow root.
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
