import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { base } from "@/api/client";
import type { LiveEvent } from "./parse";
import { type Standing, Stream } from "./stream";

/** The events of the workspace: the one stream of the tab, unless a page follows something closer. */
export const stream = new Stream(`${base}/v1/events/stream`);

let detour: Stream | undefined;
const watchers = new Set<() => void>();

function follow(next: Stream | undefined): void {
	detour = next;
	for (const tell of watchers) tell();
}

/** matcher turns "run.*", "workflow.paused" or "*" into a test of types. */
export function matcher(pattern: string): (type: string) => boolean {
	if (pattern === "*") return () => true;
	if (pattern.endsWith(".*")) return (type) => type.startsWith(pattern.slice(0, -1));
	return (type) => type === pattern;
}

/**
 * useLive calls the handler for each event whose type fits the pattern, and for
 * "gap", after which everything shown should be read again.
 */
export function useLive(pattern: string, handler: (event: LiveEvent) => void): void {
	const latest = useRef(handler);
	useEffect(() => {
		latest.current = handler;
	});
	useEffect(() => stream.on(matcher(pattern), (event) => latest.current(event)), [pattern]);
}

/**
 * useLiveQueries reads queries again when something of the pattern happens, at
 * most once in half a second however much happens.
 */
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
 * useFollow reads a stream of its own, such as "/v1/runs/{id}/events", in place of
 * the one of the workspace: a browser has few connections. It ends with the
 * event `end`. Nothing is followed while the path is null.
 */
export function useFollow(path: string | null, handler: (event: LiveEvent) => void): void {
	const latest = useRef(handler);
	useEffect(() => {
		latest.current = handler;
	});
	useEffect(() => {
		if (path === null) return undefined;
		const own = new Stream(base + path);
		const release = stream.hold();
		const off = own.on(
			() => true,
			(event) => latest.current(event),
		);
		let over = false;
		const finish = () => {
			if (over) return;
			over = true;
			follow(undefined);
			release();
		};
		const unwatch = own.watch(() => own.standing.state === "ended" && finish());
		follow(own);
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
	let off = (detour ?? stream).watch(tell);
	const moved = () => {
		off();
		off = (detour ?? stream).watch(tell);
		tell();
	};
	watchers.add(moved);
	return () => {
		watchers.delete(moved);
		off();
	};
}

/** useStanding tells how the stream of the tab stands. */
export function useStanding(): Standing {
	return useSyncExternalStore(watch, () => (detour ?? stream).standing);
}
