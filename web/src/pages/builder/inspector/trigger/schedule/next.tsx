import { useQuery } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import { useDebounced } from "@/shared/search/use-search";
import { useNow } from "@/ui/time";
import { describeCron } from "./words";

/** How long to wait after the last keystroke before asking the server. */
const pause = 300;

/** NextTimes describes a schedule and lists its next times in its time zone. */
export function NextTimes({ cron, zone }: { cron: string; zone: string }) {
	const minute = Math.floor(useNow(60_000) / 60_000);
	const settled = useDebounced(JSON.stringify([cron, zone]), pause);
	const [wanted, timezone] = JSON.parse(settled) as [string, string];
	const { data } = useQuery({
		queryKey: ["schedules", wanted, timezone, minute],
		queryFn: ({ signal }) =>
			got(api.GET("/v1/schedules/preview", { params: { query: { cron: wanted, timezone } }, signal })),
		enabled: wanted !== "",
		retry: false, // it is not valid: the form says why
		// A minute later, the times of the minute before are shown until the new ones arrive.
		placeholderData: (last, before) =>
			before?.queryKey[1] === wanted && before.queryKey[2] === timezone ? last : undefined,
	});
	const words = describeCron(cron);
	if (!words) return null;
	const current = wanted === cron && timezone === zone;
	return (
		<div className="rounded-8 border bg-canvas px-3 py-2">
			<p className="font-medium">{words}</p>
			{current && data && (
				<>
					<p className="mt-1 text-12 text-muted">Next times, in {zone}:</p>
					<ol className="tabular text-12">
						{data.times.map((at) => (
							<li key={at}>{shown(at, zone)}</li>
						))}
					</ol>
				</>
			)}
		</div>
	);
}

function shown(at: string, zone: string): string {
	return new Intl.DateTimeFormat(undefined, {
		timeZone: knownZone(zone) ? zone : "UTC",
		weekday: "short",
		day: "numeric",
		month: "short",
		year: "numeric",
		hour: "2-digit",
		minute: "2-digit",
		timeZoneName: "short",
	}).format(new Date(at));
}

/** Whether the browser knows a time zone. */
export function knownZone(zone: string): boolean {
	try {
		return Boolean(new Intl.DateTimeFormat("en-US", { timeZone: zone }));
	} catch {
		return false;
	}
}
