import { useEffect } from "react";

/**
 * Replaces the package react-style-singleton, with the same exports. The original adds
 * <style> elements, which the content security policy forbids; constructed style sheets
 * are allowed.
 */
export function stylesheetSingleton() {
	let users = 0;
	let sheet: CSSStyleSheet | undefined;
	return {
		add(style: string) {
			if (users === 0) {
				sheet = new CSSStyleSheet();
				sheet.replaceSync(style);
				document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
			}
			users += 1;
		},
		remove() {
			users -= 1;
			if (users > 0 || !sheet) return;
			document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
			sheet = undefined;
		},
	};
}

export function styleHookSingleton() {
	const sheet = stylesheetSingleton();
	return (styles: string, dynamic?: boolean) => {
		// biome-ignore lint/correctness/useExhaustiveDependencies: same dependencies as the original package
		useEffect(() => {
			sheet.add(styles);
			return () => sheet.remove();
		}, [styles && dynamic]);
	};
}

export function styleSingleton() {
	const useStyle = styleHookSingleton();
	// biome-ignore lint/correctness/noComponentHookFactories: the original package exports a factory
	return function Sheet({ styles, dynamic }: { styles: string; dynamic?: boolean }) {
		useStyle(styles, dynamic);
		return null;
	};
}
