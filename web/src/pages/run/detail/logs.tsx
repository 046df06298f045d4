import { useEffect, useMemo, useRef, useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { DownloadIcon } from "@/ui/icons";
import { Paged } from "@/ui/paging";
import { saveBlob } from "@/ui/save-blob";
import { SearchInput } from "@/ui/search-input";
import { logText, matchLines } from "../model/log-text";
import { EmptyText } from "./parts";

const tones: Record<string, string> = {
	debug: "text-muted",
	info: "text-running",
	warn: "text-waiting",
	error: "text-failed",
};

const clock = new Intl.DateTimeFormat("en-GB", {
	hour: "2-digit",
	minute: "2-digit",
	second: "2-digit",
	fractionalSecondDigits: 3,
});

/**
 * Logs lists the log lines of a step. `count` is the number of lines announced by the
 * stream; when it grows, new lines are fetched.
 */
export function Logs({ run, path, count }: { run: string; path: string; count: number }) {
	const pages = usePages(["runs", run, "logs", path], (cursor, signal) =>
		got(
			api.GET("/v1/runs/{id}/logs", {
				params: { path: { id: run }, query: { step_id: path, limit: 100, cursor } },
				signal,
			}),
		),
	);
	const { refetch, isPending, hasNextPage } = pages;
	const missing = !isPending && !hasNextPage && pages.items.length < count;
	useEffect(() => {
		if (missing) void refetch();
	}, [missing, refetch]);
	const [typed, setTyped] = useState("");
	const [busy, setBusy] = useState<"end" | "download">();
	const end = useRef<HTMLDivElement>(null);
	const all = useAllLines(pages, typed !== "");
	const shown = useMemo(() => matchLines(pages.items, typed), [pages.items, typed]);
	const withAll = async (what: "end" | "download", then: (lines: Line[]) => void) => {
		setBusy(what);
		try {
			then(await all());
		} catch {
			// The list shows the error, with a button to try again.
		} finally {
			setBusy(undefined);
		}
	};
	const toEnd = () => requestAnimationFrame(() => end.current?.scrollIntoView({ block: "end" }));
	return (
		<div className="flex h-full min-h-0 flex-col gap-2 px-4 pb-4">
			{pages.items.length > 0 && (
				<div className="flex shrink-0 flex-wrap items-center gap-2">
					<SearchInput
						label="Search the log"
						placeholder="Search"
						value={typed}
						onChange={setTyped}
						className="min-w-28 flex-1"
					/>
					<Button small busy={busy === "end"} onClick={() => void withAll("end", toEnd)}>
						Show the end
					</Button>
					<Button
						small
						icon={DownloadIcon}
						busy={busy === "download"}
						onClick={() => void withAll("download", (lines) => save(`${run}-${path}.log`, lines))}
					>
						Download
					</Button>
				</div>
			)}
			<div className="min-h-0 flex-1 overflow-y-auto">
				<Paged pages={pages} empty={<EmptyText>This step has no log entries.</EmptyText>}>
					{() => <Lines lines={shown} />}
				</Paged>
				{typed !== "" && shown.length === 0 && !hasNextPage && pages.items.length > 0 && (
					<EmptyText>No line contains “{typed}”.</EmptyText>
				)}
				<div ref={end} />
			</div>
		</div>
	);
}

const save = (name: string, lines: readonly Line[]) =>
	saveBlob(name, new Blob([logText(lines)], { type: "text/plain" }));

type Line = Schema["LogLine"];

/** useAllLines returns a function that loads the lines that are not loaded yet; with `now`, they are loaded at once. */
function useAllLines(pages: ReturnType<typeof usePages<Line>>, now: boolean): () => Promise<Line[]> {
	const { hasNextPage, isFetchingNextPage, fetchNextPage, error, items } = pages;
	useEffect(() => {
		if (now && hasNextPage && !isFetchingNextPage && !error) void fetchNextPage();
	}, [now, hasNextPage, isFetchingNextPage, error, fetchNextPage]);
	return async () => {
		let lines = items;
		for (let more = hasNextPage; more; ) {
			const { data, hasNextPage: next, error } = await fetchNextPage();
			if (error) throw error;
			lines = data?.pages.flatMap((page) => page.data) ?? lines;
			more = next;
		}
		return lines;
	};
}

function Lines({ lines }: { lines: readonly Line[] }) {
	return (
		<ol className="font-mono text-12">
			{lines.map((line, at) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: lines have no id and never move
				<li key={at} className="flex gap-2 border-b py-1 last:border-b-0">
					<time dateTime={line.at} className="shrink-0 text-muted">
						{clock.format(new Date(line.at))}
					</time>
					<span className={cx("w-10 shrink-0", tones[line.level])}>{line.level}</span>
					<span className="min-w-0 flex-1 break-words whitespace-pre-wrap">{line.message}</span>
				</li>
			))}
		</ol>
	);
}
