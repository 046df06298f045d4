/** browserZone returns the time zone of the browser; undefined for UTC, which is the default. */
export function browserZone(): string | undefined {
	const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
	return zone === "UTC" || zone === "Etc/UTC" ? undefined : zone;
}
