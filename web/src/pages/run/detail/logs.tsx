import { useEffect } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { cx } from "@/ui/class";
import { Paged } from "@/ui/paging";
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
	return (
		<div className="h-full overflow-y-auto px-4 pb-4">
			<Paged pages={pages} empty={<EmptyText>This step has no log entries.</EmptyText>}>
				{(lines) => (
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
				)}
			</Paged>
		</div>
	);
}
