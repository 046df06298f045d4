import { useState } from "react";

const key = "stepmill.token";

/**
 * readToken takes the token of a link out of the address: behind the # it was
 * never sent to a server, and now it is in no history either. The tab keeps it
 * until it was used, so that loading the page again does not lose it.
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
		// Without storage there is nothing to forget.
	}
}

export function useToken(): string {
	return useState(readToken)[0];
}
