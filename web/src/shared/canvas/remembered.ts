import { useCallback, useState } from "react";

/** useRemembered is a choice that this browser remembers. */
export function useRemembered(key: string, standard: boolean): [value: boolean, set: (value: boolean) => void] {
	const [value, setValue] = useState(() => read(key) ?? standard);
	const set = useCallback(
		(next: boolean) => {
			setValue(next);
			try {
				localStorage.setItem(key, String(next));
			} catch {
				// It is remembered until the page is left.
			}
		},
		[key],
	);
	return [value, set];
}

function read(key: string): boolean | undefined {
	try {
		const text = localStorage.getItem(key);
		return text === null ? undefined : text === "true";
	} catch {
		return undefined;
	}
}
