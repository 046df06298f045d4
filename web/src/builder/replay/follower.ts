import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Overlay, overlay } from "@/builder/model";
import { useFollow } from "@/live/hooks";
import { useRun } from "../data/queries";
import { type Followed, follow, hear } from "./heard";
import { useReplayState } from "./store";

/** Follower listens to the run that is drawn. It stands once on the page, whatever the page shows. */
export function Follower(): null {
	const [{ run }, replay] = useReplayState();
	const client = useQueryClient();
	const { data: read } = useRun(run);
	const over = read?.id === run && read?.finished_at !== null;
	useFollow(run !== null && !over ? `/v1/runs/${run}/events` : null, (event) => {
		replay.set({ heard: hear(replay.get().heard, event) });
		// The stream leaves out inputs and outputs: the run is read for them.
		if (event.type === "end") void client.invalidateQueries({ queryKey: ["runs"] });
	});
	return null;
}

/** useFollowed is the run that is drawn, as it happens; null if there is none. */
export function useFollowed(): Followed | null {
	const [{ run, heard }] = useReplayState();
	const { data: read } = useRun(run);
	return useMemo(() => (run === null ? null : follow(read, heard)), [run, read, heard]);
}

/** useDrawn is that run by the nodes of the canvas. */
export function useDrawn(): Overlay | null {
	const [{ chosen }] = useReplayState();
	const followed = useFollowed();
	return useMemo(() => followed && overlay(followed.steps, chosen), [followed, chosen]);
}
