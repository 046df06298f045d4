import { useSyncExternalStore } from "react";

export type Choice = "system" | "light" | "dark";
export type Theme = "light" | "dark";

const key = "stepmill.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set<() => void>();

function stored(): Choice {
	try {
		const value = localStorage.getItem(key);
		return value === "light" || value === "dark" ? value : "system";
	} catch {
		return "system";
	}
}

function apply(): void {
	const choice = stored();
	document.documentElement.dataset.theme = choice === "system" ? (system.matches ? "dark" : "light") : choice;
	for (const tell of watchers) tell();
}

// The system theme may have changed since the first paint.
apply();
system.addEventListener("change", apply);
// Another tab changed the theme.
addEventListener("storage", (event) => event.key === key && apply());

export function chooseTheme(choice: Choice): void {
	try {
		if (choice === "system") localStorage.removeItem(key);
		else localStorage.setItem(key, choice);
	} catch {
		// Without storage the choice lasts until the page is closed.
	}
	apply();
	if (choice !== "system") document.documentElement.dataset.theme = choice;
}

function watch(tell: () => void): () => void {
	watchers.add(tell);
	return () => watchers.delete(tell);
}

export function useChoice(): Choice {
	return useSyncExternalStore(watch, stored);
}

/** useTheme returns the effective theme, for drawings that cannot use CSS variables. */
export function useTheme(): Theme {
	return useSyncExternalStore(watch, () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light"));
}
