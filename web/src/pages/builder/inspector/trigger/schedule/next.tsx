import { useMemo } from "react";
import { useNow } from "@/ui/time";
import { parseCron } from "./cron";
import { nextTimes } from "./times";
import { describeCron } from "./words";

/** NextTimes describes a schedule and lists its next times in its time zone. */
export function NextTimes({ cron, zone }: { cron: string; zone: string }) {
	const minute = Math.floor(useNow(60_000) / 60_000);
	const times = useMemo(() => {
		const read = parseCron(cron);
		return read ? nextTimes(read, zone, minute * 60_000, 5) : [];
	}, [cron, zone, minute]);
	const words = describeCron(cron);
	if (!words) return null;
	return (
		<div className="rounded-8 border bg-canvas px-3 py-2">
			<p className="font-medium">{words}</p>
			{times.length === 0 && !cron.startsWith("@every") && (
				<p className="text-muted">There is no such day, so it never fires.</p>
			)}
			{times.length > 0 && (
				<>
					<p className="mt-1 text-12 text-muted">Next times, in {zone}:</p>
					<ol className="tabular text-12">
						{times.map((at) => (
							<li key={at}>{shown(at, zone)}</li>
						))}
					</ol>
				</>
			)}
		</div>
	);
}

function shown(at: number, zone: string): string {
	return new Intl.DateTimeFormat(undefined, {
		timeZone: zone,
		weekday: "short",
		day: "numeric",
		month: "short",
		year: "numeric",
		hour: "2-digit",
		minute: "2-digit",
		timeZoneName: "short",
	}).format(at);
}
