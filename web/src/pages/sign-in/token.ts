import { useState } from "react";

const key = "stepmill.token";

/**
 * readToken removes the token from the URL. Because it is in the fragment it was never
 * sent to a server, and this keeps it out of the history. The tab remembers it until it is
 * used, so that a reload does not lose it.
 */
export function readToken(): string {
	const found = new URLSearchParams(location.hash.slice(1)).get("token");
	const place = `${key} ${location.pathname}`;
	try {
		if (found) {
			sessionStorage.setItem(place, found);
			history.replaceState(history.state, "", location.pathname + location.search);
		}
		return found ?? sessionStorage.getItem(place) ?? "";
	} catch {
		return found ?? "";
	}
}

export function forgetToken(): void {
	try {
		for (const name of Object.keys(sessionStorage)) if (name.startsWith(key)) sessionStorage.removeItem(name);
	} catch {
		// Without storage there is nothing to remove.
	}
}

export function useToken(): string {
	return useState(readToken)[0];
}
