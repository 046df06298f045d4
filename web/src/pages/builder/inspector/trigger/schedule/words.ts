import cronstrue from "cronstrue";

/** Describes a cron expression; undefined if it is not valid. */
export function describeCron(cron: string): string | undefined {
	const every = /^@every\s+(\S+)$/i.exec(cron.trim());
	if (every) return `Every ${every[1]}`;
	try {
		return cronstrue.toString(cron.trim().replace(/^@midnight$/i, "@daily"), {
			use24HourTimeFormat: true,
		});
	} catch {
		return undefined;
	}
}
