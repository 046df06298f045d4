import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useFollow } from "@/live/hooks";
import { type Overlay, overlay } from "@/shared/workflow/model";
import { useRun } from "../data/queries";
import { useReplayState } from "./store";
import { applyEvent, type FollowedRun, mergeRun } from "./stream-state";

/** RunFollower listens to the run shown on the canvas. It is mounted once, whatever the page shows. */
export function RunFollower(): null {
	const [{ run }, replay] = useReplayState();
	const client = useQueryClient();
	const { data: read } = useRun(run);
	const over = read?.id === run && read?.finished_at !== null;
	useFollow(run !== null && !over ? `/v1/runs/${run}/events` : null, (event) => {
		replay.set({ stream: applyEvent(replay.get().stream, event) });
		// The stream omits inputs and outputs, so the run is refetched for them.
		if (event.type === "end") void client.invalidateQueries({ queryKey: ["runs"] });
	});
	return null;
}

/** useFollowedRun returns the live state of the run shown on the canvas; null if there is none. */
export function useFollowedRun(): FollowedRun | null {
	const [{ run, stream }] = useReplayState();
	const { data: read } = useRun(run);
	return useMemo(() => (run === null ? null : mergeRun(read, stream)), [run, read, stream]);
}

/** useDrawn returns that run by the nodes of the canvas. */
export function useDrawn(): Overlay | null {
	const [{ rounds: chosen }] = useReplayState();
	const followed = useFollowedRun();
	return useMemo(() => followed && overlay(followed.steps, chosen), [followed, chosen]);
}
