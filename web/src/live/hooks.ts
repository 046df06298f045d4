import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { base } from "@/api/client";
import type { LiveEvent } from "./parse";
import { type ConnectionStatus, Stream } from "./stream";

/** The event stream of the workspace. Each tab reads this stream, unless a page follows a more specific one. */
export const stream = new Stream(`${base}/v1/events/stream`);

let followed: Stream | undefined;
const watchers = new Set<() => void>();

function setFollowed(next: Stream | undefined): void {
	followed = next;
	for (const tell of watchers) tell();
}

/** matcher turns "run.*", "workflow.paused" or "*" into a predicate on event types. */
export function matcher(pattern: string): (type: string) => boolean {
	if (pattern === "*") return () => true;
	if (pattern.endsWith(".*")) return (type) => type.startsWith(pattern.slice(0, -1));
	return (type) => type === pattern;
}

/**
 * useLive calls the handler for each event whose type matches the pattern, and for "gap",
 * after which everything shown should be refetched.
 */
export function useLive(pattern: string, handler: (event: LiveEvent) => void): void {
	const latest = useRef(handler);
	useEffect(() => {
		latest.current = handler;
	});
	useEffect(() => stream.on(matcher(pattern), (event) => latest.current(event)), [pattern]);
}

/** useLiveQueries invalidates queries when a matching event arrives, at most once every 500 ms. */
export function useLiveQueries(pattern: string, ...keys: (readonly unknown[])[]): void {
	const client = useQueryClient();
	const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
	useEffect(() => () => clearTimeout(timer.current), []);
	useLive(pattern, () => {
		if (timer.current) return;
		timer.current = setTimeout(() => {
			timer.current = undefined;
			for (const queryKey of keys) void client.invalidateQueries({ queryKey });
		}, 500);
	});
}

/**
 * useFollow reads a dedicated stream, such as "/v1/runs/{id}/events", and pauses the
 * workspace stream meanwhile, because browsers limit the number of connections. It stops
 * at the event `end`. A null path follows nothing.
 */
export function useFollow(path: string | null, handler: (event: LiveEvent) => void): void {
	const latest = useRef(handler);
	useEffect(() => {
		latest.current = handler;
	});
	useEffect(() => {
		if (path === null) return undefined;
		const own = new Stream(base + path);
		const release = stream.pause();
		const off = own.on(
			() => true,
			(event) => latest.current(event),
		);
		let over = false;
		const finish = () => {
			if (over) return;
			over = true;
			setFollowed(undefined);
			release();
		};
		const unwatch = own.watch(() => own.status.state === "ended" && finish());
		setFollowed(own);
		const stop = own.start();
		return () => {
			unwatch();
			off();
			stop();
			finish();
		};
	}, [path]);
}

function watch(tell: () => void): () => void {
	let off = (followed ?? stream).watch(tell);
	const moved = () => {
		off();
		off = (followed ?? stream).watch(tell);
		tell();
	};
	watchers.add(moved);
	return () => {
		watchers.delete(moved);
		off();
	};
}

/** useConnectionStatus returns the status of the tab's stream. */
export function useConnectionStatus(): ConnectionStatus {
	return useSyncExternalStore(watch, () => (followed ?? stream).status);
}
